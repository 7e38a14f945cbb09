package scan

import "slices"

// A Mode says what ends a piece of a body, and what becomes of a find.
type Mode int

const (
	// Text goes out by lines, and finds become their replacement.
	Text Mode = iota
	// Framed goes out by messages, whose ends the caller tells, and finds
	// become asterisks of the same length.
	Framed
)

// piece is how many bytes are scanned at a time: few enough to stay in the
// cache between copy and scan.
const piece = 32 << 10

// A Stream is the scan of one body, used by one goroutine. How much it holds
// back depends on the length of what came and on its line breaks, never on what
// else it says: of an unfinished line always the longest pattern's length less
// one. (A scanner that holds only what could begin a secret tells, echo by echo,
// which guess was right.) A line of nothing but base64 letters and `=`, or with
// a `=` at its end, counts as unfinished, since its text goes on in the next.
//
// What went out is kept as it came, not as it was replaced, as far back as a
// find may reach: so a find that goes on behind a line break or a Release has
// its rest blanked, without a second replacement.
type Stream struct {
	set    *Set
	mode   Mode
	reader reader
	buf    []byte // what came, from a place on that is a multiple of wordsRow
	out    int    // so much of buf went out
	from   int    // what is before this place of buf needs no new look,
	words  int    // nor what words there are before this
	noted  int    // the end of the last find that was noted
	odd    bool   // an odd number of backslashes ends before buf
	pure   bool   // the line that buf begins in was of base64 letters till there
	news   []string
	spare  []byte // what a Take gave out that was not as it came
}

// Stream begins the scan of one body.
func (s *Set) Stream(m Mode) *Stream {
	return &Stream{set: s, mode: m, pure: true, reader: reader{set: s}}
}

// Renew has the stream look for the secrets of another set from here on, in what
// it keeps too. A set that finds nothing changes nothing: secrets are added to a
// host, and not forgotten while an answer of it comes.
func (s *Stream) Renew(set *Set) {
	if set == s.set || set.Hold() == 0 {
		return
	}
	s.set, s.reader, s.from, s.words = set, reader{set: set}, 0, 0
}

// Write takes the next bytes and appends to dst what may go out now: everything
// up to the last line break of a Text, and all but what is held of the rest.
func (s *Stream) Write(dst, p []byte) []byte {
	hold := s.set.Hold()
	if hold == 0 {
		return append(dst, p...)
	}
	for len(p) > 0 {
		n := min(len(p), max(piece, 2*hold))
		s.buf = append(s.buf, p[:n]...)
		p = p[n:]
		border := len(s.buf) - (hold - 1)
		if len(p) == 0 && s.mode == Text {
			border = max(border, s.lineBorder(border))
		}
		dst = s.emit(dst, border)
	}
	return dst
}

// Room is space of n bytes for the next ones, which Take is told of. It ends
// what an earlier Take gave out.
func (s *Stream) Room(n int) []byte {
	s.drop()
	at := len(s.buf)
	s.buf = slices.Grow(s.buf, n)
	return s.buf[at : at+n : at+n]
}

// Take is Write of the first n bytes of the Room, without a copy of them: what
// may go out now stands where it was read, or where something was replaced in
// memory of the Stream's own, until the next call for Room.
func (s *Stream) Take(n int) []byte {
	s.buf = s.buf[:len(s.buf)+n]
	hold := s.set.Hold()
	if hold == 0 {
		out := s.buf
		s.buf = s.buf[:0]
		return out
	}
	border := len(s.buf) - (hold - 1)
	if s.mode == Text {
		border = max(border, s.lineBorder(border))
	}
	if border <= s.out {
		return nil
	}
	at := s.out
	found, asItCame := s.look(s.spare[:0], border)
	if asItCame {
		return s.buf[at:border:border]
	}
	s.spare = found
	return found
}

// EndMessage ends a message of a Framed stream: all of it goes out, and no find
// reaches over its end.
func (s *Stream) EndMessage(dst []byte) []byte {
	dst = s.Release(dst)
	s.buf, s.out, s.from, s.words, s.noted, s.odd, s.pure = s.buf[:0], 0, 0, 0, 0, false, true
	return dst
}

// Release lets all that is held go out; it still counts as the beginning of a
// find that goes on behind it.
func (s *Stream) Release(dst []byte) []byte { return s.emit(dst, len(s.buf)) }

// Close ends the body: the rest goes out.
func (s *Stream) Close(dst []byte) []byte { return s.EndMessage(dst) }

// Held is how many of the bytes that were written are kept back.
func (s *Stream) Held() int { return len(s.buf) - s.out }

// Entries are those of the finds since the last call, each once, nil for none.
func (s *Stream) Entries() []string {
	news := s.news
	s.news = nil
	return news
}

// emit lets what is before border go out.
func (s *Stream) emit(dst []byte, border int) []byte {
	if border <= s.out {
		return dst
	}
	at := s.out
	dst, asItCame := s.look(dst, border)
	if asItCame {
		dst = append(dst, s.buf[at:border]...)
	}
	s.drop()
	return dst
}

// look scans for what goes out before border, and appends it where it is not as
// it came. Finds that begin before border are known whole, unless a line break
// or a Release made it.
func (s *Stream) look(dst []byte, border int) (out []byte, asItCame bool) {
	at := s.out
	asItCame = true
	for _, f := range s.reader.scan(s.buf, s.from, s.words, s.odd) {
		if f.end <= at {
			continue
		}
		if f.start >= border {
			break
		}
		if f.start >= s.noted {
			s.news = note(s.news, s.set.secrets[f.pat].entry)
		}
		s.noted = max(s.noted, f.end)
		end := min(f.end, border)
		switch {
		case s.mode == Framed:
			dst = append(dst, s.buf[at:end]...)
			blank(dst[len(dst)-(end-max(at, f.start)):])
		case f.start >= s.out:
			dst = append(dst, s.buf[at:f.start]...)
			dst = append(dst, s.set.instead(f)...)
		}
		at, asItCame = end, false
	}
	if !asItCame {
		dst = append(dst, s.buf[at:border]...)
	}
	s.out = border
	s.again()
	return dst, asItCame
}

// again says from where on the next scan looks: what this one explored it must
// explore again, and the last look-ups may have lacked what comes next.
func (s *Stream) again() {
	s.from = max(0, min(s.reader.first, len(s.buf)-lookAhead))
	s.words = max(0, min(s.reader.first, len(s.buf)-wordsAhead))
}

// drop takes out of the buffer what no find can begin in any more, once it is
// most of it.
func (s *Stream) drop() {
	drop := (s.out - (s.set.Hold() - 1)) &^ (wordsRow - 1)
	if drop <= len(s.buf)/2 {
		return
	}
	s.pure = s.pureBefore(drop)
	s.odd = oddBefore(s.buf, drop, s.odd)
	s.buf = s.buf[:copy(s.buf, s.buf[drop:])]
	s.out, s.from, s.words, s.noted = s.out-drop, max(0, s.from-drop), max(0, s.words-drop), s.noted-drop
}

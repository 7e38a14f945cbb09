package proxy

// Classes of bytes, RFC 9110 section 5.6.2 and 5.5, RFC 9112 section 3.2. The
// target is taken wider than RFC 3986 allows: any byte but controls and space,
// for clients send more, and the rules judge it.
const (
	isToken  = 1 << iota // tchar
	isTarget             // 0x21 to 0x7E and above 0x7F
	isText               // target bytes, space and tab
)

var wireClass = func() (t [256]uint8) {
	for c := 0x21; c < 256; c++ {
		if c != 0x7f {
			t[c] = isTarget | isText
		}
	}
	t[' '], t['\t'] = isText, isText
	for c := range t {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			t[c] |= isToken
		}
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] |= isToken
	}
	return t
}()

// wireEvent is what a lineScan found.
type wireEvent uint8

const (
	needMore  wireEvent = iota // the line is not whole yet, and fine so far
	badByte                    // no continuation makes this a line
	startLine                  // a request line or status line
	fieldLine                  // a field line
	blankLine                  // the line that ends the section
)

// lineScan goes over the lines of a head or a trailer section, each byte once,
// however small the pieces it comes in. Offsets count from the first byte of
// the section, and the same bytes must be there at every call.
type lineScan struct {
	at     int    // the next byte to look at
	line   int    // first byte of the line
	sep    [2]int // the spaces of a request line; sep[0] is the colon of a field line
	part   uint8  // 0, 1, 2: parts of the line that are done
	fields bool   // the start line is behind us, or there is none
	status bool   // the start line is a status line
}

// next looks for the end of the line that begins at s.line. Only after
// startLine and fieldLine is there a line, b[s.line:s.at-2], until advance.
func (s *lineScan) next(b []byte) wireEvent {
	mask := s.mask()
	for s.at < len(b) {
		c := b[s.at]
		if wireClass[c]&mask != 0 {
			s.at++
			continue
		}
		switch {
		case c == '\r':
			if s.at+1 == len(b) {
				return needMore
			}
			if b[s.at+1] != '\n' {
				return badByte
			}
			return s.end()
		case c == ':' && s.fields && s.part == 0 && s.at > s.line,
			c == ' ' && !s.fields && !s.status && s.part < 2 && s.at > s.line && b[s.at-1] != ' ':
			s.sep[s.part] = s.at
			s.part++
			s.at++
			mask = s.mask()
		default:
			return badByte
		}
	}
	return needMore
}

// mask is the class of bytes that may come in this part of the line.
func (s *lineScan) mask() uint8 {
	switch {
	case s.status && !s.fields:
		return isText
	case s.fields && s.part > 0:
		return isText
	case !s.fields && s.part > 0:
		return isTarget
	}
	return isToken
}

// end is called at the CR LF of a line.
func (s *lineScan) end() wireEvent {
	empty := s.at == s.line
	s.at += 2
	switch {
	case empty:
		return blankLine
	case !s.fields && (s.status || s.part == 2):
		return startLine
	case s.fields && s.part == 1:
		return fieldLine
	}
	return badByte
}

// advance begins the next line.
func (s *lineScan) advance() {
	s.line, s.part, s.fields = s.at, 0, true
}

// field gives name and value of the line found, the value without the space
// around it.
func (s *lineScan) field(b []byte) (name, value []byte) {
	return b[s.line:s.sep[0]], trimSpace(b[s.sep[0]+1 : s.at-2])
}

// trimSpace cuts spaces and tabs off both ends (OWS, RFC 9110 section 5.6.3).
func trimSpace(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

// isWord reports whether v is word, which is in lower case, in any case.
func isWord(v []byte, word string) bool {
	if len(v) != len(word) {
		return false
	}
	for i, c := range v {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// eachMember calls f with every member of a comma-separated list that is not
// empty (RFC 9110 section 5.6.1), until f returns false.
func eachMember(v []byte, f func(member []byte) bool) bool {
	for len(v) > 0 {
		i := 0
		for i < len(v) && v[i] != ',' {
			i++
		}
		if m := trimSpace(v[:i]); len(m) > 0 && !f(m) {
			return false
		}
		v = v[min(i+1, len(v)):]
	}
	return true
}

// parseLength reads a Content-Length: digits and nothing else, at most
// 1<<63 - 1 (RFC 9110 section 8.6).
func parseLength(v []byte) (n int64, ok bool) {
	if len(v) == 0 {
		return 0, false
	}
	for _, c := range v {
		d := int64(c) - '0'
		if d < 0 || d > 9 || n > (1<<63-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

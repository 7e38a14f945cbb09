package scan

import (
	"bytes"
	"html"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The definition of a find, written down as it reads in CREDENTIALS.md: from
// every byte of the answer, from every byte of the secret, in every reading.
// It shares nothing with the package but the types Secret, find and reading.

type naive struct {
	secrets []Secret
	p       []byte
	known   map[int][]spelling // what at has told
}

// spelling is one reading of what stands at a place.
type spelling struct {
	n    int
	text string
}

var (
	pctRE   = regexp.MustCompile(`^[%=]([0-9A-Fa-f]{2})`)
	hexRE   = regexp.MustCompile(`^\\x([0-9A-Fa-f]{2})`)
	uRE     = regexp.MustCompile(`^\\u([0-9A-Fa-f]{4})`)
	pairRE  = regexp.MustCompile(`^\\u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})`)
	shortRE = regexp.MustCompile(`^\\["\\/bfnrt]`)
	softRE  = regexp.MustCompile(`^=\r?\n`)
	nameRE  = regexp.MustCompile(`^&([A-Za-z][0-9A-Za-z]*)`)
	decRE   = regexp.MustCompile(`^&#([0-9]+)`)
	xRE     = regexp.MustCompile(`^&#[xX]([0-9A-Fa-f]+)`)
	named   = map[string]string{}
)

func entityNamed(name string) string {
	v, ok := named[name]
	if !ok {
		if v = html.UnescapeString("&" + name + ";"); utf8.RuneCountInString(v) > 2 {
			v = ""
		}
		named[name] = v
	}
	return v
}

func charSpelling(n int, r rune) (out []spelling) {
	if r <= 0 || !utf8.ValidRune(r) {
		return nil
	}
	out = append(out, spelling{n, string(r)})
	if 0x80 <= r && r < 0x100 {
		out = append(out, spelling{n, string([]byte{byte(r)})})
	}
	return out
}

func (x *naive) at(i int) []spelling {
	if i >= len(x.p) {
		return nil
	}
	out, ok := x.known[i]
	if !ok {
		if x.known == nil {
			x.known = map[int][]spelling{}
		}
		out = x.read(i)
		x.known[i] = out
	}
	return out
}

func (x *naive) read(i int) (out []spelling) {
	t := x.p[i:]
	t = t[:min(len(t), 60)]
	out = append(out, spelling{1, string(t[:1])})
	if t[0] == '+' {
		out = append(out, spelling{1, " "})
	}
	for _, re := range []*regexp.Regexp{pctRE, hexRE} {
		if m := re.FindSubmatch(t); m != nil {
			v, _ := strconv.ParseUint(string(m[1]), 16, 8)
			out = append(out, spelling{len(m[0]), string([]byte{byte(v)})})
		}
	}
	if m := uRE.FindSubmatch(t); m != nil {
		v, _ := strconv.ParseUint(string(m[1]), 16, 32)
		out = append(out, charSpelling(6, rune(v))...)
	}
	if m := pairRE.FindSubmatch(t); m != nil {
		a, _ := strconv.ParseUint(string(m[1]), 16, 32)
		b, _ := strconv.ParseUint(string(m[2]), 16, 32)
		out = append(out, charSpelling(12, rune((a-0xD800)<<10+(b-0xDC00)+0x10000))...)
	}
	if shortRE.Match(t) {
		v, _ := strconv.Unquote(`"` + string(bytes.ReplaceAll(t[:2], []byte("/"), []byte("x2F"))) + `"`)
		out = append(out, spelling{2, v})
	}
	semi := func(n int) []int {
		if n < len(t) && t[n] == ';' {
			return []int{n, n + 1}
		}
		return []int{n}
	}
	if m := nameRE.FindSubmatch(t); m != nil {
		for k := 2; k <= len(m[1]); k++ {
			if v := entityNamed(string(m[1][:k])); v != "" {
				for _, n := range semi(k + 1) {
					out = append(out, spelling{n, v})
					if r, size := utf8.DecodeRuneInString(v); size == len(v) && r < 0x100 {
						out = append(out, spelling{n, string([]byte{byte(r)})})
					}
				}
			}
		}
	}
	for base, re := range map[int]*regexp.Regexp{10: decRE, 16: xRE} {
		if m := re.FindSubmatchIndex(t); m != nil {
			for k := m[2] + 1; k <= min(m[3], maxEscape-1); k++ {
				if v, err := strconv.ParseUint(string(t[m[2]:k]), base, 32); err == nil {
					for _, n := range semi(k) {
						out = append(out, charSpelling(n, rune(v))...)
					}
				}
			}
		}
	}
	return out
}

func (x *naive) soft(i int) int {
	if i >= len(x.p) {
		return 0
	}
	return len(softRE.Find(x.p[i:min(len(x.p), i+3)]))
}

// lineBreaks are the lengths of the line breaks between digits at i.
func (x *naive) lineBreaks(i int) (out []int) {
	if n := x.soft(i); n > 0 {
		out = append(out, n)
	}
	for _, a := range x.at(i) {
		if len(a.text) == 1 && letterValue[a.text[0]] != 0xFF {
			return nil
		}
	}
	for _, a := range x.at(i) {
		if a.text == "\n" {
			out = append(out, a.n)
		}
		if a.text == "\r" {
			for _, b := range x.at(i + a.n) {
				if b.text == "\n" {
					out = append(out, a.n+b.n)
				}
			}
		}
	}
	return out
}

// digitsAt are the digits at i, with first false also those behind a line break.
func (x *naive) digitsAt(i int, first bool) (out []digit) {
	starts := []int{i}
	if !first {
		for _, n := range x.lineBreaks(i) {
			starts = append(starts, i+n)
		}
	}
	for _, at := range starts {
		for _, u := range x.at(at) {
			if len(u.text) == 1 && letterValue[u.text[0]] != 0xFF {
				out = append(out, digit{u.text[0], at, at + u.n})
			}
		}
	}
	return out
}

// reach calls hit for every run of v from byte j0 on that is spelled from i on,
// with the byte of v and the place where it ends.
func (x *naive) reach(read reading, v []byte, i, j0 int, hit func(j, end int)) {
	type key struct{ a, b int }
	done := map[key]bool{}
	var text, hex, base64, wide func(i, j int)
	text = func(i, j int) {
		if done[key{i, j}] {
			return
		}
		done[key{i, j}] = true
		for _, u := range x.at(i) {
			if !bytes.HasPrefix(v[j:], []byte(u.text)) {
				continue
			}
			end := i + u.n
			hit(j+len(u.text), end)
			text(end, j+len(u.text))
			for n := 0; n < 4 && x.soft(end) > 0; n++ {
				end += x.soft(end)
				text(end, j+len(u.text))
			}
		}
	}
	hex = func(i, j int) { // j counts half bytes
		if done[key{i, j}] || j == 2*len(v) {
			return
		}
		done[key{i, j}] = true
		for _, d := range x.digitsAt(i, j == 2*j0) {
			want := v[j/2] >> 4
			if j%2 == 1 {
				want = v[j/2] & 15
			}
			if hexValue[d.c] == want {
				if j%2 == 1 {
					hit((j+1)/2, d.next)
				}
				hex(d.next, j+1)
			}
		}
	}
	bit := func(k int) byte { return v[k/8] >> (7 - k%8) & 1 }
	base64 = func(i, at int) { // at is the bit of v that the letter begins with
		if done[key{i, at}] {
			return
		}
		done[key{i, at}] = true
		for _, d := range x.digitsAt(i, at <= 8*j0) {
			k := 0
			for ; k < 6 && at+k < 8*len(v); k++ {
				if at+k >= 8*j0 && letterValue[d.c]>>(5-k)&1 != bit(at+k) {
					break
				}
			}
			if whole := (at + k) / 8; whole*8 > at && whole > j0 {
				hit(whole, d.next)
			}
			if k == 6 {
				base64(d.next, at+6)
			}
		}
	}
	wide = func(i, j int) {
		for _, n := range []int{2, 4} {
			if i+n > len(x.p) {
				continue
			}
			var units []uint64
			for k := i; k < i+n; k += 2 {
				a, b := uint64(x.p[k]), uint64(x.p[k+1])
				if read == asUTF16LE {
					a, b = b, a
				}
				units = append(units, a<<8|b)
			}
			r := rune(units[0])
			if n == 4 {
				if units[0]>>10 != 0x36 || units[1]>>10 != 0x37 {
					continue
				}
				r = rune((units[0]&0x3FF)<<10+(units[1]&0x3FF)) + 0x10000
			}
			for _, u := range charSpelling(n, r) {
				if bytes.HasPrefix(v[j:], []byte(u.text)) {
					hit(j+len(u.text), i+n)
					wide(i+n, j+len(u.text))
				}
			}
		}
	}
	switch read {
	case asText:
		text(i, j0)
	case asHex:
		hex(i, 2*j0)
	case asBase64:
		for _, bits := range []int{0, 2, 4} {
			clear(done)
			base64(i, 8*j0-bits)
		}
	default:
		wide(i, j0)
	}
}

// all are the finds, those of each place and reading as far as they go on.
func (x *naive) all() (out []find) {
	for k, s := range x.secrets {
		n := len(s.Value)
		least := (2*n + 2) / 3
		if least < 16 {
			least = 16
		}
		if n < 16 {
			least = n
		}
		for i := range x.p {
			for read := asText; read <= asUTF16BE; read++ {
				best := 0
				for j := 0; j+least <= n; j++ {
					x.reach(read, s.Value, i, j, func(to, end int) {
						if to-j >= least && end-i <= 12*n {
							best = max(best, end)
						}
					})
				}
				if best > 0 {
					out = append(out, find{i, best, uint16(k), read})
				}
			}
		}
	}
	return out
}

var escapeStart = regexp.MustCompile(`\\(u[0-9A-Fa-f]{0,3})?$`)

// finds are those of all in their order, without twins and joined where they
// overlap.
func (x *naive) finds() (out []find) {
	all := x.all()
	for k := range all {
		f := &all[k]
		limit := 12 * len(x.secrets[f.pat].Value)
		if f.read >= asUTF16LE {
			continue
		}
		if m := escapeStart.FindIndex(x.p[:f.start]); m != nil && odd(x.p[:m[0]+1]) && f.end-m[0] <= limit {
			f.start = m[0]
		}
		if odd(x.p[:f.end]) && f.end < len(x.p) && x.p[f.end] == '"' && f.end+1-f.start <= limit {
			f.end++
		}
	}
	for _, f := range all {
		twin := f.read >= asUTF16LE && f.start%2 == 1 && slices.ContainsFunc(all, func(g find) bool {
			return g.read >= asUTF16LE && g.read != f.read && g.start%2 == 0 && g.start <= f.start+1 && f.end <= g.end+1
		})
		if !twin {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b find) int {
		if a.start != b.start {
			return a.start - b.start
		}
		if a.end != b.end {
			return b.end - a.end
		}
		return int(a.pat) - int(b.pat)
	})
	for k := 0; k+1 < len(out); {
		if out[k+1].start < out[k].end {
			out[k].end = max(out[k].end, out[k+1].end)
			out = slices.Delete(out, k+1, k+2)
			continue
		}
		k++
	}
	return out
}

func odd(p []byte) bool {
	return (len(p)-len(bytes.TrimRight(p, `\`)))%2 == 1
}

// naiveStream is a Stream that keeps all and scans all again at each write.
type naiveStream struct {
	secrets []Secret
	hold    int
	mode    Mode
	all     []byte
	out     int
}

func (s *naiveStream) write(p []byte) []byte {
	s.all = append(s.all, p...)
	border := len(s.all) - (s.hold - 1)
	if s.mode == Text {
		at := 0
		for line := range bytes.SplitAfterSeq(s.all, []byte("\n")) {
			at += len(line)
			text, ended := bytes.CutSuffix(line, []byte("\n"))
			text = bytes.TrimSuffix(text, []byte("\r"))
			if ended && !unfinished.Match(text) {
				border = max(border, at)
			}
		}
	}
	return s.emit(border)
}

var unfinished = regexp.MustCompile(`^[A-Za-z0-9+/_=-]+$|=$`)

func (s *naiveStream) release() []byte { return s.emit(len(s.all)) }

func (s *naiveStream) emit(border int) (dst []byte) {
	if border <= s.out {
		return nil
	}
	finds := (&naive{secrets: s.secrets, p: s.all}).finds()
	for i := s.out; i < border; i++ {
		in := slices.IndexFunc(finds, func(f find) bool { return f.start <= i && i < f.end })
		switch {
		case in < 0:
			dst = append(dst, s.all[i])
		case s.mode == Framed:
			dst = append(dst, '*')
		case finds[in].start == i:
			dst = append(dst, instead(s.secrets[finds[in].pat].Replacement, finds[in].read)...)
		}
	}
	s.out = border
	return dst
}

func instead(text string, read reading) []byte {
	if read < asUTF16LE {
		return []byte(text)
	}
	var out []byte
	for _, c := range []byte(text) {
		if read == asUTF16LE {
			out = append(out, c, 0)
		} else {
			out = append(out, 0, c)
		}
	}
	return out
}

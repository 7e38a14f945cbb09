package rules

import "strings"

// Servers disagree about what a path means: whether %2F is a slash, a backslash
// is one, repeated slashes are one, what stands behind a semicolon counts, and
// how often escapes are decoded. A path therefore has readings: four rounds
// (escapes normalised; decoded once, twice, three times), each under every
// subset of three changes made in this order.
const (
	changeBackslash = 1 << iota // "\" becomes "/"
	changeParams                // ";" and what follows it in a segment is cut
	changeCollapse              // repeated slashes become one
	changes         = 1 << iota // how many subsets there are

	rounds   = 4
	readings = rounds * changes
)

// maxPath is the longest path that is read, in bytes: readings cost memory and
// time, and no server takes more by default.
const maxPath = 16 << 10

// Why a path is refused (400 ambiguous_path).
const (
	ambiguousDots     = "a dot segment in one of its readings"
	ambiguousControl  = "a control character once it is decoded"
	ambiguousOverlong = "an over-long UTF-8 form (RFC 3629 10)"
	ambiguousRounds   = "still percent-encoded after three rounds of decoding"
)

// expand gives the readings of a path, reading r*changes+c being round r under
// the changes c, and why the path is refused, "" if it is not. Escapes of path
// must be well formed.
func expand(path string) (texts [readings]string, why string) {
	base := decodings(path)
	for _, text := range base {
		switch {
		case holdsControl(text):
			return texts, ambiguousControl
		case holdsOverlong(text):
			return texts, ambiguousOverlong
		}
	}
	vary(&texts, base)
	for i, text := range texts {
		if i > 0 && text == texts[i-1] {
			continue
		}
		if holdsDots(text) {
			return texts, ambiguousDots
		}
	}
	if last := base[rounds-1]; holdsEscape(last) {
		return texts, ambiguousRounds
	}
	return texts, ""
}

// vary fills in every subset of changes for every round.
func vary(texts *[readings]string, base [rounds]string) {
	for r, text := range base {
		if r > 0 && text == base[r-1] {
			copy(texts[r*changes:(r+1)*changes], texts[(r-1)*changes:])
			continue
		}
		for c := range changes {
			texts[r*changes+c] = change(text, c)
		}
	}
}

// change makes the changes of a set, in their order.
func change(text string, set int) string {
	if set&changeBackslash != 0 {
		text = strings.ReplaceAll(text, `\`, "/")
	}
	if set&changeParams != 0 {
		text = cutParams(text)
	}
	if set&changeCollapse != 0 {
		text = collapse(text)
	}
	return text
}

// decodings are the rounds of a path: with escapes normalised (RFC 3986 6.2.2),
// then decoded once, twice and three times.
func decodings(path string) (base [rounds]string) {
	base[0] = normalise(path)
	base[1] = decode(path)
	for r := 2; r < rounds; r++ {
		base[r] = decode(base[r-1])
	}
	return base
}

// isEscape says whether s begins with "%" and two hex digits.
func isEscape(s string) bool {
	return len(s) >= 3 && s[0] == '%' && hexValue(s[1]) >= 0 && hexValue(s[2]) >= 0
}

// hexValue is the value of a hex digit, -1 for another byte.
func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// holdsEscape says whether s is percent-encoded somewhere.
func holdsEscape(s string) bool {
	for i := strings.IndexByte(s, '%'); i >= 0 && i < len(s); i++ {
		if isEscape(s[i:]) {
			return true
		}
	}
	return false
}

// brokenEscape says whether a percent sign lacks its two hex digits.
func brokenEscape(s string) bool {
	for i := strings.IndexByte(s, '%'); i >= 0 && i < len(s); i++ {
		if s[i] == '%' && !isEscape(s[i:]) {
			return true
		}
	}
	return false
}

// decode decodes every escape once; a percent sign without two hex digits is a
// letter.
func decode(s string) string {
	if !holdsEscape(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if isEscape(s[i:]) {
			b = append(b, byte(hexValue(s[i+1])<<4|hexValue(s[i+2])))
			i += 2
		} else {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// unreserved are the letters that mean the same escaped (RFC 3986 2.3).
var unreserved = byteSet("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")

// normalise decodes escapes of unreserved letters and writes the hex digits of
// the others in upper case.
func normalise(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if !isEscape(s[i:]) {
			b = append(b, s[i])
			continue
		}
		if c := byte(hexValue(s[i+1])<<4 | hexValue(s[i+2])); unreserved[c] {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex(s[i+1]), upperHex(s[i+2]))
		}
		i += 2
	}
	return string(b)
}

func upperHex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 'A'
	}
	return c
}

// cutParams cuts ";" and what follows it from every segment.
func cutParams(s string) string {
	if strings.IndexByte(s, ';') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	cut := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ';':
			cut = true
		case '/':
			cut = false
		}
		if !cut {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// collapse makes one slash of several.
func collapse(s string) string {
	if !strings.Contains(s, "//") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '/' || i == 0 || s[i-1] != '/' {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// holdsControl looks for NUL, control bytes, DEL, and U+0080 to U+009F.
func holdsControl(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 || c == 0x7F || c == 0xC2 && i+1 < len(s) && 0x80 <= s[i+1] && s[i+1] <= 0x9F {
			return true
		}
	}
	return false
}

// holdsOverlong looks for UTF-8 that is longer than it need be, the five- and
// six-byte forms of old included: a lenient decoder makes "/" or "." of it.
func holdsOverlong(s string) bool {
	for i := 0; i+1 < len(s); i++ {
		next, follow := s[i+1], 0
		switch c := s[i]; {
		case c == 0xC0 || c == 0xC1:
			follow = 1
		case c == 0xE0 && next < 0xA0:
			follow = 2
		case c == 0xF0 && next < 0x90:
			follow = 3
		case c == 0xF8 && next < 0x88:
			follow = 4
		case c == 0xFC && next < 0x84:
			follow = 5
		}
		if follow == 0 || i+follow >= len(s) {
			continue
		}
		n := 0
		for n < follow && s[i+1+n]&0xC0 == 0x80 {
			n++
		}
		if n == follow {
			return true
		}
	}
	return false
}

// holdsDots says whether a segment of s is a dot segment, or would be the last
// one if the path ended at its first "?" or "#".
func holdsDots(s string) bool {
	start := 0
	cut := strings.IndexAny(s, "?#")
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == '/':
			if isDots(s[start:i]) {
				return true
			}
			start = i + 1
		case i == cut && isDots(s[start:i]):
			return true
		}
	}
	return false
}

// isDots knows "." and "..", also with spaces behind them, and with further
// dots behind those: some file systems drop both from the end of a name.
func isDots(seg string) bool {
	if seg == "" || seg[0] != '.' {
		return false
	}
	n := 1
	if len(seg) > 1 && seg[1] == '.' {
		n = 2
	}
	return len(seg) == n || seg[n] == ' ' && strings.Trim(seg[n:], " .") == ""
}

package credbroker

import "strings"

// escaped is the byte that the escape at s[i] spells; false where there is none.
func escaped(s string, i int) (byte, bool) {
	if i+2 >= len(s) || s[i] != '%' {
		return 0, false
	}
	high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

func hexDigit(c byte) int {
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

// decodeOnce decodes every escape once; a percent sign without two digits is a
// letter. It is s itself where there is nothing to decode.
func decodeOnce(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c, ok := escaped(s, i)
		if !ok {
			c = s[i]
		} else {
			i += 2
		}
		b = append(b, c)
	}
	return string(b)
}

// decoded is a text after some rounds of decoding, and for each of its bytes
// the place in the text as sent that it comes from; one place more is the end.
type decoded struct {
	text  string
	start []int
}

func asSent(s string) decoded {
	start := make([]int, len(s)+1)
	for i := range start {
		start[i] = i
	}
	return decoded{s, start}
}

// next is one more round; false where there is nothing left to decode. With
// form, "+" is a space.
func (d decoded) next(form bool) (decoded, bool) {
	if !strings.Contains(d.text, "%") && !(form && strings.Contains(d.text, "+")) {
		return d, false
	}
	b, start, changed := make([]byte, 0, len(d.text)), make([]int, 0, len(d.text)+1), false
	for i := 0; i < len(d.text); i++ {
		start = append(start, d.start[i])
		c, ok := escaped(d.text, i)
		switch {
		case ok:
			i += 2
		case form && d.text[i] == '+':
			c, ok = ' ', true
		default:
			c = d.text[i]
		}
		b, changed = append(b, c), changed || ok
	}
	return decoded{string(b), append(start, d.start[len(d.text)])}, changed
}

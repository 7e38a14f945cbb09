package seatbelt

import (
	"fmt"
	"strings"
)

// quote writes a string of Scheme: the quote and the backslash are escaped, and
// everything else stands for itself.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// plain are characters that mean themselves in a regular expression.
const plain = "/_-,:@%~=!#&' "

// special are characters that a backslash makes mean themselves.
const special = ".+*?(){}|$"

// pattern writes a path as the middle of a regular expression that no quote ends.
// What no dialect spells in the same way, and what is not ASCII, which the file
// system stores in more than one way, is matched by anything but a slash. So it
// is for rules that deny: they may deny a little more.
func pattern(s string, fold bool) string {
	var b strings.Builder
	loose := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0:
			b.WriteByte(c)
		case letter(c) && fold:
			b.WriteString(folded(c))
		case letter(c):
			b.WriteByte(c)
		case strings.IndexByte(special, c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			if !loose {
				b.WriteString("[^/]+")
			}
			loose = true
			continue
		}
		loose = false
	}
	return b.String()
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// folded matches a letter in either case. Two letters have a third form: a file
// system that ignores case takes the Kelvin sign for a k and the long s for an s.
func folded(c byte) string {
	lower, upper := c|0x20, c&^0x20
	switch lower {
	case 'k':
		return "(k|K|\u212a)"
	case 's':
		return "(s|S|\u017f)"
	}
	return fmt.Sprintf("[%c%c]", lower, upper)
}

// raw is a literal of a regular expression. The text holds no quote.
func raw(text string) string { return `#"` + text + `"` }

// anyName is what may stand in a name.
const anyName = "[^/]*"

// pattern matches the dot names below a folder, and what lies in them, but for
// the exceptions. The language has no way to say "not", so what differs from
// every exception is spelled out letter by letter.
func (d Dots) pattern() (string, error) {
	var words []string
	for _, name := range d.Except {
		word, ok := strings.CutPrefix(name, ".")
		if !ok {
			continue // no dot name
		}
		for i := 0; i < len(word); i++ {
			if c := word[i]; !letter(c) && (c < '0' || c > '9') && strings.IndexByte("._+@~", c) < 0 && c != '-' {
				return "", fmt.Errorf("writing a profile: the dot name %q is not of letters, digits and ._+@~-", name)
			}
		}
		words = append(words, word)
	}
	at := "^" + strings.TrimSuffix(pattern(d.Path, false), "/") + "/"
	if d.Deep {
		at += "(.*/)?"
	}
	return at + `\.` + others(words) + "(/.*)?$", nil
}

// others matches every rest of a name that is none of the words.
func others(words []string) string {
	if len(words) == 0 {
		return anyName
	}
	next := map[byte][]string{}
	var order []byte
	ends := false
	for _, w := range words {
		if w == "" {
			ends = true
			continue
		}
		if _, ok := next[w[0]]; !ok {
			order = append(order, w[0])
		}
		next[w[0]] = append(next[w[0]], w[1:])
	}
	class := "[^/"
	for _, c := range order {
		if c != '-' {
			class += string(c)
		}
	}
	if _, ok := next['-']; ok {
		class += "-" // last, where it means itself
	}
	out := class + "]" + anyName
	for _, c := range order {
		head := string(c)
		if strings.IndexByte(special, c) >= 0 {
			head = `\` + head
		}
		out += "|" + head + others(next[c])
	}
	if ends {
		return "(" + out + ")"
	}
	return "(" + out + ")?" // the beginning of a word alone is another name
}

package remains

import "strings"

// setting is one line of a git config: section and key in small letters.
type setting struct{ section, sub, key, value string }

// settings reads a git config file. What git would refuse is passed over: the
// rest is read all the same, since a later write may repair it.
func settings(text string) []setting {
	var out []setting
	var section, sub string
	p := configText{text}
	for p.rest != "" {
		p.blank()
		switch {
		case p.rest == "":
		case p.rest[0] == '\n':
			p.rest = p.rest[1:]
		case p.rest[0] == '#' || p.rest[0] == ';':
			p.line()
		case p.rest[0] == '[':
			section, sub = p.header()
		default:
			if key, value := p.entry(); key != "" {
				out = append(out, setting{section, sub, key, value})
			}
		}
	}
	return out
}

type configText struct{ rest string }

func (p *configText) blank() { p.rest = strings.TrimLeft(p.rest, " \t\r\ufeff") }

// line takes the rest of a line.
func (p *configText) line() string {
	line, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest
	return line
}

// header reads [section], [section "sub"] or [section.sub]. An entry may stand
// behind it on the same line.
func (p *configText) header() (section, sub string) {
	p.rest = p.rest[1:]
	end := strings.IndexAny(p.rest, "] \t\"\n")
	if end < 0 {
		p.rest = ""
		return "", ""
	}
	section, sub, _ = strings.Cut(strings.ToLower(p.rest[:end]), ".")
	p.rest = strings.TrimLeft(p.rest[end:], " \t")
	if strings.HasPrefix(p.rest, `"`) {
		var b strings.Builder
		i := 1
		for ; i < len(p.rest) && p.rest[i] != '"' && p.rest[i] != '\n'; i++ {
			if p.rest[i] == '\\' && i+1 < len(p.rest) {
				i++
			}
			b.WriteByte(p.rest[i])
		}
		sub, p.rest = b.String(), p.rest[min(i+1, len(p.rest)):]
	}
	if at := strings.IndexAny(p.rest, "]\n"); at >= 0 && p.rest[at] == ']' {
		p.rest = p.rest[at+1:]
	} else {
		p.line()
	}
	return section, sub
}

// entry reads NAME, or NAME = VALUE, whose value may go on over lines that end
// in a backslash.
func (p *configText) entry() (key, value string) {
	end := strings.IndexAny(p.rest, "=\n#;")
	if end < 0 {
		end = len(p.rest)
	}
	key = strings.ToLower(strings.TrimSpace(p.rest[:end]))
	p.rest = p.rest[end:]
	if !strings.HasPrefix(p.rest, "=") {
		p.line()
		return key, "true"
	}
	p.rest = p.rest[1:]
	p.blank()
	return key, p.value()
}

func (p *configText) value() string {
	var b strings.Builder
	quoted, keep := false, 0 // what stands before keep is no blank at the end
	i := 0
	for ; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '\n':
			p.rest = p.rest[i:]
			return b.String()[:keep]
		case c == '"':
			quoted = !quoted
			continue
		case c == '\\' && i+1 < len(p.rest):
			i++
			if p.rest[i] == '\r' && strings.HasPrefix(p.rest[i:], "\r\n") {
				i++
			}
			switch p.rest[i] {
			case '\n':
				continue
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			default:
				c = p.rest[i]
			}
			b.WriteByte(c)
			keep = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			p.rest = p.rest[i:]
			return b.String()[:keep]
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' && c != '\r' {
			keep = b.Len()
		}
	}
	p.rest = ""
	return b.String()[:keep]
}

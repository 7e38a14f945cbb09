package rules

import "strings"

// clause is one parameter of a rule's query and the pattern of its value. For a
// deny rule both are folded.
type clause struct {
	name, value string // value with marked stars
	folded      []string
}

// compileQuery makes clauses of a rule's query.
func compileQuery(r *Rule) []clause {
	if len(r.Query) == 0 {
		return nil
	}
	list := make([]clause, 0, len(r.Query))
	for name, value := range r.Query {
		c := clause{name: name, value: strings.ReplaceAll(value, "*", markStar)}
		if r.Deny {
			c.name = foldCase(name)
			c.folded = appendFolded(nil, c.value)
		}
		list = append(list, c)
	}
	return list
}

// allowQuery says whether a query fits the clauses of an allow rule: it can be
// parsed, no ";" stands in it, and each named parameter is there once, decoded
// once, and fits.
func allowQuery(clauses []clause, query string) bool {
	if len(clauses) == 0 {
		return true
	}
	if strings.IndexByte(query, ';') >= 0 || brokenEscape(query) {
		return false
	}
	for i := range clauses {
		found := 0
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if pair == "" || decodeForm(name) != clauses[i].name {
				continue
			}
			found++
			if found > 1 || !matchStars(clauses[i].value, decodeForm(value), false) {
				return false
			}
		}
		if found == 0 {
			return false
		}
	}
	return true
}

// denyQuery says whether a query hits the clauses of a deny rule: it cannot be
// parsed, or any occurrence of each named parameter fits, decoded once or
// twice, with "&" alone or with ";" too between parameters. tails are what cuts
// took off the path; there a lone percent sign is a letter.
func denyQuery(clauses []clause, query string, tails []string) bool {
	if len(clauses) == 0 || brokenEscape(query) {
		return true
	}
	for i := range clauses {
		if !clauses[i].occurs(query) && !clauses[i].occursIn(tails) {
			return false
		}
	}
	return true
}

func (c *clause) occursIn(tails []string) bool {
	for _, tail := range tails {
		query := strings.TrimLeft(tail, "?#")
		if c.occurs(query) {
			return true
		}
		// The query of a tail may end at a number sign, or begin behind one.
		for part := range strings.SplitSeq(query, "#") {
			if c.occurs(part) || c.occurs(part[strings.IndexByte(part, '?')+1:]) {
				return true
			}
		}
	}
	return false
}

// occurs looks for one parameter that fits, under every way of parting them.
func (c *clause) occurs(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		if c.fits(pair) {
			return true
		}
		if strings.IndexByte(pair, ';') < 0 {
			continue
		}
		for part := range strings.SplitSeq(pair, ";") {
			if part != "" && c.fits(part) {
				return true
			}
		}
	}
	return false
}

func (c *clause) fits(pair string) bool {
	name, value, _ := strings.Cut(pair, "=")
	once := decodeForm(name)
	if foldCase(once) != c.name && foldCase(decodeForm(once)) != c.name {
		return false
	}
	once = decodeForm(value)
	return c.hits(once) || c.hits(decodeForm(once))
}

func (c *clause) hits(value string) bool {
	for _, pat := range c.folded {
		if matchStars(pat, lowerASCII(value), false) || matchStars(pat, foldCase(value), false) {
			return true
		}
	}
	return false
}

// decodeForm decodes once as forms are: "+" is a space. A percent sign without
// two hex digits is a letter.
func decodeForm(s string) string {
	return decode(strings.ReplaceAll(s, "+", " "))
}

package rules

import (
	"fmt"
	"strings"
)

// ParseError tells what is wrong with a rule.
type ParseError struct {
	Kind    string // unknown_method, bad_host, … (cases/README.md, rules_parse)
	Key     string // the key of the mapping that is at fault, "" for the whole
	Offset  int    // bytes from the start of the rule's text to Text
	Text    string // the text that offends
	Problem string // what is wrong with it, in words
	Suggest string // a corrected rule, "" where none can be guessed
}

// Error is "KIND: what is wrong", with the offending text and a suggestion.
func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(e.Kind + ": ")
	b.WriteString(e.Problem)
	if e.Text != "" {
		fmt.Fprintf(&b, " (%q)", clip(e.Text))
	}
	if e.Suggest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Suggest)
	}
	return b.String()
}

// fault is a ParseError still without its place.
func fault(kind, problem string) *ParseError { return &ParseError{Kind: kind, Problem: problem} }

// blanks are what may stand around a rule; inside one only space and tab part
// methods and target.
const blanks = " \t\r\n\v\f"

// Parse reads a rule as a policy writes it. The error is a *ParseError.
func Parse(text string) (Rule, error) {
	var p parser
	p.text = text
	if err := p.parse(); err != nil {
		return Rule{}, err
	}
	return p.rule, nil
}

// parser holds the text that offsets are counted in and the rule so far.
type parser struct {
	text string
	rule Rule
}

func (p *parser) parse() error {
	body := strings.Trim(p.text, blanks)
	at := strings.Index(p.text, body)
	if body == "" {
		return p.at(fault("empty_rule", "a rule is METHOD HOST/PATH, such as GET api.example.com/v1/**"), 0, "")
	}
	if body[0] == '!' {
		p.rule.Deny = true
		body, at = body[1:], at+1
	}
	words, rest := body, ""
	if i := strings.IndexAny(body, " \t"); i >= 0 {
		words, rest = body[:i], body[i:]
	}
	if err := p.methods(words, at); err != nil {
		return err
	}
	target := strings.TrimLeft(rest, " \t")
	at += len(words) + len(rest) - len(target)
	if target == "" {
		return p.at(fault("missing_target", "a rule is METHOD HOST/PATH, and a host is missing"), at, words)
	}
	if i := strings.IndexAny(target, blanks); i >= 0 {
		e := fault("extra_text", "a rule ends with its target, and a blank in a target is written %20")
		return p.at(e, at+i, strings.Trim(target[i:], blanks))
	}
	return p.target(target, at)
}

// methods reads the method list.
func (p *parser) methods(words string, at int) error {
	if words == "*" {
		p.rule.Methods = []string{"*"}
		return nil
	}
	pos, tunnel := at, -1
	for word := range strings.SplitSeq(words, ",") {
		upper := upperASCII(word)
		switch {
		case word == "":
			return p.at(fault("empty_method", "a method list has a method between its commas, and no space behind the !"), pos, words)
		case !knownMethods[upper]:
			e := fault("unknown_method", "a rule is METHOD HOST/PATH, and this is no HTTP method; * stands alone for any")
			if e.Suggest = p.nearMethod(word, pos); e.Suggest == "" {
				e.Suggest = p.methodless(words, at)
			}
			return p.at(e, pos, word)
		case upper == connect:
			tunnel = pos
		}
		if !contains(p.rule.Methods, upper) {
			p.rule.Methods = append(p.rule.Methods, upper)
		}
		pos += len(word) + 1
	}
	if tunnel >= 0 && len(p.rule.Methods) > 1 {
		return p.at(fault("connect_alone", "CONNECT is the only method of its rule"), tunnel, connect)
	}
	p.rule.Tunnel = tunnel >= 0
	return nil
}

// at gives a fault its place.
func (p *parser) at(e *ParseError, offset int, text string) *ParseError {
	e.Offset, e.Text = offset, text
	return e
}

// instead is the rule's text with another text at a place, as a suggestion; it
// is none if it would not parse either.
func (p *parser) instead(offset int, old, repl string) string {
	s := strings.Trim(p.text[:offset]+repl+p.text[offset+len(old):], blanks)
	if s == p.text {
		return ""
	}
	if _, err := Parse(s); err != nil {
		return ""
	}
	return s
}

// nearMethod suggests the rule with the registered method that is one letter
// or one swap away from word.
func (p *parser) nearMethod(word string, offset int) string {
	upper := upperASCII(word)
	if upper == "" || len(upper) > 20 {
		return ""
	}
	for _, m := range methodNames {
		if m != connect && near(upper, m) {
			q := parser{text: p.text[:offset] + m + p.text[offset+len(word):]}
			if q.parse() == nil {
				return strings.Trim(q.text, blanks)
			}
		}
	}
	return ""
}

// methodless suggests a method where the whole rule is a target.
func (p *parser) methodless(words string, at int) string {
	if !strings.ContainsAny(words, "./:") || strings.Trim(p.text[at+len(words):], blanks) != "" {
		return ""
	}
	method := "GET "
	if p.rule.Deny {
		method = "* "
	}
	return p.instead(at, words, method+words)
}

// near says whether a is b with one letter changed, added, left out, or with
// two neighbours swapped.
func near(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch {
	case len(a) == len(b) && len(a) >= 2 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]:
		return true
	case len(a) == len(b) && len(a) >= 1:
		return a[1:] == b[1:]
	case len(a) == len(b)+1:
		return a[1:] == b
	case len(a)+1 == len(b):
		return a == b[1:]
	}
	return false
}

// upperASCII is s in upper case. Other letters stay: "ſearch" is no SEARCH.
func upperASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if 'a' <= s[i] && s[i] <= 'z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'a' <= b[i] && b[i] <= 'z' {
					b[i] -= 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// methodNames is the HTTP Method Registry of IANA without PRI, which only opens
// HTTP/2, and without "*".
var methodNames = []string{
	"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", connect, "COPY",
	"DELETE", "GET", "HEAD", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY",
	"MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS",
	"ORDERPATCH", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PUT", "QUERY",
	"REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND", "UNCHECKOUT", "UNLINK",
	"UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
}

var knownMethods = func() map[string]bool {
	m := make(map[string]bool, len(methodNames))
	for _, name := range methodNames {
		m[name] = true
	}
	return m
}()

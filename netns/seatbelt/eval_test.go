package seatbelt_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A profile that is read back, and a question to it: the part of the language
// that this package writes, so that what a profile says is tested without a Mac.

// node is an atom or a list of the language.
type node struct {
	atom   string
	quoted bool // a string, of either kind
	list   []node
	isList bool
}

// parse reads a whole text. It knows two kinds of strings: "…" with the escapes
// of Scheme, and #"…", in which a backslash means itself.
func parse(text string) ([]node, error) {
	var stack [][]node
	var top []node
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\n' || c == '\t':
			i++
		case c == ';':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '(':
			stack, top = append(stack, top), nil
			i++
		case c == ')':
			if len(stack) == 0 {
				return nil, fmt.Errorf("a bracket too many at %d", i)
			}
			done := node{list: top, isList: true}
			top = append(stack[len(stack)-1], done)
			stack = stack[:len(stack)-1]
			i++
		case c == '"', strings.HasPrefix(text[i:], `#"`):
			literal := c == '#'
			if literal {
				i++
			}
			i++
			var b strings.Builder
			for ; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' && !literal {
					i++
					if i == len(text) || text[i] != '\\' && text[i] != '"' {
						return nil, fmt.Errorf("an escape of another meaning at %d", i)
					}
				}
				b.WriteByte(text[i])
			}
			if i == len(text) {
				return nil, fmt.Errorf("a string without an end")
			}
			i++
			top = append(top, node{atom: b.String(), quoted: true})
		default:
			end := i
			for end < len(text) && !strings.ContainsRune(" \n\t();\"", rune(text[end])) {
				end++
			}
			top = append(top, node{atom: text[i:end]})
			i = end
		}
	}
	if len(stack) > 0 {
		return nil, fmt.Errorf("%d lists without an end", len(stack))
	}
	return top, nil
}

// question is one thing that a process wants to do.
type question struct {
	op    string
	path  string // of a file
	pty   bool   // the kernel made it for a process of the sandbox
	name  string // of a service, a figure or a piece of shared memory
	self  bool   // the target is a process of the sandbox
	local string // an address, or the path of a unix socket
	peer  string
}

// profile is one that was read back.
type profile struct{ rules []node }

func readProfile(text string) (*profile, error) {
	list, err := parse(text)
	if err != nil {
		return nil, err
	}
	if len(list) < 2 || !list[0].isList || list[0].list[0].atom != "version" {
		return nil, fmt.Errorf("no version")
	}
	return &profile{rules: list[1:]}, nil
}

// allows asks: the last rule that matches decides.
func (p *profile) allows(q question) bool {
	for _, r := range slices.Backward(p.rules) {
		if r.matches(q) {
			return r.list[0].atom == "allow"
		}
	}
	return false
}

func (n node) matches(q question) bool {
	named, filters, any := false, false, false
	for _, part := range n.list[1:] {
		switch {
		case part.isList:
			filters = true
			any = any || part.holds(q)
		case part.atom == "default":
			named = true
		default:
			prefix, wild := strings.CutSuffix(part.atom, "*")
			named = named || part.atom == q.op || wild && strings.HasPrefix(q.op, prefix)
		}
	}
	return named && (!filters || any)
}

func (n node) holds(q question) bool {
	arg := func(i int) string {
		if i < len(n.list) {
			return n.list[i].atom
		}
		return ""
	}
	switch n.list[0].atom {
	case "require-all":
		return !slices.ContainsFunc(n.list[1:], func(f node) bool { return !f.holds(q) })
	case "literal", "path-literal":
		return q.path == arg(1)
	case "subpath":
		return q.path == arg(1) || arg(1) == "/" && q.path != "" || strings.HasPrefix(q.path, arg(1)+"/")
	case "regex":
		return q.path != "" && regexp.MustCompile("(?s)"+arg(1)).MatchString(q.path)
	case "extension":
		return q.pty && arg(1) == "com.apple.sandbox.pty"
	case "global-name", "sysctl-name", "ipc-posix-name":
		return q.name == arg(1)
	case "sysctl-name-prefix":
		return q.name != "" && strings.HasPrefix(q.name, arg(1))
	case "target":
		return q.self && arg(1) == "same-sandbox"
	case "socket-domain":
		return q.name == arg(1)
	case "remote", "local":
		side := q.peer
		if n.list[0].atom == "local" {
			side = q.local
		}
		if arg(1) == "unix-socket" {
			return strings.HasPrefix(side, "/") && n.list[2].holds(question{path: side})
		}
		return side != "" && !strings.HasPrefix(side, "/") && (len(n.list) == 2 || side == arg(2))
	}
	panic("a filter that the test does not know: " + n.list[0].atom)
}

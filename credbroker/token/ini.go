package token

import (
	"bytes"
	"fmt"
	"strings"
)

// section is one section of an INI file.
type section struct {
	name  string
	keys  map[string]string
	fault string // what is wrong in it; "" for nothing
}

// sections reads an INI file as the Databricks tools written in Go do, whose
// word the user's file is proven by:
//
//   - lines are trimmed, and one that begins with # or ; is a comment;
//   - a section's name is all between the brackets; keys before the first
//     section are of DEFAULT;
//   - a key ends at the first = or :, and keeps its case;
//   - a value ends at # or ;, wherever that stands, and loses a pair of quotes
//     around it; in backquotes or triple quotes it is taken as it stands.
//
// DEFAULT is a section like any other: no tool lends its keys to the others,
// and a token must not travel to another's host.
//
// What those tools would read on over several lines is refused with its line,
// wherever it stands, since a section might begin there for one reader and not
// for another. What is wrong in a section otherwise (a line without a key, a
// key twice, a section that comes again) is that section's fault, and stands
// in nobody's way who does not ask for it. No error quotes the file.
func sections(data []byte) ([]*section, error) {
	var list []*section
	var at *section
	known := map[string]*section{}
	enter := func(name string) {
		if at = known[name]; at == nil {
			at = &section{name: name, keys: map[string]string{}}
			known[name], list = at, append(list, at)
		} else {
			at.fault = "the profile stands twice"
		}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			end := strings.LastIndexByte(line, ']')
			if end < 2 {
				return nil, fmt.Errorf("line %d: not a section", i+1)
			}
			enter(line[1:end])
			continue
		}
		if at == nil {
			enter("DEFAULT")
		}
		end := strings.IndexAny(line, "=:")
		if end < 1 {
			at.wrong(i, "neither a key nor a section")
			continue
		}
		key := strings.TrimSpace(line[:end])
		value, ok := iniValue(strings.TrimSpace(line[end+1:]))
		if !ok {
			return nil, fmt.Errorf("line %d: a value of several lines", i+1)
		}
		if _, twice := at.keys[key]; twice {
			at.wrong(i, "a key that stands twice")
		}
		at.keys[key] = value
	}
	return list, nil
}

// wrong notes the first fault of a section, in line i from 0.
func (s *section) wrong(i int, what string) {
	if s.fault == "" {
		s.fault = fmt.Sprintf("line %d: %s", i+1, what)
	}
}

// iniValue reads what stands behind the separator, trimmed; false for what goes
// on in the next line.
func iniValue(s string) (string, bool) {
	for _, quote := range []string{`"""`, "`"} {
		if rest, ok := strings.CutPrefix(s, quote); ok {
			end := strings.LastIndex(rest, quote)
			return rest[:max(end, 0)], end >= 0
		}
	}
	if strings.HasSuffix(s, `\`) {
		return "", false
	}
	if i := strings.IndexAny(s, "#;"); i >= 0 {
		s = strings.TrimSpace(s[:i])
	}
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[0] == s[n-1] {
		s = s[1 : n-1]
	}
	return s, true
}

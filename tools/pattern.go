package tools

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	maxPattern = 1024 // bytes of a glob
	maxChoices = 64   // of its braces, multiplied
)

// pattern is a glob over paths: * ? and [a-z] stay within a name, ** as a whole
// name stands for any number of folders, {a,b} for either.
type pattern struct{ choices [][]string }

func compile(text string) (pattern, error) {
	if text == "" || len(text) > maxPattern {
		return pattern{}, fmt.Errorf("a pattern has between 1 and %d bytes", maxPattern)
	}
	if strings.ContainsRune(text, 0) {
		return pattern{}, errors.New("a pattern cannot hold a NUL")
	}
	texts, err := expand(text)
	if err != nil {
		return pattern{}, err
	}
	var p pattern
	for _, t := range texts {
		names := slices.DeleteFunc(strings.Split(t, "/"), func(n string) bool { return n == "" || n == "." })
		for i, n := range names {
			if n == ".." {
				return pattern{}, errors.New(`".." cannot stand behind a wildcard: say where to start in path`)
			}
			names[i] = negated(n)
			if _, err := path.Match(names[i], ""); err != nil {
				return pattern{}, fmt.Errorf("%s is no pattern", shown(n))
			}
		}
		p.choices = append(p.choices, names)
	}
	return p, nil
}

// negated writes [!a] as path.Match has it, [^a].
func negated(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		b.WriteByte(name[i])
		switch {
		case name[i] == '\\' && i+1 < len(name):
			i++
			b.WriteByte(name[i])
		case name[i] == '[' && i+1 < len(name) && name[i+1] == '!':
			i++
			b.WriteByte('^')
		}
	}
	return b.String()
}

// expand writes braces out. One without a comma or an end is an error, since
// whoever wrote it meant something else than the character.
func expand(text string) ([]string, error) {
	open, end := -1, -1
	var commas []int
	for i, depth := 0, 0; i < len(text) && end < 0; i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				open = i
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				end = i
			} else if depth < 0 {
				return nil, errors.New("a pattern with } and no {")
			}
		}
	}
	switch {
	case open < 0:
		return []string{text}, nil
	case end < 0 || len(commas) == 0:
		return nil, errors.New("braces hold words with commas between them, such as {a,b}")
	}
	var out []string
	for from := open + 1; ; {
		to := end
		if len(commas) > 0 {
			to, commas = commas[0], commas[1:]
		}
		more, err := expand(text[:open] + text[from:to] + text[end+1:])
		if err != nil {
			return nil, err
		}
		if out = append(out, more...); len(out) > maxChoices {
			return nil, fmt.Errorf("braces that stand for more than %d patterns", maxChoices)
		}
		if from = to + 1; to == end {
			return out, nil
		}
	}
}

// match says that the pattern stands for a path without dots and doubled
// slashes.
func (p pattern) match(name string) bool {
	names := strings.Split(name, "/")
	return slices.ContainsFunc(p.choices, func(c []string) bool { return matchNames(c, names) })
}

// below says that the pattern may stand for something in a folder.
func (p pattern) below(folder string) bool {
	names := strings.Split(folder, "/")
	return slices.ContainsFunc(p.choices, func(c []string) bool {
		for i, name := range names {
			if i < len(c) && c[i] == "**" {
				return true
			}
			if i >= len(c)-1 {
				return false
			}
			if ok, err := path.Match(c[i], name); !ok || err != nil {
				return false
			}
		}
		return true
	})
}

// matchNames walks with one point to return to, the last **: what an earlier
// one could take, that one can take too.
func matchNames(pattern, names []string) bool {
	back, from := -1, 0
	for i, n := 0, 0; ; {
		switch {
		case i < len(pattern) && pattern[i] == "**":
			back, from = i, n
			i++
			continue
		case i == len(pattern) && n == len(names):
			return true
		case i < len(pattern) && n < len(names):
			if ok, err := path.Match(pattern[i], names[n]); ok && err == nil {
				i, n = i+1, n+1
				continue
			}
		}
		if back < 0 || from >= len(names) {
			return false
		}
		from++
		i, n = back+1, from
	}
}

// literal is the folders that a pattern begins with, and the rest of it.
func literal(text string) (start, rest string) {
	for i, cut := 0, 0; ; i++ {
		switch {
		case i == len(text), strings.IndexByte(`*?[{\`, text[i]) >= 0:
			return text[:cut], text[cut:]
		case text[i] == '/':
			cut = i + 1
		}
	}
}

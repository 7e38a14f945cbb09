package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Kinds of errors. A warning's kind is one of the Warn constants.
const (
	KindSyntax    = "yaml_syntax"
	KindUnknown   = "unknown_key"
	KindDuplicate = "duplicate_key"
	KindType      = "wrong_type"
	KindValue     = "bad_value"
	KindMissing   = "missing_key"
	KindConflict  = "conflict"
	KindRule      = "bad_rule"
)

// Kinds of warnings.
const (
	WarnShadowed   = "shadowed_rule"
	WarnAnyHost    = "any_host"
	WarnUnfiltered = "unfiltered_network"
	WarnTunnel     = "tunnel_hides_rule"
	WarnFolder     = "folder_not_denied"
	WarnDenyPort   = "deny_port"
	WarnAnyPort    = "any_port"
	WarnIssuing    = "issuing_endpoint"
	WarnMasked     = "masked_grant"
	WarnUnreached  = "credential_unreached"
	WarnScheme     = "scheme_as_host"
)

// Kinds of notes: keys of an agent's file that are not egressd's, files that
// could not be read, and rules for a loopback, which is the sandbox's own.
const (
	NoteIgnored  = "ignored_key"
	NoteMissing  = "missing_file"
	NoteLoopback = "loopback_host"
)

// Position is a place in a file. Line and Col count from 1, Col in characters.
// For a rule given by a flag File is "--allow" or "--deny" and Line is the
// flag's number among its kind.
type Position struct {
	File      string
	Line, Col int
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Problem is one thing that is wrong with a policy, or with Warning set one
// that is odd.
type Problem struct {
	File      string
	Line, Col int
	// Kind is one of the Kind or Warn constants.
	Kind string
	// Problem is, for KindRule, the parser's word for it, such as "bad_port".
	Problem string
	// Text says what is wrong and what to write instead.
	Text    string
	Warning bool
}

// String is the line that `egressd check` prints for the problem:
// FILE:LINE:COL: error KIND: TEXT, and for a bad rule
// FILE:LINE:COL: error bad_rule: PROBLEM: TEXT.
func (p Problem) String() string {
	level := "error"
	switch {
	case p.Warning && (p.Kind == NoteIgnored || p.Kind == NoteMissing || p.Kind == NoteLoopback):
		level = "note"
	case p.Warning:
		level = "warning"
	}
	kind := p.Kind
	if p.Kind == KindRule {
		kind += ": " + p.Problem
	}
	return printable(fmt.Sprintf("%s:%d:%d: %s %s: %s", p.File, p.Line, p.Col, level, kind, p.Text))
}

// printable escapes what would not stay on its line or would turn it around:
// the text of a file that nobody trusts yet is shown on a terminal.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// Problems is everything that loading found, sorted by place: the policy's own
// file first, then the files it names in the order of their reading, then
// flags.
type Problems []Problem

// Errors are the problems that keep a policy from loading.
func (ps Problems) Errors() Problems { return ps.only(false) }

// Warnings are the problems that do not.
func (ps Problems) Warnings() Problems { return ps.only(true) }

func (ps Problems) only(warning bool) Problems {
	var out Problems
	for _, p := range ps {
		if p.Warning == warning {
			out = append(out, p)
		}
	}
	return out
}

// Err is nil where there are no errors, else an error that has a line for each
// of them.
func (ps Problems) Err() error {
	errs := ps.Errors()
	if len(errs) == 0 {
		return nil
	}
	return &LoadError{Problems: errs}
}

// LoadError is the error of a policy that does not load.
type LoadError struct{ Problems Problems }

func (e *LoadError) Error() string {
	text := ""
	for i, p := range e.Problems {
		if i > 0 {
			text += "\n"
		}
		text += p.String()
	}
	return text
}

// sorted orders the problems by place, files by rank (their order of reading),
// and drops those that say the same at the same place.
func (ps Problems) sorted(rank map[string]int) Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool {
		return a == b
	})
}

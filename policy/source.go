package policy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// source is the text of a file by lines, to look up what stands at a node's
// place: yaml.v3 does not tell every tag (`- ! GET a.test/**` is the plain text
// `GET a.test/**`, a deny rule turned into an allow rule).
type source struct {
	text []byte
	// starts has the offset of each line's first byte.
	starts []int
	// last is the place that was asked for last, offset its byte.
	last   spot
	offset int
}

// newSource splits text as YAML does: CRLF, LF, CR, U+0085, U+2028, U+2029.
func newSource(text []byte) *source {
	s := &source{text: text, starts: []int{0}}
	for i := 0; i < len(text); {
		n := lineBreak(text[i:])
		if n == 0 {
			i++
			continue
		}
		i += n
		s.starts = append(s.starts, i)
	}
	return s
}

// lineBreak is the length of the line break that b begins with, 0 for none.
func lineBreak(b []byte) int {
	switch {
	case b[0] == '\r' && len(b) > 1 && b[1] == '\n':
		return 2
	case b[0] == '\n' || b[0] == '\r':
		return 1
	case bytes.HasPrefix(b, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(b, []byte("\u2028")), bytes.HasPrefix(b, []byte("\u2029")):
		return 3
	}
	return 0
}

// at is the text from a place on; columns count characters. Nodes are asked for
// in the order of the file, so counting goes on from the last place: a file of
// one long line would take forever otherwise.
func (s *source) at(line, col int) []byte {
	if line < 1 || line > len(s.starts) {
		return nil
	}
	i, c := s.starts[line-1], 1
	if s.last.line == line && s.last.col <= col {
		i, c = s.offset, s.last.col
	}
	for ; c < col && i < len(s.text); c++ {
		_, n := utf8.DecodeRune(s.text[i:])
		i += n
	}
	s.last, s.offset = spot{line, c}, i
	return s.text[i:]
}

// skipSpace drops blanks, line breaks and comments.
func skipSpace(b []byte) []byte {
	for len(b) > 0 {
		if b[0] == ' ' || b[0] == '\t' {
			b = b[1:]
		} else if n := lineBreak(b); n > 0 {
			b = b[n:]
		} else if b[0] == '#' {
			for len(b) > 0 && lineBreak(b) == 0 {
				b = b[1:]
			}
		} else {
			break
		}
	}
	return b
}

// untagged says that the source at the node's place begins as the node says,
// so that no tag stands before it. The check is positive: what is not known to
// be right is refused.
func (s *source) untagged(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle != 0 {
		return false
	}
	b := s.at(n.Line, n.Column)
	if n.Anchor != "" {
		rest, ok := bytes.CutPrefix(b, []byte("&"+n.Anchor))
		if !ok {
			return false
		}
		b = skipSpace(rest)
	}
	begins := func(with string) bool { return bytes.HasPrefix(b, []byte(with)) }
	switch n.Kind {
	case yaml.AliasNode:
		return begins("*" + n.Value)
	case yaml.SequenceNode:
		if n.Style&yaml.FlowStyle != 0 {
			return begins("[")
		}
		return begins("-")
	case yaml.MappingNode:
		if n.Style&yaml.FlowStyle != 0 && !pair(n) {
			return begins("{") || begins("?") && len(n.Content) == 2
		}
		return !begins("!")
	case yaml.ScalarNode:
		return s.untaggedScalar(n, b)
	}
	return false
}

// pair says that a flow mapping may be one without braces, `[a: b]`: it begins
// where its only key does, which is then looked at itself. (`[? a : b]` begins
// with its mark.)
func pair(n *yaml.Node) bool {
	return len(n.Content) == 2 && n.Anchor == "" && n.Content[0].Line == n.Line && n.Content[0].Column == n.Column
}

func (s *source) untaggedScalar(n *yaml.Node, b []byte) bool {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return len(b) > 0 && b[0] == '"'
	case n.Style&yaml.SingleQuotedStyle != 0:
		return len(b) > 0 && b[0] == '\''
	case n.Style&yaml.LiteralStyle != 0:
		return len(b) > 0 && b[0] == '|'
	case n.Style&yaml.FoldedStyle != 0:
		return len(b) > 0 && b[0] == '>'
	case n.Value == "":
		return len(skipSpace(b)) == 0 || skipSpace(b)[0] != '!'
	}
	return len(b) > 0 && b[0] == n.Value[0] && b[0] != '!'
}

// Bounds of a file. 16 MiB is some 200,000 rules; the number of values that
// aliases may stand for bounds what a few lines can blow up to.
const (
	maxFile    = 16 << 20
	maxAliased = 100_000
)

// parse reads the text's only document. The node is nil for an empty one.
func parse(text []byte) (root *yaml.Node, problem *Problem) {
	fail := func(line int, what string) (*yaml.Node, *Problem) {
		return nil, &Problem{Line: line, Col: 1, Kind: KindSyntax, Text: what}
	}
	if len(text) > maxFile {
		return fail(1, "the file is over 16 MiB")
	}
	if !utf8.Valid(text) {
		return fail(badLine(text), "the file is not UTF-8")
	}
	if i := oddBreak(text); i >= 0 {
		return fail(len(newSource(text[:i]).starts), "a line break that most editors do not show: what seems a comment would go on as something else")
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var docs [2]yaml.Node
	for i := range docs {
		err := decode(dec, &docs[i])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, what := syntaxError(err)
			return fail(line, what)
		}
		if i == 1 {
			return fail(docs[1].Line, "a second document: a policy is one")
		}
	}
	if len(docs[0].Content) == 0 {
		return nil, nil
	}
	return docs[0].Content[0], nil
}

// decode is dec.Decode with a panic of the parser's, which is not ours and
// reads text of whoever wrote the file, taken as an error.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("yaml: the parser gave up on it")
		}
	}()
	return dec.Decode(n)
}

// syntaxError takes the line out of yaml.v3's text, 1 where it names none.
func syntaxError(err error) (line int, what string) {
	what = strings.TrimPrefix(err.Error(), "yaml: ")
	rest, ok := strings.CutPrefix(what, "line ")
	if !ok {
		return 1, what
	}
	digits, text, ok := strings.Cut(rest, ": ")
	if !ok {
		return 1, what
	}
	n := 0
	for _, d := range digits {
		if d < '0' || d > '9' || n > maxFile {
			return 1, what
		}
		n = n*10 + int(d-'0')
	}
	return max(n, 1), text
}

// oddBreak finds a line break of YAML 1.1 that is none to YAML 1.2 and to nearly
// every editor (U+0085, U+2028, U+2029), or a CR alone where lines end in LF: a
// rule behind one in a comment would be in force where a reader sees none. -1 is
// none.
func oddBreak(text []byte) int {
	old := bytes.IndexByte(text, '\n') < 0 // lines end in CR, if there are any
	for i := 0; i < len(text); i++ {
		switch n := lineBreak(text[i:]); {
		case n == 0 || text[i] == '\n' || old && text[i] == '\r':
		case n == 2 && text[i] == '\r':
			i++
		default:
			return i
		}
	}
	return -1
}

// badLine is the line of the first byte that is no UTF-8.
func badLine(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return len(newSource(text[:i]).starts)
		}
		i += n
	}
	return 1
}

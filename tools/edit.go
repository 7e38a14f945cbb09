package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/egressd/egressd/audit"
)

type editInput struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

func (in *editInput) field(name string) any {
	switch name {
	case "path":
		return &in.Path
	case "old_string":
		return &in.OldString
	case "new_string":
		return &in.NewString
	case "replace_all":
		return &in.ReplaceAll
	}
	return nil
}

func (in *editInput) required() []string             { return []string{"path", "old_string", "new_string"} }
func (in *editInput) record(s *Set, r *audit.Record) { s.located(r, in.Path) }
func (in *editInput) check(*Set) error {
	switch {
	case in.OldString == "":
		return badCall("old_string is empty: file_write writes a whole file")
	case in.OldString == in.NewString:
		return badCall("old_string and new_string are the same")
	}
	return nil
}

func (in *editInput) run(_ context.Context, s *Set, _ *audit.Record) (Result, error) {
	count := 0
	err := s.cfg.Files.Update(in.Path, maxFile, func(old []byte) ([]byte, error) {
		if bytes.IndexByte(old, 0) >= 0 {
			return nil, errors.New("it is binary, not text")
		}
		data, n, err := replace(old, []byte(in.OldString), []byte(in.NewString), in.ReplaceAll)
		count = n
		return data, err
	})
	if err != nil {
		return Result{}, err
	}
	places := "1 place"
	if count != 1 {
		places = fmt.Sprintf("%d places", count)
	}
	return Result{Text: fmt.Sprintf("changed %s in %s\n", places, shown(in.Path))}, nil
}

// replace puts to in the place of from, which stands in text once, or of all
// there are. In a text whose every line ends in CR LF, from and to may have LF
// for it: who writes them commonly does not see the difference.
func replace(text, from, to []byte, all bool) ([]byte, int, error) {
	first := bytes.Index(text, from)
	if crlf(text) {
		to = carriage(to)
		if first < 0 {
			from = carriage(from)
			first = bytes.Index(text, from)
		}
	}
	switch {
	case first < 0:
		return nil, 0, errors.New("old_string is not in it: nothing was changed")
	case bytes.Equal(from, to):
		return nil, 0, errors.New("the new text is the old one: nothing was changed")
	}
	n := bytes.Count(text, from)
	// A second one may begin within the first: aa stands in aaa twice.
	if !all && bytes.Contains(text[first+1:], from) {
		return nil, 0, fmt.Errorf("old_string is in it more than once (%d places): say more of what stands around it, or replace_all; nothing was changed", max(n, 2))
	}
	if size := len(text) + n*(len(to)-len(from)); size > maxFile {
		return nil, 0, fmt.Errorf("it would have %d bytes, more than %d: nothing was changed", size, maxFile)
	}
	return bytes.ReplaceAll(text, from, to), n, nil
}

// crlf says that every line of text ends in CR LF, and that there is one.
func crlf(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && n == bytes.Count(text, []byte("\r\n"))
}

// carriage is text with CR LF for each LF, those that have it already too.
func carriage(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
}

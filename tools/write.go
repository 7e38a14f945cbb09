package tools

import (
	"context"
	"fmt"

	"github.com/egressd/egressd/audit"
)

// maxFile is how many bytes file_write writes and file_edit changes.
const maxFile = 10 << 20

type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (in *writeInput) field(name string) any {
	switch name {
	case "path":
		return &in.Path
	case "content":
		return &in.Content
	}
	return nil
}

func (in *writeInput) required() []string             { return []string{"path", "content"} }
func (in *writeInput) record(s *Set, r *audit.Record) { s.located(r, in.Path) }
func (in *writeInput) check(*Set) error {
	if len(in.Content) > maxFile {
		return badCall(fmt.Sprintf("content has %d bytes, more than %d", len(in.Content), maxFile))
	}
	return nil
}

func (in *writeInput) run(_ context.Context, s *Set, _ *audit.Record) (Result, error) {
	if err := s.cfg.Files.WriteFile(in.Path, []byte(in.Content)); err != nil {
		return Result{}, err
	}
	return Result{Text: fmt.Sprintf("wrote %d bytes to %s\n", len(in.Content), shown(in.Path))}, nil
}

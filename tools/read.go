package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
)

const (
	// maxText is how many bytes of text a file tool answers with.
	maxText = 100_000
	// sniff is how many bytes say whether a file is text.
	sniff = 8 << 10
)

type readInput struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
}

func (in *readInput) field(name string) any {
	switch name {
	case "path":
		return &in.Path
	case "offset":
		return &in.Offset
	case "limit":
		return &in.Limit
	}
	return nil
}

func (in *readInput) required() []string             { return []string{"path"} }
func (in *readInput) record(s *Set, r *audit.Record) { s.located(r, in.Path) }
func (in *readInput) check(*Set) error {
	if in.Offset < 0 || in.Limit < 0 {
		return badCall("offset and limit count from 1")
	}
	return nil
}

func (in *readInput) run(ctx context.Context, s *Set, _ *audit.Record) (Result, error) {
	file, err := s.cfg.Files.Open(in.Path)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	r, err := textReader(in.Path, file)
	if err != nil {
		return Result{}, err
	}
	return in.window(ctx, r, file.Info.Size())
}

// textReader reads a file from its beginning, if it is text: a NUL early on
// says that it is not.
func textReader(path string, file *safepath.File) (*bufio.Reader, error) {
	r := bufio.NewReaderSize(file, 64<<10)
	start, err := r.Peek(sniff)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading %s: %w", shown(path), err)
	}
	if bytes.IndexByte(start, 0) >= 0 {
		return nil, binary(path, file.Info.Size())
	}
	return r, nil
}

func binary(path string, size int64) error {
	return fmt.Errorf("%s is binary (%d bytes), not text", shown(path), size)
}

// window takes Limit lines from line Offset on, whole lines where it can, and
// says where to read on.
func (in *readInput) window(ctx context.Context, r *bufio.Reader, size int64) (Result, error) {
	first := max(in.Offset, 1)
	var text []byte
	for line := int64(1); ; line++ {
		wanted := line >= first && (in.Limit == 0 || line-first < in.Limit)
		keep := int64(0)
		if wanted {
			keep = maxText - int64(len(text))
		}
		part, all, err := nextLine(ctx, r, keep)
		end := errors.Is(err, io.EOF)
		nothing := end && all && len(part) == 0
		switch {
		case err != nil && !end:
			return Result{}, fmt.Errorf("reading %s: %w", shown(in.Path), err)
		case line < first && end:
			if nothing {
				line--
			}
			return Result{}, fmt.Errorf("%s has %d lines, and no line %d", shown(in.Path), line, first)
		case line < first:
		case nothing && line == first && first > 1:
			return Result{}, fmt.Errorf("%s has %d lines, and no line %d", shown(in.Path), line-1, first)
		case nothing:
			return answer(text, ""), nil
		case !wanted:
			return answer(text, fmt.Sprintf("[there is more: %d bytes in all; read on with offset %d]", size, line)), nil
		case all && end:
			return answer(append(text, part...), ""), nil
		case all:
			text = append(text, part...)
		case len(text) > 0:
			return answer(text, fmt.Sprintf("[cut at %d bytes of %d; read on with offset %d]", len(text), size, line)), nil
		default:
			return answer(shell.Whole(part), fmt.Sprintf("[line %d is longer than %d bytes; the next one is at offset %d]", line, maxText, line+1)), nil
		}
	}
}

// nextLine reads a line with its end and keeps so many bytes of it. whole says
// that these are all.
func nextLine(ctx context.Context, r *bufio.Reader, keep int64) (part []byte, whole bool, err error) {
	whole = true
	for read := int64(0); ; {
		piece, err := r.ReadSlice('\n')
		if n := min(int64(len(piece)), keep-int64(len(part))); n > 0 {
			part = append(part, piece[:n]...)
		}
		read += int64(len(piece))
		whole = read == int64(len(part))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return part, whole, err
		}
		if err := ctx.Err(); err != nil {
			return part, whole, err
		}
	}
}

// answer is a text with notes below it: more says that there is more, and where.
func answer(text []byte, more string) Result {
	out := strings.ToValidUTF8(string(text), "�")
	notes := []string{}
	if more != "" {
		notes = append(notes, more)
	}
	if out != string(text) {
		notes = append(notes, "[not all of it is UTF-8: what is not shows as �]")
	}
	if bytes.IndexByte(text, 0) >= 0 {
		notes = append(notes, "[it holds NUL characters]")
	}
	if len(notes) > 0 {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += strings.Join(notes, "\n") + "\n"
	}
	return Result{Text: out, Truncated: more != ""}
}

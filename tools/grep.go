package tools

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
)

const (
	maxRegexp = 4096    // bytes of an expression
	maxLine   = 1 << 20 // bytes of a line that are searched
	shownLine = 400     // bytes of a line that are printed
)

type grepInput struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty"`
	Glob       string `json:"glob,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Limit      int    `json:"limit,omitempty"`

	expression *regexp.Regexp
	names      pattern
}

func (in *grepInput) field(name string) any {
	switch name {
	case "pattern":
		return &in.Pattern
	case "path":
		return &in.Path
	case "glob":
		return &in.Glob
	case "ignore_case":
		return &in.IgnoreCase
	case "limit":
		return &in.Limit
	}
	return nil
}

func (in *grepInput) required() []string             { return []string{"pattern"} }
func (in *grepInput) record(s *Set, r *audit.Record) { s.located(r, in.start()) }

func (in *grepInput) start() string {
	if in.Path == "" {
		return "."
	}
	return in.Path
}

func (in *grepInput) check(*Set) (err error) {
	if err := limited(&in.Limit, 200); err != nil {
		return err
	}
	if in.Pattern == "" || len(in.Pattern) > maxRegexp {
		return badCall(fmt.Sprintf("an expression has between 1 and %d bytes", maxRegexp))
	}
	flags := ""
	if in.IgnoreCase {
		flags = "(?i)"
	}
	if in.expression, err = regexp.Compile(flags + in.Pattern); err != nil {
		return badCall("reading the expression: " + err.Error())
	}
	if in.Glob != "" {
		if in.names, err = compile(in.Glob); err != nil {
			return badCall("reading the glob: " + err.Error())
		}
	}
	return nil
}

// wants says that a file is to be searched: a glob without a slash is about its
// name, one with a slash about its path from the start on.
func (in *grepInput) wants(e safepath.Entry) bool {
	switch {
	case in.Glob == "":
		return true
	case strings.Contains(in.Glob, "/") && e.Below != "":
		return in.names.match(e.Below)
	}
	return in.names.match(path.Base(e.Path))
}

// wantsReal says that the file that a link leads to is searched by its own name
// anyway.
func (in *grepInput) wantsReal(e safepath.Entry) bool {
	return in.Glob == "" || strings.Contains(in.Glob, "/") || in.names.match(path.Base(e.Real))
}

func (in *grepInput) run(ctx context.Context, s *Set, _ *audit.Record) (Result, error) {
	l := list{limit: in.Limit, what: "matches"}
	long, unread := 0, 0
	missed, err := s.cfg.Files.Walk(ctx, in.start(), leftOut, func(e safepath.Entry) error {
		if !e.Info.Mode().IsRegular() || !in.wants(e) || e.Again && in.wantsReal(e) {
			return nil
		}
		file, err := e.Open()
		if err != nil { // not ours to read, or it is gone
			unread++
			return nil
		}
		defer file.Close()
		n, err := in.search(ctx, shown(e.Path), file, &l)
		long += n
		return err
	})
	if err != nil {
		return Result{}, err
	}
	var notes []string
	if long > 0 {
		notes = append(notes, fmt.Sprintf("[%d lines were searched in their first %d bytes only]", long, maxLine))
	}
	return l.result(missed+unread, notes...), nil
}

// search adds the lines of one file that match, and counts those that were not
// searched whole. A file with a NUL is no text from there on.
func (in *grepInput) search(ctx context.Context, name string, file io.Reader, l *list) (long int, err error) {
	r := bufio.NewReaderSize(file, 64<<10)
	if start, _ := r.Peek(sniff); bytes.IndexByte(start, 0) >= 0 {
		return 0, nil
	}
	for n := 1; ; n++ {
		line, whole, err := nextLine(ctx, r, maxLine)
		if ctx.Err() != nil {
			return long, fmt.Errorf("%s: %w", name, ctx.Err())
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return long, nil
		}
		if !whole {
			long++
		}
		if len(line) > 0 {
			line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			if at := in.expression.FindIndex(line); at != nil {
				if l.add(fmt.Sprintf("%s:%d:%s", name, n, excerpt(line, at[0]))) != nil {
					return long, fs.SkipAll
				}
			}
		}
		if err != nil { // the end; a file that cannot be read on ends there
			return long, nil
		}
	}
}

// excerpt is a line to be printed, or what stands around the match of a long
// one.
func excerpt(line []byte, at int) string {
	before, after := "", ""
	if len(line) > shownLine {
		from := max(0, min(at-shownLine/4, len(line)-shownLine))
		if from > 0 {
			before = "…"
		}
		line = line[from:]
		if len(line) > shownLine {
			line, after = line[:shownLine], "…"
		}
		for len(before) > 0 && len(line) > 0 && line[0]&0xC0 == 0x80 { // within a character
			line = line[1:]
		}
		line = shell.Whole(line)
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(line), "�"), "\r", " ")
	return before + text + after
}

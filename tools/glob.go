package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
)

// leftOut are the folders that grep and glob do not look into, unless they are
// told to start there.
func leftOut(name string) bool { return name == ".git" || name == "node_modules" }

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Limit   int    `json:"limit,omitempty"`
}

func (in *globInput) field(name string) any {
	switch name {
	case "pattern":
		return &in.Pattern
	case "path":
		return &in.Path
	case "limit":
		return &in.Limit
	}
	return nil
}

func (in *globInput) required() []string             { return []string{"pattern"} }
func (in *globInput) record(s *Set, r *audit.Record) { s.located(r, in.start()) }
func (in *globInput) check(*Set) error {
	if err := limited(&in.Limit, 1000); err != nil {
		return err
	}
	_, rest := literal(in.Pattern)
	if rest == "" { // a folder, by its slash
		rest = in.Pattern
	}
	if _, err := compile(rest); err != nil {
		return badCall("reading the pattern: " + err.Error())
	}
	return nil
}

// limited fills in and checks a limit of lines.
func limited(limit *int, otherwise int) error {
	if *limit == 0 {
		*limit = otherwise
	}
	if *limit < 0 || *limit > 10000 {
		return badCall("limit is between 1 and 10000")
	}
	return nil
}

// start is the folder to walk from: the names before the first wildcard.
func (in *globInput) start() string {
	start, _ := literal(in.Pattern)
	switch {
	case strings.HasPrefix(in.Pattern, "/"):
		return start
	case in.Path == "" && start == "":
		return "."
	case in.Path == "" || start == "":
		return in.Path + start
	}
	return in.Path + "/" + start
}

func (in *globInput) run(ctx context.Context, s *Set, _ *audit.Record) (Result, error) {
	l := list{limit: in.Limit, what: "paths"}
	prefix, rest := literal(in.Pattern)
	if slices.ContainsFunc(strings.Split(prefix, "/"), leftOut) {
		return l.result(0), nil
	}
	files := s.cfg.Files
	if in.Path != "" && prefix != "" && !strings.HasPrefix(prefix, "/") {
		if _, err := files.Stat(in.Path); err != nil { // what path names has to be there
			return Result{}, err
		}
	}
	info, err := files.Stat(in.start())
	switch {
	case prefix != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)):
		return l.result(0), nil
	case err != nil:
		return Result{}, err
	case !info.IsDir():
		return l.result(0), nil
	}
	if rest == "" { // a folder, by its slash
		if err := l.add(shown(strings.TrimRight(in.start(), "/")) + "/"); err != nil {
			return Result{}, err
		}
		return l.result(0), nil
	}
	p, err := compile(rest)
	if err != nil {
		return Result{}, badCall("reading the pattern: " + err.Error())
	}
	missed, err := files.Walk(ctx, in.start(), leftOut, func(e safepath.Entry) error {
		line := shown(e.Path)
		if e.Info.IsDir() {
			line += "/"
		}
		if e.Below != "" && p.match(e.Below) {
			if err := l.add(line); err != nil {
				return err
			}
		}
		if e.Info.IsDir() && !p.below(e.Below) {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	slices.Sort(l.lines)
	return l.result(missed), nil
}

// list is the lines of an answer, as many as are wanted and fit.
type list struct {
	lines []string
	size  int
	limit int
	cut   bool
	what  string
}

// add ends the search where no more is wanted.
func (l *list) add(line string) error {
	if len(l.lines) == l.limit || l.size+len(line)+1 > maxText {
		l.cut = true
		return fs.SkipAll
	}
	l.lines = append(l.lines, line)
	l.size += len(line) + 1
	return nil
}

func (l *list) result(missed int, notes ...string) Result {
	if len(l.lines) == 0 {
		notes = append([]string{"no " + l.what}, notes...)
	}
	if l.cut {
		notes = append(notes, fmt.Sprintf("[cut: there are more than these %d]", len(l.lines)))
	}
	if missed > 0 {
		notes = append(notes, fmt.Sprintf("[not all was searched: %d could not be read]", missed))
	}
	return Result{Text: strings.Join(append(l.lines, notes...), "\n") + "\n", Truncated: l.cut}
}

//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/egressd/egressd/netns/mount"
)

// blanks are the files inside whose texts Config.Texts gives: trust bundles and
// what comes of secrets. The helper makes them empty and hands them out, and
// they are written while bwrap builds the view and the launcher starts, since
// reading and parsing what is to be written takes as long as that.
type blanks struct {
	paths []string
	got   []*os.File      // from the helper, in the order of paths, as they come
	files chan []*os.File // all of them; closed where there is no helper any more
	done  chan struct{}   // closed when all is written, or will not be
	err   error           // why not; for whoever has seen done
}

// leaveBlank marks those files in the plan and begins to ask for their texts;
// nil where there are none.
func (s *Session) leaveBlank() *blanks {
	if s.cfg.Texts == nil {
		return nil
	}
	b := &blanks{files: make(chan []*os.File, 1), done: make(chan struct{})}
	for _, e := range textEntries(&s.plan) {
		e.Blank = slices.ContainsFunc(s.cfg.Files, func(f mount.Entry) bool { return f.Path == e.Path && f.Data == nil })
		if e.Blank {
			b.paths = append(b.paths, e.Path)
		}
	}
	go b.fill(s.cfg.Texts)
	return b
}

// fill is the goroutine of blanks.
func (b *blanks) fill(ask func() (map[string][]byte, error)) {
	defer close(b.done)
	texts, err := ask()
	files, ok := <-b.files
	defer closeFiles(files)
	switch {
	case err != nil:
		b.err = fmt.Errorf("making the files of the sandbox: %w", err)
	case ok && len(files) != len(b.paths):
		b.err = errors.New("making the files of the sandbox: the helper has made others")
	}
	for i, f := range files {
		if b.err == nil {
			if _, err := f.Write(texts[b.paths[i]]); err != nil {
				b.err = fmt.Errorf("writing %s inside: %w", b.paths[i], err)
			}
		}
	}
}

// take adds files that the helper has made.
func (b *blanks) take(files []*os.File) {
	if b == nil {
		closeFiles(files)
		return
	}
	b.got = append(b.got, files...)
}

// give lets what was taken be written, if the helper has become bwrap. It is
// called once.
func (b *blanks) give(ok bool) {
	switch {
	case b == nil:
		return
	case ok:
		b.files <- b.got
	default:
		closeFiles(b.got)
	}
	close(b.files)
}

// wait waits until all is written.
func (b *blanks) wait() error {
	if b == nil {
		return nil
	}
	<-b.done
	return b.err
}

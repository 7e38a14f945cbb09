package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func (r *caseRun) check(t *testing.T, temp []string) {
	e := r.c.Expect
	out, errs := r.stdout.String(), r.stderr.String()
	if e.Stdout != nil && out != r.fill(*e.Stdout) {
		t.Errorf("stdout is %q, not %q", cut(out), r.fill(*e.Stdout))
	}
	if e.StdoutBytes != nil && len(out) != *e.StdoutBytes {
		t.Errorf("stdout has %d bytes, not %d", len(out), *e.StdoutBytes)
	}
	holds := func(name, text string, has, lacks []string) {
		for _, s := range has {
			if !strings.Contains(text, r.fill(s)) {
				t.Errorf("%s lacks %q", name, r.fill(s))
			}
		}
		for _, s := range lacks {
			if strings.Contains(text, r.fill(s)) {
				t.Errorf("%s holds %q", name, r.fill(s))
			}
		}
	}
	holds("stdout", out, e.StdoutHas, e.StdoutLacks)
	if r.c.TTY != nil {
		errs = out
	}
	holds("stderr", errs, e.StderrHas, e.StderrLacks)
	// A shell that may not fork any more (dash) ends without a word: that is no
	// number above a maximum.
	if e.StdoutIntMin != nil || e.StdoutIntMax != nil && out != "" {
		n, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil || e.StdoutIntMin != nil && n < *e.StdoutIntMin || e.StdoutIntMax != nil && n > *e.StdoutIntMax {
			t.Errorf("stdout is %q, not a number within the bounds", cut(out))
		}
	}
	if e.Exit != nil && r.code != *e.Exit {
		t.Errorf("exit status %d, not %d", r.code, *e.Exit)
	}
	if e.WithinS > 0 && r.took.Seconds() > e.WithinS {
		t.Errorf("took %v, over %v s", r.took, e.WithinS)
	}
	for _, s := range e.Host {
		r.checkHost(t, s)
	}
	if e.Left != nil {
		if l := left(); len(l) != *e.Left {
			t.Errorf("%d processes are left, not %d: %s", len(l), *e.Left, strings.Join(l, "; "))
		}
	}
	if e.TempClean {
		for _, path := range r.temps(t) {
			if !slices.Contains(temp, path) {
				t.Errorf("%s is left", path)
			}
		}
	}
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	for _, name := range e.NoLookup {
		if slices.Contains(r.h.asked, name) {
			t.Errorf("%s was looked up", name)
		}
	}
	if e.OriginGotBytes != nil {
		var n int64
		for name := range r.c.Origins {
			n += r.h.got[name]
		}
		if n != *e.OriginGotBytes {
			t.Errorf("the origin got %d bytes, not %d", n, *e.OriginGotBytes)
		}
	}
	if e.HostSocketUntouched != "" {
		r.mu.Lock()
		if n := r.socket[r.host(e.HostSocketUntouched)]; n == nil || *n != 0 {
			t.Errorf("the socket %s was connected to", e.HostSocketUntouched)
		}
		r.mu.Unlock()
	}
}

func (r *caseRun) checkHost(t *testing.T, s hostState) {
	path := r.host(s.Path)
	st, err := os.Lstat(path)
	if s.Absent {
		if err == nil {
			t.Errorf("%s is on the host", s.Path)
		}
		return
	}
	if err != nil {
		t.Errorf("%s is not on the host: %v", s.Path, err)
		return
	}
	sys, ok := statOf(st)
	if !ok {
		t.Fatalf("no owner of %s", s.Path)
	}
	if s.File != nil || s.Unchanged {
		data, err := os.ReadFile(path)
		want := r.before[s.Path]
		if s.File != nil {
			want = *s.File
		}
		if err != nil || string(data) != want {
			t.Errorf("%s holds %q, not %q (%v)", s.Path, data, want, err)
		}
	}
	if s.Mode != "" && fmt.Sprintf("%04o", st.Mode().Perm()) != s.Mode {
		t.Errorf("%s has mode %04o, not %s", s.Path, st.Mode().Perm(), s.Mode)
	}
	if s.OwnerUnchanged && int(sys.Uid) != r.uid() {
		t.Errorf("%s belongs to %d, not to %d", s.Path, sys.Uid, r.uid())
	}
	if s.NotSetuidRoot && sys.Uid == 0 && st.Mode()&os.ModeSetuid != 0 {
		t.Errorf("%s is set-uid root", s.Path)
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualPages makes them as `make man` does: a page for each command, and
// none for what is hidden.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", "-tags", "man", ".", "man", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"", "-run", "-serve", "-check", "-explain", "-trust", "-reload", "-ca", "-doctor",
		"-audit", "-audit-verify", "-version"} {
		if _, err := os.Stat(filepath.Join(dir, "egressd"+name+".1")); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"-demo-origin", "-man"} {
		if _, err := os.Stat(filepath.Join(dir, "egressd"+name+".1")); err == nil {
			t.Errorf("a page egressd%s.1 of a hidden command", name)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "egressd-run.1"))
	if err != nil || !strings.Contains(string(page), "125 when egressd itself fails") {
		t.Errorf("the page of run, %v: %s", err, page)
	}
}

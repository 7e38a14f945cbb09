//go:build linux

package netns

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/netns/mount"
)

// sandboxCase is a line of sandbox.jsonl, as far as this package can tell: what
// needs rules, a proxy, a policy file or a terminal is the command's to prove.
type sandboxCase struct {
	ID, Why  string
	Q        int
	Policy   *struct{ Sandbox casePolicy }
	Setup    []caseFile
	Run      string
	Argv     []string
	As       string
	Repeat   int
	Stdin    *string
	PolicyAt string            `json:"policy_at"`
	HostEnv  map[string]string `json:"host_env"`
	Listen   map[string]string `json:"host_listen"`
	Expect   caseExpect
}

type casePolicy struct {
	Type         string
	WritePaths   []string `json:"write_paths"`
	EgressRules  *[]any   `json:"egress_rules"`
	AllowNetwork *bool    `json:"allow_network"`
}

type caseFile struct {
	Path    string
	File    *string
	Dir     bool
	Mode    string
	Symlink string
	Socket  bool
}

type caseExpect struct {
	Stdout      *string
	StdoutHas   []string `json:"stdout_has"`
	StdoutBytes int      `json:"stdout_bytes"`
	StderrHas   []string `json:"stderr_has"`
	Exit        *int
	WithinS     float64 `json:"within_s"`
	Host        []struct {
		Path      string
		Absent    bool
		File      *string
		Unchanged bool
		NotSetuid bool `json:"not_setuid_root"`
	}
}

// here are the cases that need nothing but a sandbox.
var here = []string{
	"sb-etc-01", "sb-etc-02", "sb-etc-03", "sb-etc-04",
	"sb-exit-01", "sb-exit-02", "sb-exit-03", "sb-exit-04", "sb-exit-05", "sb-exit-06", "sb-exit-09", "sb-exit-10",
	"sb-exit-11", "sb-exit-12", "sb-exit-13", "sb-exit-15",
	"sb-home-01", "sb-home-02", "sb-home-03", "sb-home-04", "sb-home-05",
	"sb-kernel-02", "sb-kernel-03", "sb-kernel-04", "sb-kernel-05", "sb-kernel-06", "sb-kernel-07", "sb-kernel-08",
	"sb-kernel-11", "sb-kernel-12", "sb-kernel-13", "sb-kernel-14", "sb-kernel-10", "sb-kernel-15",
	"sb-life-03", "sb-life-04",
	"sb-net-09", "sb-net-10", "sb-net-12", "sb-net-13", "sb-net-19", "sb-net-20", "sb-net-21",
	"sb-policy-01", "sb-policy-02", "sb-policy-06", "sb-root-01", "sb-env-05",
}

// caseLines is sandbox.jsonl, read before the tests are set apart from the host.
var caseLines []byte

func readCases() ([]byte, error) {
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "cases", "sandbox.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		data, err = os.ReadFile(filepath.Join("..", "testdata", "cases", "sandbox.jsonl"))
	}
	return data, err
}

func TestCases(t *testing.T) {
	if caseLines == nil { // an ordinary user's run, which is not set apart
		var err error
		if caseLines, err = readCases(); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for line := range strings.Lines(string(caseLines)) {
		var c sandboxCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v in %.60s", err, line)
		}
		for _, id := range here {
			if c.ID == id {
				ran++
				t.Run(c.ID, func(t *testing.T) { c.test(t) })
			}
		}
	}
	if ran != len(here) {
		t.Errorf("%d of %d cases were found", ran, len(here))
	}
}

func (c *sandboxCase) test(t *testing.T) {
	r := run{Shell: c.Run, Argv: c.Argv, As: user()}
	if c.As == "root" {
		if os.Geteuid() != 0 {
			t.Skip("this is a case of root's")
		}
		r.As = 0
	}
	r.prepare(t)
	expand := func(s string) string {
		s = strings.ReplaceAll(s, "${home}", r.Home)
		if s == "~" || strings.HasPrefix(s, "~/") {
			s = r.Home + s[1:]
		}
		return strings.ReplaceAll(s, "${cwd}", r.Cwd)
	}
	r.Shell = expand(r.Shell)
	for _, f := range c.Setup {
		name := strings.TrimPrefix(f.Path, "~/")
		if f.Dir {
			r.put(t, name+"/.keep", "")
		} else if f.File != nil {
			r.put(t, name, *f.File)
			r.Keep = append(r.Keep, policyFiles(expand(f.Path))...)
		}
	}
	if c.PolicyAt != "" {
		r.put(t, strings.TrimPrefix(c.PolicyAt, "~/"), "policy")
		r.Keep = append(r.Keep, expand(c.PolicyAt))
	}
	p := c.Policy.Sandbox
	switch {
	case p.EgressRules != nil:
		r.Network, r.Check = Captured, true
	case p.AllowNetwork == nil:
		r.Network = HostNetwork
	}
	for _, w := range p.WritePaths {
		r.Grants = append(r.Grants, mount.Grant{Path: filepath.Join(r.Cwd, w), Write: true})
	}
	start := time.Now()
	got := r.do(t)
	took := time.Since(start)
	e := c.Expect
	if e.Stdout != nil && got.Stdout != expand(*e.Stdout) {
		t.Errorf("%s\nstdout %q, want %q\nstderr %s", c.Why, got.Stdout, expand(*e.Stdout), got.Stderr)
	}
	if e.StdoutBytes > 0 && len(got.Stdout) != e.StdoutBytes {
		t.Errorf("stdout has %d bytes, want %d", len(got.Stdout), e.StdoutBytes)
	}
	for _, has := range e.StderrHas {
		if !strings.Contains(got.Stderr, has) {
			t.Errorf("stderr %q lacks %q", got.Stderr, has)
		}
	}
	if e.Exit != nil && got.Code != *e.Exit {
		t.Errorf("status %d, want %d; stderr %s", got.Code, *e.Exit, got.Stderr)
	}
	if e.WithinS > 0 && took.Seconds() > e.WithinS {
		t.Errorf("took %v", took)
	}
	for _, h := range e.Host {
		info, err := os.Stat(expand(h.Path))
		if h.Absent != (err != nil) && !h.NotSetuid {
			t.Errorf("%s on the host: %v", h.Path, err)
		}
		if err == nil && h.NotSetuid && info.Mode()&os.ModeSetuid != 0 {
			t.Errorf("%s is setuid", h.Path)
		}
		if h.File != nil {
			if text, _ := os.ReadFile(expand(h.Path)); string(text) != *h.File {
				t.Errorf("%s on the host is %q", h.Path, text)
			}
		}
	}
}

// policyFiles is path if a lookup would find a policy there.
func policyFiles(path string) []string {
	if filepath.Base(path) == "egressd.yaml" {
		return []string{path}
	}
	return nil
}

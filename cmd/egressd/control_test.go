package main

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// The sandbox has our uid: a peer in another user namespace is turned away,
// and that is in the record.
func TestControlRefusesOtherNamespace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve(t, "--policy", p.policy(t, "GET api.test/**"))
	cmd := p.command(t, "reload")
	cmd.SysProcAttr = proxytest.UserNamespace(os.Getuid(), os.Getgid(), 1)
	if _, errs, code := finish(t, cmd); code != 1 || !strings.Contains(errs, "it serves only its own user, outside any sandbox") {
		t.Errorf("reload from another namespace: %d %s", code, errs)
	}
	s.says(t, "it runs in another user namespace")
	if _, errs, code := p.call(t, "reload"); code != 0 {
		t.Errorf("reload from ours: %s", errs)
	}
	s.stop(t)
	all := s.records(t)
	// sessions() asks whether a socket answers, so the peer came twice.
	if n := countRecords(all, map[string]any{"kind": "control", "verdict": "deny"}); n == 0 {
		t.Errorf("the refused peer is not in the record: %v", all)
	}
	if n := countRecords(all, map[string]any{"kind": "reload"}); n != 1 {
		t.Errorf("%d reloads, not 1", n)
	}
}

// A peer that says nothing, nonsense or too much gets nothing and holds up
// nobody.
func TestControlNonsense(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve(t, "--policy", p.policy(t))
	sock := p.path("run/egressd", s.session+".sock")
	if st, err := os.Lstat(sock); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("the socket: %v %v", st, err)
	}
	silent, err := net.Dial("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, text := range []string{"\n", "no JSON\n", strings.Repeat("x", 100_000) + "\n"} {
		c, err := net.Dial("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(text)) // it may be closed before all is written
		if n, err := c.Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
			t.Errorf("%.10q was answered (%v)", text, err)
		}
		c.Close()
	}
	c, err := net.Dial("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(`{"do":"dance"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 200)
	if n, err := c.Read(buf); err != nil || !strings.Contains(string(buf[:n]), `cannot do`) {
		t.Errorf("an unknown command: %q %v", buf[:n], err)
	}
	begin := time.Now()
	s.stop(t)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("a silent peer held the end up for %v", took)
	}
}

// The control folder is ours, private and no link, or nothing starts.
func TestControlFolder(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T, p *place, folder string){
		"link": func(t *testing.T, p *place, folder string) {
			if err := os.Mkdir(p.path("elsewhere"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(p.path("elsewhere"), folder); err != nil {
				t.Fatal(err)
			}
		},
		"open to others": func(t *testing.T, p *place, folder string) {
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(folder, 0o777); err != nil {
				t.Fatal(err)
			}
		},
		"another's": func(t *testing.T, p *place, folder string) {
			if os.Getuid() != 0 {
				t.Fatal("only root can make another's folder: run the tests as root")
			}
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(folder, annUID, annUID); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t *testing.T, p *place, folder string) {
			if err := os.WriteFile(folder, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			make(t, p, p.path("run/egressd"))
			_, errs, code := p.call(t, "serve", "--listen", "127.0.0.1:0", "--policy", p.policy(t))
			if code != 1 || !strings.Contains(errs, p.path("run/egressd")) {
				t.Errorf("%d %s", code, errs)
			}
		})
	}
}

// Without XDG_RUNTIME_DIR the folder lies below the temp folder, by uid.
func TestControlTemp(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for i, kv := range p.env {
		if strings.HasPrefix(kv, "XDG_RUNTIME_DIR=") {
			p.env[i] = "XDG_RUNTIME_DIR="
		}
	}
	first := p.serve(t, "--policy", p.policy(t))
	second := p.serve(t, "--policy", p.policy(t))
	if _, errs, code := p.call(t, "ca"); code != 1 || !strings.Contains(errs, "2 sessions are running, name one with --session: ") {
		t.Errorf("with two sessions: %d %s", code, errs)
	}
	if out, errs, code := p.call(t, "ca", "--session", strings.ToLower(second.session)); code != 0 || !strings.Contains(out, "CERTIFICATE") {
		t.Errorf("the second of two: %d %s", code, errs)
	}
	first.stop(t)
	second.stop(t)
	entries, err := os.ReadDir(p.path("tmp"))
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), "egressd-") {
		t.Errorf("the temp folder holds %v (%v)", entries, err)
	}
}

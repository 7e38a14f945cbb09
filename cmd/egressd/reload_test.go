package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SIGHUP, `egressd reload` and a change of the file bring a new policy; a bad
// one changes nothing and says so everywhere.
func TestReload(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	policy := p.policy(t, "GET api.test/one")
	s := p.serve(t, "--policy", policy)
	c := s.client(t)
	ask := func(path string) int {
		code, _ := get(t, c, "https://api.test/"+path)
		return code
	}
	if ask("one") != 200 || ask("two") != 403 {
		t.Error("the first policy")
	}
	// By command.
	next := func(rule string) {
		p.policy(t, rule)
	}
	next("GET api.test/two")
	if out, errs, code := p.call(t, "reload"); code != 0 || !strings.Contains(out, "reloaded: 1 rule") {
		t.Fatalf("reload: %d %s %s", code, out, errs)
	}
	// The client's connection lives on and is judged anew.
	if ask("one") != 403 || ask("two") != 200 {
		t.Error("the policy of egressd reload is not in force")
	}
	next("GET api.test/three")
	s.signal(t, syscall.SIGHUP)
	eventually(t, "the policy of SIGHUP is not in force", func() bool { return ask("three") == 200 })
	next("GET api.test/four")
	eventually(t, "a changed file is not reloaded", func() bool { return ask("four") == 200 })

	p.write(t, "policy.yaml", "sandbox: {egress_rules: [GEET api.test]}\n")
	if _, errs, code := p.call(t, "reload", "--session", s.session[:20]); code != 1 || !strings.Contains(errs, "policy.yaml:1:26: error bad_rule") {
		t.Errorf("reload of a bad policy: %d %s", code, errs)
	}
	s.says(t, "the policy in force stays: ")
	if strings.Contains(s.stderr.String(), "\r") {
		t.Error("a log holds a carriage return")
	}
	p.write(t, "policy.yaml", "sandbox: {}\n")
	if _, errs, code := p.call(t, "reload"); code != 1 || !strings.Contains(errs, "a running sandbox is not opened") {
		t.Errorf("reload of a policy without rules: %d %s", code, errs)
	}
	if err := os.Remove(policy); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := p.call(t, "reload"); code != 1 || !strings.Contains(errs, "reading the policy") {
		t.Errorf("reload without the file: %d %s", code, errs)
	}
	if ask("four") != 200 {
		t.Error("the old policy is not in force any more")
	}
	s.stop(t)
	all := s.records(t)
	if countRecords(all, map[string]any{"kind": "reload", "verdict": "allow"}) < 3 || countRecords(all, map[string]any{"kind": "reload", "verdict": "deny"}) < 3 {
		t.Errorf("reload records: %v", all)
	}
}

// A found policy that changed while it was in force needs trust again, however
// it is reloaded.
func TestReloadFound(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	found := func(rule string) {
		if err := os.Rename(p.policy(t, rule), p.path("egressd.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	found("GET api.test/one")
	if _, errs, code := p.call(t, "serve"); code != 1 || !strings.Contains(errs, "is new: read it, then egressd trust") {
		t.Fatalf("serve with a new policy: %d %s", code, errs)
	}
	if out, _, code := p.call(t, "trust", "--yes"); code != 0 || !strings.Contains(out, "trusted, as it is now") {
		t.Fatalf("trust: %d %s", code, out)
	}
	s := p.serve(t)
	found("GET api.test/**")
	s.says(t, "is changed: read it, then egressd trust")
	if _, errs, code := p.call(t, "reload"); code != 1 || !strings.Contains(errs, "is changed: read it, then egressd trust") {
		t.Errorf("reload: %d %s", code, errs)
	}
	s.signal(t, syscall.SIGHUP)
	if code, _ := s.get(t, "https://api.test/two"); code != 403 {
		t.Errorf("the changed policy is in force: %d", code)
	}
	if _, _, code := p.call(t, "trust", "--yes"); code != 0 {
		t.Error("trust of the change")
	}
	if _, errs, code := p.call(t, "reload"); code != 0 {
		t.Errorf("reload after trust: %d %s", code, errs)
	}
	if code, _ := s.get(t, "https://api.test/two"); code != 200 {
		t.Errorf("the trusted policy is not in force: %d", code)
	}
	s.stop(t)
	if n := countRecords(s.records(t), map[string]any{"kind": "reload", "verdict": "deny"}); n < 2 {
		t.Errorf("%d reloads were refused", n)
	}
}

// Without a policy file there is nothing to read again.
func TestReloadNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve(t)
	s.says(t, "no policy: every request is denied")
	if _, errs, code := p.call(t, "reload"); code != 1 || !strings.Contains(errs, "began without a policy file") {
		t.Errorf("reload: %d %s", code, errs)
	}
	s.signal(t, syscall.SIGHUP)
	s.says(t, "the policy in force stays: ")
	s.stop(t)
}

// stream opens /sse and reads its first event.
func (s *served) stream(t *testing.T) *bufio.Reader {
	t.Helper()
	resp, err := s.client(t).Get("https://api.test/sse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); err != nil || line != "data: first\n" {
		t.Fatalf("the first event: %q %v", line, err)
	}
	return r
}

// tunnel opens a tunnel to the echo and says hello.
func (s *served) tunnel(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "CONNECT raw.test:5000 HTTP/1.1\r\nHost: raw.test:5000\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("the tunnel: %+v %v", resp, err)
	}
	fmt.Fprint(c, "echo")
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		t.Fatalf("the echo: %v", err)
	}
	return c
}

// What runs and is now forbidden is broken off, what is still allowed goes on.
func TestReloadRevokes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve(t, "--policy", p.policy(t, "GET api.test/**", "CONNECT raw.test:5000"))
	stream, tunnel := s.stream(t), s.tunnel(t)
	p.policy(t, "GET api.test/**")
	if _, errs, code := p.call(t, "reload"); code != 0 {
		t.Fatalf("reload: %s", errs)
	}
	if _, err := tunnel.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the tunnel lives on: %v", err)
	}
	p.policy(t, "GET api.test/other")
	if _, errs, code := p.call(t, "reload"); code != 0 {
		t.Fatalf("reload: %s", errs)
	}
	if data, err := io.ReadAll(stream); err == nil {
		t.Errorf("the stream ends as if it were whole: %q", data)
	}
	s.stop(t)
	all := s.records(t)
	if n := countRecords(all, map[string]any{"kind": "request", "reason": "revoked"}); n != 2 {
		t.Errorf("%d requests were revoked, not 2: %v", n, all)
	}
}

// SIGTERM waits for what runs, and a second one does not.
func TestServeShutdown(t *testing.T) {
	t.Parallel()
	t.Run("waits", func(t *testing.T) {
		t.Parallel()
		s := func() *served { p := newPlace(t); return p.serve(t, "--policy", p.policy(t, "GET api.test/**")) }()
		stream := s.stream(t)
		s.signal(t, syscall.SIGTERM)
		eventually(t, "it still accepts connections", func() bool {
			c, err := net.Dial("tcp", s.listen)
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		select {
		case <-s.ended:
			t.Fatal("it ended although a stream runs")
		case <-time.After(300 * time.Millisecond):
		}
		close(s.origin.free)
		if rest, err := io.ReadAll(stream); err != nil || !strings.Contains(string(rest), "data: last") {
			t.Errorf("the stream's end: %q %v", rest, err)
		}
		if code := s.wait(t, 5*time.Second); code != 0 {
			t.Errorf("exit status %d", code)
		}
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		s := func() *served {
			p := newPlace(t)
			return p.serve(t, "--policy", p.policy(t, "GET api.test/**", "CONNECT raw.test:5000"))
		}()
		s.stream(t)
		s.tunnel(t)
		s.signal(t, syscall.SIGTERM)
		time.Sleep(300 * time.Millisecond)
		begin := time.Now()
		s.signal(t, syscall.SIGTERM)
		s.wait(t, 3*time.Second)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the end took %v", took)
		}
		// Also in a hurry the record is whole: both ends are in it.
		all := s.records(t)
		if countRecords(all, map[string]any{"kind": "session_end"}) != 1 || countRecords(all, map[string]any{"kind": "request"}) != 2 {
			t.Errorf("the record: %v", all)
		}
	})
	t.Run("grace", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		policy := p.policy(t, "GET api.test/**")
		data, err := os.ReadFile(policy)
		if err != nil {
			t.Fatal(err)
		}
		p.write(t, filepath.Base(policy), strings.Replace(string(data), "20s", "1s", 1))
		s := p.serve(t, "--policy", policy)
		s.stream(t)
		begin := time.Now()
		s.signal(t, syscall.SIGTERM)
		if code := s.wait(t, 5*time.Second); code != 0 || time.Since(begin) < 900*time.Millisecond {
			t.Errorf("exit status %d after %v", code, time.Since(begin))
		}
	})
}

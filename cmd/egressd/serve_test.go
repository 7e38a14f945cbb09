package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The ready line, the certificate, one allowed and one denied request.
func TestServe(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve(t, "--policy", p.policy(t, "GET api.test/**"))
	if code, body := s.get(t, "https://api.test/a"); code != 200 || body != "hello /a" {
		t.Errorf("an allowed request: %d %q", code, body)
	}
	if code, body := s.get(t, "https://other.test/"); code != 403 || !strings.Contains(body, "no_rule") {
		t.Errorf("a denied request: %d %q", code, body)
	}
	if out, _, code := p.call(t, "ca"); code != 0 || !strings.HasPrefix(out, "-----BEGIN CERTIFICATE-----") {
		t.Errorf("egressd ca: %d %q", code, out)
	} else if data, err := os.ReadFile(p.path("ca.pem")); err != nil || string(data) != out {
		t.Errorf("--ca-out and egressd ca differ (%v)", err)
	}
	if _, errs, code := p.call(t, "ca", "--session", "0000"); code != 1 || !strings.Contains(errs, "no running session begins with") {
		t.Errorf("another session: %d %s", code, errs)
	}
	s.stop(t)
	if all := s.records(t); countRecords(all, map[string]any{"kind": "request", "capture": "serve"}) != 2 ||
		countRecords(all, map[string]any{"kind": "session_end", "reason": "signal"}) != 1 {
		t.Errorf("the record: %v", all)
	}
	if _, _, code := p.call(t, "ca"); code != 1 {
		t.Errorf("egressd ca after the end: %d", code)
	}
}

// --env-out is closed to others and all that curl needs.
func TestServeEnv(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	token := p.write(t, "token", "s3cret&$(touch${IFS}x);'t\n")
	s := p.serve(t, "--policy", p.policy(t, "GET api.test/**"), "--env-out", p.path("env"), "--auth-token-file", token)
	if st, err := os.Stat(p.path("env")); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("--env-out: %v %v", st, err)
	}
	data, err := os.ReadFile(p.path("env"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(line, "=")
		if seen[name] || name == "SSL_CERT_DIR" || name == "ELECTRON_DISABLE_SANDBOX" {
			t.Errorf("--env-out holds %s, or twice", name)
		}
		seen[name] = true
	}
	for _, name := range []string{"HTTPS_PROXY", "no_proxy", "NODE_USE_ENV_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "npm_config_cafile"} {
		if !seen[name] {
			t.Errorf("--env-out lacks %s", name)
		}
	}
	for _, proxyAuth := range []string{"--proxy-basic", "--proxy-anyauth"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -a; . ./env; exec curl -sS "+proxyAuth+" https://api.test/x")
		cmd.Dir, cmd.Env = p.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.path("home")}
		if out, errs, code := finish(t, cmd); code != 0 || out != "hello /x" {
			t.Errorf("curl %s: %d %q %s", proxyAuth, code, out, errs)
		}
	}
	if _, err := os.Stat(p.path("x")); err == nil {
		t.Error("the token ran in the shell that read --env-out")
	}
	s.stop(t)
	for _, r := range s.records(t) {
		if text := fmt.Sprint(r); strings.Contains(text, "s3cret") {
			t.Errorf("the token is in the record: %s", text)
		}
	}
}

// Without the token a client is asked for it, on a connection that stays open
// (git and curl --proxy-anyauth try again on it).
func TestServeToken(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve(t, "--policy", p.policy(t, "GET api.test/**"), "--auth-token-file", p.write(t, "token", "right"))
	c, err := net.Dial("tcp", s.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	basic := func(token string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anybody:"+token))
	}
	for _, x := range []struct {
		head, auth string
		want       int
	}{
		{"CONNECT api.test:443", "", 407},
		{"GET http://api.test/", "", 407},
		{"GET http://api.test/", basic("wrong"), 407},
		{"GET http://api.test/", "Bearer wrong", 407},
		{"GET http://api.test/", "Bearer right", 200},
		{"GET http://api.test/", basic("right"), 200},
		{"CONNECT api.test:443", basic("right"), 200},
	} {
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: api.test\r\n", x.head)
		if x.auth != "" {
			fmt.Fprintf(c, "Proxy-Authorization: %s\r\n", x.auth)
		}
		fmt.Fprint(c, "\r\n")
		method, _, _ := strings.Cut(x.head, " ")
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s %s: the connection does not stay open: %v", x.head, x.auth, err)
		}
		if x.want == 407 || method == "GET" { // a tunnel has no end
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
		}
		if resp.StatusCode != x.want || (x.want == 407) != strings.HasPrefix(resp.Header.Get("Proxy-Authenticate"), "Basic ") {
			t.Errorf("%s %q: %d %q", x.head, x.auth, resp.StatusCode, resp.Header.Get("Proxy-Authenticate"))
		}
	}
	for _, got := range []string{"", "two words", "ü"} {
		_, errs, code := p.call(t, "serve", "--policy", p.path("policy.yaml"), "--auth-token-file", p.write(t, "bad", got))
		if code != 1 || !strings.Contains(errs, "is empty or holds more than one word of ASCII") {
			t.Errorf("the token %q: %d %s", got, code, errs)
		}
	}
}

// What is refused before anything listens.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	policy := p.policy(t, "GET api.test/**")
	l := listenLoopback(t)
	defer l.Close()
	plain := p.write(t, "plain", "precious")
	open := p.write(t, "open.yaml", "sandbox: {}\n")
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, "anything but loopback and a unix socket needs --auth-token-file"},
		{[]string{"--listen", "[::]:0"}, "needs --auth-token-file"},
		{[]string{"--listen", "localhost:1"}, "write IP:PORT, such as 127.0.0.1:3128, or unix:PATH"},
		{[]string{"--listen", l.Addr().String()}, "the port is in use, name another with --listen"},
		{[]string{"--listen", "unix:" + plain}, "a file that is no socket lies there"},
		{[]string{"--auth-token-file", "nosuch"}, "reading the token: "},
		{[]string{"--listen", "127.0.0.1:0", "--ca-out", "nosuch/ca.pem"}, "writing the CA certificate: "},
		{[]string{"--listen", "unix:sock", "--env-out", "env"}, "no client's variables can name a unix socket"},
		{[]string{"--listen", "127.0.0.1:0", "--env-out", "a b/env"}, "read the path"},
		{[]string{"--policy", open}, "write egress_rules: [] to deny everything"},
		{[]string{"--policy", "nosuch.yaml"}, "reading the policy: "},
		{[]string{"--audit", "nosuch/record.jsonl", "--listen", "127.0.0.1:0"}, "opening the record: "},
	} {
		_, errs, code := p.call(t, append([]string{"serve", "--policy", policy}, x.args...)...)
		if code != 1 || !strings.Contains(errs, x.want) || strings.Contains(errs, "panic") {
			t.Errorf("%v: %d %s", x.args, code, errs)
		}
	}
	if data, err := os.ReadFile(plain); err != nil || string(data) != "precious" {
		t.Errorf("the file that was named as a socket holds %q (%v)", data, err)
	}
	if _, err := os.Lstat(p.path("sock")); err == nil {
		t.Error("a socket is left")
	}
}

// A unix socket is its user's alone; one that a killed proxy left is replaced,
// one that answers is in use.
func TestServeUnix(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	sock := p.path("proxy.sock")
	policy := p.policy(t, "GET api.test/**")
	first := p.serve(t, "--policy", policy, "--listen", "unix:"+sock)
	if st, err := os.Lstat(sock); err != nil || st.Mode().Perm() != 0o600 || st.Mode().Type() != os.ModeSocket {
		t.Fatalf("the socket: %v %v", st, err)
	}
	ask := func() string {
		c, err := net.Dial("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET http://api.test/u HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
		data, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := ask(); !strings.HasSuffix(got, "hello /u") {
		t.Errorf("over the socket: %q", got)
	}
	if _, errs, code := p.call(t, "serve", "--policy", policy, "--listen", "unix:"+sock); code != 1 || !strings.Contains(errs, "the socket is in use") {
		t.Errorf("the second: %d %s", code, errs)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	second := p.serve(t, "--policy", policy, "--listen", "unix:"+sock)
	if got := ask(); !strings.HasSuffix(got, "hello /u") {
		t.Errorf("over the new socket: %q", got)
	}
	second.stop(t)
	if _, err := os.Lstat(sock); err == nil {
		t.Error("the socket is left")
	}
	// The killed session's control socket is taken away by whoever looks.
	if _, _, code := p.call(t, "reload"); code != 1 {
		t.Errorf("reload with no session: %d", code)
	}
	if left, err := os.ReadDir(p.path("run/egressd")); err != nil || len(left) != 0 {
		t.Errorf("the control folder holds %v (%v)", left, err)
	}
	out, _, code := p.call(t, "audit", "verify")
	if code != 0 || !strings.Contains(out, "is cut: it has no end") {
		t.Errorf("verify after a kill: %d %s", code, out)
	}
}

// systemd is told when it is ready, and when it stops.
func TestServeNotify(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: p.path("notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.env = append(p.env, "NOTIFY_SOCKET="+p.path("notify"))
	s := p.serve(t, "--policy", p.policy(t))
	s.stop(t)
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"READY=1", "STOPPING=1"} {
		buf := make([]byte, 100)
		n, err := c.Read(buf)
		if err != nil || string(buf[:n]) != want {
			t.Errorf("systemd was told %q, not %q (%v)", buf[:n], want, err)
		}
	}
}

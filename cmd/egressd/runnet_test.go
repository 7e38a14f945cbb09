package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// What goes wrong on the way to an origin is a 502 that names the fault, one
// record, and no byte of the request where the certificate is bad.
func TestRunOrigins(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		h := newSandboxHost(t)
		r := newRunPlace(t, annUID)
		policy := r.policy(t, "GET api.test/**", "GET down.test/**", "GET bad.test/**", "GET nodns.test/**")
		script := `for u do curl -s -o /tmp/b -D /tmp/h -w "%{http_code} " "$u"; grep -i ^proxy-status /tmp/h | tr -d '\r'; grep -o '"code":"[a-z_]*"' /tmp/b || echo none; done`
		out, errs, code := r.call(t, "run", "--policy", policy, "--", "bash", "-c", script, "sh",
			"https://down.test/", "https://bad.test/", "https://nodns.test/", "http://nodns.test/")
		t.Log(out)
		if code != 0 || strings.Count(out, "502 ") != 4 {
			t.Errorf("%d\n%s%s", code, out, errs)
		}
		for _, reason := range []string{"connect", "upstream_tls", "dns"} {
			if !strings.Contains(out, `"code":"`+reason+`"`) {
				t.Errorf("no answer says %s:\n%s", reason, out)
			}
		}
		if r.origin.badSeen != 0 {
			t.Error("the origin with a bad certificate got a request")
		}
		h.mu.Lock()
		if len(h.asked) == 0 {
			t.Error("the host's resolver was not asked for nodns.test")
		}
		h.mu.Unlock()
		all := r.record(t)
		for reason, want := range map[string]int{"connect": 1, "upstream_tls": 1, "dns": 2} {
			if n := countRecords(all, map[string]any{"kind": "request", "verdict": "error", "reason": reason, "status": 502.0}); n != want {
				t.Errorf("%d records say %s, not %d", n, reason, want)
			}
		}
		if counts := checkCounts(t, all); counts["self_test"]["allow"] != 1 || counts["session_start"][""] != 1 {
			t.Errorf("the records: %v", counts)
		}
		// A client that goes away in the middle leaves a record too.
		if _, errs, code := r.call(t, "run", "--policy", policy, "--", "curl", "-sN", "-m", "1", "https://api.test/sse"); code != 28 {
			t.Errorf("curl -m 1: %d %s", code, errs)
		}
		if n := countRecords(r.record(t), map[string]any{"kind": "request", "host": "api.test", "status": 200.0}); n != 1 {
			t.Errorf("%d records of a request that its client left", n)
		}
	})
}

// Whatever bytes come, each is one record on one line, escaped, in the file and
// for a person.
func TestRunHostileBytes(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		policy := r.policy(t, "GET api.test/**")
		heads := []string{
			`GET http://api.test/\x1b]0;title\x07 HTTP/1.1\r\nHost: api.test`,
			`CONNECT \x1b[2Japi.test:443 HTTP/1.1\r\nHost: api.test`,
			`GET http://api.test/%0d%0aFAKE:%20LINE HTTP/1.1\r\nHost: api.test`,
			`GET http://api.test/\xe2\x80\xa8\xc2\x85\xe2\x80\xae HTTP/1.1\r\nHost: api.test`,
			`GET http://api.test/\xff\xfe?\xff=\x80 HTTP/1.1\r\nHost: api.test`,
			`GET http://api.test/ok?%0a%1b[31m=1 HTTP/1.1\r\nHost: api.test\r\nReferer: a\tb"c\r\nUser-Agent: \x1b]0;x`,
			`G\x1bT http://api.test/ HTTP/1.1\r\nHost: api.test`,
			`GET http://\xe2\x80\xaeapi.test/ HTTP/1.1\r\nHost: api.test`,
		}
		script := `for h do exec 3<>/dev/tcp/127.0.0.1/3128; printf "$h\r\nConnection: close\r\n\r\n" >&3; head -1 <&3; exec 3>&-; done`
		out, errs, code := r.call(t, append([]string{"run", "--policy", policy, "--", "bash", "-c", script, "sh"}, escapePercent(heads)...)...)
		if code != 0 || strings.Count(out, "HTTP/1.1 ") != len(heads) {
			t.Errorf("%d %q %s", code, out, errs)
		}
		files, err := filepath.Glob(r.path(".local/state/egressd/audit/*.jsonl"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		requests := 0
		for line := range strings.Lines(string(data)) {
			var rec map[string]any
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if rec["kind"] == "request" {
				requests++
			}
		}
		if requests != len(heads) {
			t.Errorf("%d records for %d requests", requests, len(heads))
		}
		list, _, _ := r.call(t, "audit", "list")
		for name, text := range map[string]string{"the file": string(data), "audit list": list} {
			if i := strings.IndexFunc(text, func(c rune) bool {
				return c < ' ' && c != '\n' || c == 0x7f || c == 0x85 || 0x2028 <= c && c <= 0x202e
			}); i >= 0 {
				t.Errorf("%s holds a control character: %q", name, text[max(0, i-40):min(len(text), i+40)])
			}
		}
		if strings.Count(list, "\n") != strings.Count(string(data), "\n") {
			t.Error("audit list has other lines than the record")
		}
		for _, header := range []string{"Referer", "User-Agent", `]0;x"`} {
			if strings.Contains(string(data), header) {
				t.Errorf("the record holds the header %q", header)
			}
		}
	})
}

// escapePercent lets printf print a percent sign.
func escapePercent(list []string) (out []string) {
	for _, s := range list {
		out = append(out, strings.ReplaceAll(s, "%", "%%"))
	}
	return out
}

// A port that is published leads to the sandbox's own, from loopback alone, and
// is closed at the end.
func TestRunPublish(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		newSandboxHost(t)
		r := newRunPlace(t, annUID)
		policy := r.policy(t)
		cmd := r.command(t, "run", "--policy", policy, "--publish", "8000:18000", "--publish", "8001", "--", "python3", "-c", `
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"from inside")
    def log_message(self, *a): pass
http.server.HTTPServer(("127.0.0.1", 8000), H).serve_forever()`)
		var stderr lockedBuffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ask := func(addr string) string {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err != nil {
				return err.Error()
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			_, _ = c.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
			buf := make([]byte, 4096)
			n := 0
			for {
				m, err := c.Read(buf[n:])
				n += m
				if err != nil {
					return string(buf[:n])
				}
			}
		}
		eventually(t, "the published port does not answer", func() bool { return strings.HasSuffix(ask("127.0.0.1:18000"), "from inside") })
		if got := ask("127.0.0.1:8001"); got != "" {
			t.Errorf("a port that nothing listens on inside answers %q", got)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 128+15 {
			t.Errorf("exit status %d\n%s", code, stderr.String())
		}
		if got := ask("127.0.0.1:18000"); !strings.Contains(got, "refused") {
			t.Errorf("after the end the port says %q", got)
		}
	})
}

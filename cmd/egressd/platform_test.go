package main

import (
	"bufio"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/egressd/egressd/policy"
)

// What macOS lacks is refused there with the reason, and on Linux is not.
func TestRefusedOn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"os_env: {fork: true, sandbox: {egress_rules: []}}":                                                    "os_env.fork needs Linux",
		"sandbox: {egress_rules: [], limits: {memory: 1GiB}}":                                                  "limits.memory needs Linux",
		"sandbox: {egress_rules: [], limits: {processes: 9}}":                                                  "limits.processes needs Linux",
		"sandbox: {egress_rules: [], limits: {open_files: 99, cpu_seconds: 9}}":                                "",
		"sandbox: {egress_rules: [], credential_proxy: [{type: gh_basic, source: {env: T}}]}":                  "ignore SSL_CERT_FILE",
		"sandbox: {egress_rules: [], credential_proxy: [{type: git_https, target: g.test, source: {env: T}}]}": "",
	} {
		p, problems := policy.Load("egressd.yaml", []byte(text+"\n"), policy.Options{Platform: "darwin"})
		if p == nil {
			t.Fatalf("%s: %v", text, problems)
		}
		if got := refusedOn("linux", p); len(got) > 0 {
			t.Errorf("%s: on Linux %v", text, got)
		}
		err := errors.Join(refusedOn("darwin", p)...)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
}

// What a client shows of the URL in its variables is what the self-test shows.
func TestProxyToken(t *testing.T) {
	t.Parallel()
	l := layout{proxy: "127.0.0.1:9"}
	u, err := url.Parse(l.url("TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	pass, _ := u.User.Password()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: a\r\n" + tokenField("TOKEN") + "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	user, shown, ok := r.BasicAuth()
	if !ok || user != u.User.Username() || shown != pass || u.Host != l.proxy {
		t.Errorf("%s, and the self-test shows %s:%s", u, user, shown)
	}
	if l.url("") != "http://127.0.0.1:9" || tokenField("") != "" {
		t.Error("without a token there is none")
	}
}

//go:build linux

package source

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// A program that does not end in its time is killed, and said to be late.
func TestRunLimit(t *testing.T) {
	path := "/usr/bin:/bin"
	cfg := Config{Env: Environment(nil, path), LookPath: Finder(path, nil)}
	began := time.Now()
	out, err := cfg.run(t.Context(), []string{"sh", "-c", "echo hush; echo still asking >&2; sleep 300"}, 300*time.Millisecond)
	if !errors.Is(err, errLate) || out != nil {
		t.Errorf("got %q, %v", out, err)
	}
	if got, want := Explain(err), "running sh: it did not end within 30s, and said: still asking"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestBusAddresses(t *testing.T) {
	for _, c := range []struct {
		address string
		want    []string
	}{
		{"unix:path=/run/user/1000/bus", []string{"/run/user/1000/bus"}},
		{"unix:path=/a%20b%2c,guid=12;unix:abstract=/tmp/x", []string{"/a b,", "@/tmp/x"}},
		{"unix:runtime=yes", []string{"/run/me/bus"}},
		{"", []string{"/run/me/bus"}},
		{"unixexec:path=/bin/sh;tcp:host=127.0.0.1,port=1;launchd:env=X;autolaunch:", nil},
		{"unix:path=", nil},
		{"unix:path=%zz", nil},
		{"nonsense", nil},
	} {
		cfg := Config{Getenv: func(name string) string {
			return map[string]string{"DBUS_SESSION_BUS_ADDRESS": c.address, "XDG_RUNTIME_DIR": "/run/me"}[name]
		}}
		if got := cfg.busAddresses(); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.address, got, c.want)
		}
	}
	if got := (Config{}).busAddresses(); got != nil {
		t.Errorf("got %q of nothing", got)
	}
}

func TestUnderData(t *testing.T) {
	for _, c := range []struct{ at, mount, want string }{
		{"kv/app", "kv/", "kv/data/app"},
		{"kv/a/b", "kv/", "kv/data/a/b"},
		{"kv", "kv/", "kv/data"},
		{"a/b/app", "a/b/", "a/b/data/app"},
		{"kv/app", "ns1/ns2/kv/", "kv/data/app"}, // the namespace is in a header
		{"kvx/app", "kv/", ""},
		{"kv/app", "other/", ""},
		{"kv/app", "", ""},
	} {
		got, err := underData(c.at, c.mount)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q below %q: got %q, %v", c.at, c.mount, got, err)
		}
	}
}

// Whatever a program writes, what is shown is short, printable and without its
// output.
func FuzzSaid(f *testing.F) {
	f.Add([]byte("error: no tok-93kd here\n\x1b[31m"), []byte("tok-93kd"), false)
	f.Add([]byte("\xff\xfe\u202e"+strings.Repeat("é", 2000)), []byte("x"), true)
	f.Fuzz(func(t *testing.T, stderr, stdout []byte, clipped bool) {
		got := said(output{head: stderr, clipped: clipped}, stdout, []string{"A_TOKEN=hush93"})
		if len(got) > shown {
			t.Errorf("%d bytes", len(got))
		}
		for _, r := range got {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e {
				t.Errorf("%q does not print", r)
			}
		}
		if strings.Contains(got, "hush93") {
			t.Errorf("a token shows: %q", got)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(" a b \r\n"), false)
	f.Add([]byte("a\nb"), true)
	f.Fuzz(func(t *testing.T, raw []byte, multiline bool) {
		v, err := check(raw, Options{Multiline: multiline})
		s := string(v.Reveal())
		switch {
		case err != nil && s != "":
			t.Error("an error and a secret")
		case err != nil:
		case s == "" || strings.Trim(s, " \t\r\n") != s || strings.Contains(s, "\x00") || !multiline && strings.ContainsAny(s, "\r\n"):
			t.Errorf("%q is a secret", s)
		}
	})
}

package source_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/credbroker/source"
)

// at is a Config of a home that is empty but for what a test puts there.
func at(t *testing.T, env map[string]string) source.Config {
	t.Helper()
	path := "/usr/local/bin:/usr/bin:/bin"
	home := t.TempDir()
	return source.Config{
		Getenv:    func(name string) string { return env[name] },
		Home:      home,
		Env:       source.Environment([]string{"HOME=" + home, "LANG=C"}, path),
		LookPath:  source.Finder(path, nil),
		Transport: &http.Transport{},
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// read reads, and looks at the error: what it must have, and that it has none
// of the secret's parts.
func read(t *testing.T, cfg source.Config, src source.Source, opts source.Options, want string, has ...string) {
	t.Helper()
	v, err := source.Read(t.Context(), cfg, src, opts)
	if got := string(v.Reveal()); got != want {
		t.Errorf("read %q, want %q (%v)", got, want, err)
	}
	if (err != nil) != (want == "") {
		t.Errorf("error %v, want %q", err, want)
	}
	if err == nil {
		return
	}
	text := source.Explain(err)
	for _, h := range has {
		if !strings.Contains(text, h) {
			t.Errorf("the error lacks %q: %s", h, text)
		}
	}
	for _, part := range []string{"93kd", "hush"} {
		if strings.Contains(text, part) || strings.Contains(err.Error(), part) {
			t.Errorf("the error holds a part of a secret: %s", text)
		}
	}
}

func TestReadVariable(t *testing.T) {
	for _, c := range []struct {
		name, value, want string
		multiline         bool
		has               []string
	}{
		{"plain", "tok-93kd", "tok-93kd", false, nil},
		{"outer space", " \t\r\n tok-93kd a \v\f\n", "tok-93kd a", false, nil},
		{"no-break space is a letter of it", "\u00a0tok-93kd", "\u00a0tok-93kd", false, nil},
		{"not there", "", "", false, []string{"reading variable TOK: it is not there or empty"}},
		{"blank", "  \n", "", false, []string{"TOK"}},
		{"CR", "hush\rX-Evil: 93kd", "", false, []string{"TOK", "line break"}},
		{"LF", "hush\nX-Evil: 93kd", "", false, []string{"TOK", "line break"}},
		{"NUL", "hush\x00 93kd", "", false, []string{"TOK", "NUL"}},
		{"NUL of many lines", "hush\x00 93kd", "", true, []string{"TOK", "NUL"}},
		{"a key", "-----BEGIN\nabc\r\n-----END\n", "-----BEGIN\nabc\r\n-----END", true, nil},
		{"blank lines", "\n\n", "", true, []string{"empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := at(t, map[string]string{"TOK": c.value})
			read(t, cfg, source.Source{Env: "TOK"}, source.Options{Multiline: c.multiline}, c.want, c.has...)
		})
	}
}

func TestReadFile(t *testing.T) {
	cfg := at(t, nil)
	home := cfg.Home
	write(t, home+"/tok", "  s3cr3t-93kd\n", 0o600)
	write(t, home+"/blank", "\n", 0o600)
	write(t, home+"/lines", "hush\n93kd", 0o600)
	write(t, home+"/long", strings.Repeat("hush", 1<<18)+"x", 0o600)
	write(t, home+"/most", strings.Repeat("m", 1<<20), 0o600)
	write(t, home+"/file/x", "93kd", 0o600)
	if err := os.Symlink("tok", home+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(home+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
		has        []string
	}{
		{"~/tok", "s3cr3t-93kd", nil},
		{home + "/tok", "s3cr3t-93kd", nil},
		{"~/link", "s3cr3t-93kd", nil},
		{"~/most", strings.Repeat("m", 1<<20), nil},
		{"~/none", "", []string{"reading file ~/none: no such file or directory"}},
		{"~/tok/x", "", []string{"~/tok/x", "not a directory"}},
		{"~/blank", "", []string{"~/blank", "empty"}},
		{"~/lines", "", []string{"~/lines", "line break"}},
		{"~/long", "", []string{"~/long", "longer than 1 MiB"}},
		{"~/file", "", []string{"~/file", "not a regular file"}},
		{"~/pipe", "", []string{"~/pipe", "not a regular file"}},
		{"/dev/zero", "", []string{"/dev/zero", "not a regular file"}},
		{"/dev/tty", "", []string{"/dev/tty"}},
	} {
		t.Run(c.path, func(t *testing.T) {
			read(t, cfg, source.Source{File: c.path}, source.Options{}, c.want, c.has...)
		})
	}
	t.Run("no home", func(t *testing.T) {
		read(t, source.Config{}, source.Source{File: "~/tok"}, source.Options{}, "", "home folder is not known")
	})
}

// The zero Config and the zero Source give nothing.
func TestReadRefuses(t *testing.T) {
	for name, src := range map[string]source.Source{
		"nowhere":  {},
		"variable": {Env: "TOK"},
		"command":  {Command: []string{"true"}},
		"keyring":  {Keyring: &source.Keyring{Service: "s", User: "u"}},
		"vault":    {Vault: &source.Vault{Address: "https://127.0.0.1:1", Path: "kv/x", Field: "f"}},
	} {
		t.Run(name, func(t *testing.T) {
			read(t, source.Config{}, src, source.Options{}, "")
		})
	}
	if _, err := (source.Config{}).Run(t.Context(), nil); err == nil {
		t.Error("an empty command ran")
	}
}

func TestFetch(t *testing.T) {
	cfg := at(t, map[string]string{"TOK": "tok"})
	v, expiry, err := cfg.Fetch(source.Source{Env: "TOK"}, source.Options{})(t.Context())
	if string(v.Reveal()) != "tok" || !expiry.IsZero() || err != nil {
		t.Errorf("got %q, %v, %v", v.Reveal(), expiry, err)
	}
}

func TestExplain(t *testing.T) {
	said := &source.CommandError{Program: "get", Err: errors.New("it failed"), Said: "log in first"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{said, "running get: it failed, and said: log in first"},
		{&source.Unavailable{Err: said}, "running get: it failed, and said: log in first"},
		{&source.Unavailable{Err: context.Canceled}, "context canceled"},
		{&source.CommandError{Program: "get", Err: errors.New("it failed")}, "running get: it failed"},
	} {
		if got := source.Explain(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if strings.Contains(c.err.Error(), "log in") {
			t.Errorf("what a program said is in the error itself: %v", c.err)
		}
	}
}

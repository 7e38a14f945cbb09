package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

// maxSecret bounds what a source may give, in bytes.
const maxSecret = 1 << 20

// patience is how long a source may take. A person who is asked to unlock a
// keyring has longer (promptPatience).
const patience = 30 * time.Second

// Config is what reading needs of the host. What is nil or empty is not there:
// a source that needs it fails.
type Config struct {
	// Getenv reads egressd's own environment, as os.Getenv.
	Getenv func(string) string
	// Home is the user's home, for ~/ and ~/.vault-token.
	Home string
	// Env is the whole environment of programs: see Environment.
	Env []string
	// LookPath finds programs: see Finder.
	LookPath func(name string) (string, error)
	// Transport makes the broker's own calls. It holds the authorities, proxies
	// and forbidden addresses of `upstream`.
	Transport http.RoundTripper
	// Now is the clock of whoever counts expiries; no source needs it.
	Now func() time.Time
}

// Options are how a value is read.
type Options struct {
	// Multiline allows line breaks inside: a key in PEM, JSON of an AWS command.
	Multiline bool
}

// Fetch gets a secret, and when it expires: the zero time where that is not
// known. It may be called from any goroutine and ends soon after its context.
type Fetch = func(ctx context.Context) (secret.Value, time.Time, error)

// Fetch reads src each time it is called.
func (c Config) Fetch(src Source, opts Options) Fetch {
	return func(ctx context.Context) (secret.Value, time.Time, error) {
		v, err := Read(ctx, c, src, opts)
		return v, time.Time{}, err
	}
}

// Read fetches a secret: without the white space around it, not empty, at most
// 1 MiB, without NUL, and without CR and LF but for opts.Multiline. It takes at
// most 30 s, or two minutes where a person must unlock a keyring. No error
// holds any part of it; see CommandError for what a program said.
func Read(ctx context.Context, cfg Config, src Source, opts Options) (secret.Value, error) {
	var what string
	var raw []byte
	var err error
	switch {
	case src.Env != "":
		what = "variable " + src.Env
		raw = []byte(cfg.getenv(src.Env))
	case src.File != "":
		what = "file " + src.File
		raw, err = cfg.file(src.File)
	case len(src.Command) > 0:
		what = "the output of " + src.Command[0]
		raw, err = cfg.Run(ctx, src.Command)
	case src.Keyring != nil:
		what = fmt.Sprintf("keyring item of service %q, user %q", src.Keyring.Service, src.Keyring.User)
		raw, err = cfg.keyring(ctx, *src.Keyring)
	case src.Vault != nil:
		what = fmt.Sprintf("field %q of Vault secret %q", src.Vault.Field, src.Vault.Path)
		raw, err = cfg.vault(ctx, *src.Vault)
	default:
		return secret.Value{}, errors.New("reading secret: its source names no place")
	}
	var command *CommandError
	switch {
	case errors.As(err, &command):
		return secret.Value{}, err // names the program already
	case err != nil:
		return secret.Value{}, fmt.Errorf("reading %s: %w", what, err)
	}
	v, err := check(raw, opts)
	if err != nil {
		return secret.Value{}, fmt.Errorf("reading %s: %w", what, err)
	}
	return v, nil
}

// check makes raw text a secret.
func check(raw []byte, opts Options) (secret.Value, error) {
	s := bytes.Trim(raw, " \t\r\n\v\f")
	switch {
	case len(s) == 0:
		return secret.Value{}, errors.New("it is not there or empty")
	case len(s) > maxSecret:
		return secret.Value{}, errTooLong
	case bytes.IndexByte(s, 0) >= 0:
		return secret.Value{}, errors.New("it has a NUL inside")
	case !opts.Multiline && bytes.ContainsAny(s, "\r\n"):
		return secret.Value{}, errors.New("it has a line break inside")
	}
	return secret.New(s), nil
}

var errTooLong = fmt.Errorf("it is longer than %d MiB", maxSecret>>20)

func (c Config) getenv(name string) string {
	if c.Getenv == nil {
		return ""
	}
	return c.Getenv(name)
}

// expand makes ~/x a path below the home.
func (c Config) expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	switch {
	case !ok:
		return path, nil
	case c.Home == "":
		return "", errors.New("the home folder is not known")
	}
	return filepath.Join(c.Home, rest), nil
}

// words are those of a command, each that begins with ~/ spelled out: no shell
// does it.
func (c Config) words(argv []string) ([]string, error) {
	words := make([]string, len(argv))
	for i, word := range argv {
		var err error
		if words[i], err = c.expand(word); err != nil {
			return nil, fmt.Errorf("spelling out %s: %w", word, err)
		}
	}
	return words, nil
}

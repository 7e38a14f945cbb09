package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/egressd/egressd/credbroker"
)

// write puts the certificate and the variables where clients find them. The
// variables are written anew whenever a reload changes them.
func (f *serveFlags) write(sess *session, name, token string) error {
	if f.caOut != "" {
		if err := os.WriteFile(f.caOut, sess.issuer.PEM(), 0o644); err != nil {
			return fmt.Errorf("writing the CA certificate: %w", err)
		}
	}
	if f.envOut == "" {
		return nil
	}
	if strings.HasPrefix(name, "unix:") {
		return errors.New("writing --env-out: no client's variables can name a unix socket")
	}
	bundle := f.envOut + ".pem"
	abs, err := filepath.Abs(bundle)
	if err != nil {
		return fmt.Errorf("writing the trust bundle: %w", err)
	}
	if strings.ContainsFunc(abs, unquotable) {
		return fmt.Errorf("writing --env-out: shells and container engines read the path %q in different ways: name one of letters, digits and the signs . / _ - + @", abs)
	}
	roots, err := sess.roots()
	if err != nil {
		return err
	}
	if err := os.WriteFile(bundle, roots.Bundle(sess.issuer.PEM()), 0o644); err != nil {
		return fmt.Errorf("writing the trust bundle: %w", err)
	}
	proxy := "http://" + name
	if token != "" {
		// Escaped whole, since a shell may read the file.
		proxy = "http://egressd:" + url.QueryEscape(token) + "@" + name
	}
	fixed := clientVariables(proxy, abs)
	return sess.shows(func(in credbroker.Inside) error { return f.variables(fixed, in) })
}

// variables writes --env-out, and the files that its variables name before it.
func (f *serveFlags) variables(fixed []string, in credbroker.Inside) error {
	inside, err := f.inside(in)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, kv := range slices.Concat(fixed, inside) {
		b.WriteString(kv + "\n")
	}
	if err := writePrivate(f.envOut, []byte(b.String())); err != nil {
		return fmt.Errorf("writing the variables: %w", err)
	}
	return nil
}

// inside are the variables by which clients find their placeholders; files lie
// beside --env-out. Settings of git that a shell and a container engine would
// read in different ways are left out: no client needs those to log in.
func (f *serveFlags) inside(in credbroker.Inside) ([]string, error) {
	env := slices.Clone(in.Env)
	for _, file := range in.Files {
		path, err := filepath.Abs(f.envOut + "." + file.Name)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", file.Name, err)
		}
		if err := writePrivate(path, file.Data); err != nil {
			return nil, fmt.Errorf("writing %s: %w", file.Name, err)
		}
		env = append(env, file.Variable+"="+path)
	}
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.ContainsFunc(kv, unquotable) })
	plain := slices.DeleteFunc(slices.Clone(in.Git), func(s credbroker.GitSetting) bool { return strings.ContainsFunc(s.Key+s.Value, unquotable) })
	return append(env, gitVariables(nil, plain)...), nil
}

// unquotable says whether a character of a value needs quotes somewhere.
func unquotable(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("./_-+@:,%=", r))
}

// writePrivate writes a file that only its user can read, whatever mode an
// older one of its name had, and whole: who reads it meanwhile has the old one
// or the new. One that says the same already stays, since a container may have
// that very file mounted.
func writePrivate(path string, data []byte) error {
	if st, err := os.Lstat(path); err == nil && st.Mode() == 0o600 {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			return nil
		}
	}
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = t.Write(data)
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		os.Remove(t.Name())
	}
	return err
}

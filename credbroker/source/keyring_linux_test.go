package source_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/egressd/egressd/credbroker/source"
)

const secrets = "/org/freedesktop/secrets"

// secretService is a keyring: the part of the Secret Service API that reads.
type secretService struct {
	conn *dbus.Conn

	mu       sync.Mutex
	items    map[dbus.ObjectPath]*keyringItem
	sessions int
	prompt   string      // "" unlocks without one, refuse does not; else what it does: unlock, dismiss, silent, odd
	fail     *dbus.Error // every answer
	hang     chan struct{}
}

type keyringItem struct {
	service *secretService
	path    dbus.ObjectPath
	attrs   map[string]string
	value   string
	locked  bool
}

type keyringSecret struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

func newSecretService(t *testing.T, address string) *secretService {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &secretService{conn: conn, items: map[dbus.ObjectPath]*keyringItem{}}
	if err := conn.Export(s, secrets, "org.freedesktop.Secret.Service"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Export(keyringPrompt{s}, secrets+"/prompt/p1", "org.freedesktop.Secret.Prompt"); err != nil {
		t.Fatal(err)
	}
	if r, err := conn.RequestName("org.freedesktop.secrets", dbus.NameFlagDoNotQueue); err != nil || r != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("owning name: %v, %v", r, err)
	}
	return s
}

func (s *secretService) add(t *testing.T, name, service, user, value string, locked bool) {
	t.Helper()
	item := &keyringItem{service: s, path: dbus.ObjectPath(secrets + "/collection/login/" + name),
		attrs: map[string]string{"service": service, "username": user, "application": "x"}, value: value, locked: locked}
	s.mu.Lock()
	s.items[item.path] = item
	s.mu.Unlock()
	if err := s.conn.Export(item, item.path, "org.freedesktop.Secret.Item"); err != nil {
		t.Fatal(err)
	}
}

func (s *secretService) OpenSession(algorithm string, _ dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if algorithm != "plain" {
		return dbus.MakeVariant(""), "/", dbus.NewError("org.freedesktop.DBus.Error.NotSupported", nil)
	}
	s.sessions++
	return dbus.MakeVariant(""), secrets + "/session/s1", s.fail
}

func (s *secretService) SearchItems(attrs map[string]string) (unlocked, locked []dbus.ObjectPath, err *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, item := range s.items {
		fits := true
		for name, value := range attrs {
			fits = fits && item.attrs[name] == value
		}
		switch {
		case fits && item.locked:
			locked = append(locked, path)
		case fits:
			unlocked = append(unlocked, path)
		}
	}
	return unlocked, locked, nil
}

func (s *secretService) Unlock(paths []dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.prompt {
	case "":
		s.open()
		return paths, "/", nil
	case "refuse":
		return nil, "/", nil
	}
	return nil, secrets + "/prompt/p1", nil
}

func (s *secretService) open() {
	for _, item := range s.items {
		item.locked = false
	}
}

type keyringPrompt struct{ s *secretService }

func (p keyringPrompt) Prompt(string) *dbus.Error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	emit := func(path dbus.ObjectPath, body ...any) {
		p.s.conn.Emit(path, "org.freedesktop.Secret.Prompt.Completed", body...)
	}
	emit(secrets+"/prompt/other", true, dbus.MakeVariant("")) // not ours
	switch p.s.prompt {
	case "unlock":
		p.s.open()
		emit(secrets+"/prompt/p1", false, dbus.MakeVariant([]dbus.ObjectPath{secrets}))
	case "dismiss":
		emit(secrets+"/prompt/p1", true, dbus.MakeVariant(""))
	case "odd":
		emit(secrets+"/prompt/p1", "false", dbus.MakeVariant(""))
	}
	return nil
}

func (i *keyringItem) GetSecret(session dbus.ObjectPath) (keyringSecret, *dbus.Error) {
	i.service.mu.Lock()
	defer i.service.mu.Unlock()
	switch {
	case i.locked:
		return keyringSecret{}, dbus.NewError("org.freedesktop.Secret.Error.IsLocked", []any{"hush"})
	case session != secrets+"/session/s1":
		return keyringSecret{}, dbus.NewError("org.freedesktop.Secret.Error.NoSession", []any{"hush"})
	}
	return keyringSecret{Session: session, Value: []byte(i.value), ContentType: "text/plain"}, nil
}

func item(service, user string) source.Source {
	return source.Source{Keyring: &source.Keyring{Service: service, User: user}}
}

func TestKeyring(t *testing.T) {
	for name, bus := range buses(t) {
		t.Run(name, func(t *testing.T) {
			address := bus(t)
			cfg := at(t, map[string]string{"DBUS_SESSION_BUS_ADDRESS": "tcp:host=127.0.0.1,port=1;unix:path=/no/such/bus;" + address})
			read(t, cfg, item("gh:github.com", "me"), source.Options{}, "", "no keyring (org.freedesktop.secrets) is on the session bus")
			s := newSecretService(t, address)
			s.add(t, "one", "gh:github.com", "me", "gho-93kd\n", false)
			s.add(t, "two", "gh:github.com", "you", "gho-two", false)
			s.add(t, "empty", "empty", "me", "", false)
			s.add(t, "lines", "lines", "me", "hush\n93kd", false)
			s.add(t, "locked", "locked", "me", "opened-93kd", true)
			quiet(t)
			read(t, cfg, item("gh:github.com", "me"), source.Options{}, "gho-93kd")
			read(t, cfg, item("gh:github.com", "you"), source.Options{}, "gho-two")
			read(t, cfg, item("gh:github.com", "they"), source.Options{}, "", `keyring item of service "gh:github.com", user "they": there is no such item`)
			read(t, cfg, item("gh", "me"), source.Options{}, "", "no such item")
			read(t, cfg, item("empty", "me"), source.Options{}, "", "empty")
			read(t, cfg, item("lines", "me"), source.Options{}, "", "line break")
			for _, c := range []struct{ prompt, want, has string }{
				{"refuse", "", "the keyring is locked"},
				{"dismiss", "", "the keyring is locked"},
				{"odd", "", "the keyring is locked"},
				{"unlock", "opened-93kd", ""},
				{"", "opened-93kd", ""},
			} {
				s.mu.Lock()
				s.prompt, s.items[secrets+"/collection/login/locked"].locked = c.prompt, true
				s.mu.Unlock()
				read(t, cfg, item("locked", "me"), source.Options{}, c.want, c.has)
			}
			s.mu.Lock()
			s.prompt, s.items[secrets+"/collection/login/locked"].locked = "silent", true
			s.mu.Unlock()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := source.Read(ctx, cfg, item("locked", "me"), source.Options{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a prompt that nobody answers: %v", err)
			}
			for _, fail := range []string{"org.freedesktop.Secret.Error.IsLocked", "org.freedesktop.Secret.Error.NoSuchObject", "org.example.hush"} {
				s.mu.Lock()
				s.fail = dbus.NewError(fail, []any{"hush 93kd"})
				s.mu.Unlock()
				read(t, cfg, item("gh:github.com", "me"), source.Options{}, "")
			}
		})
	}
}

// A keyring that hangs or goes away is not waited for.
func TestKeyringHangs(t *testing.T) {
	address := smallBus(t)
	cfg := at(t, map[string]string{"DBUS_SESSION_BUS_ADDRESS": address})
	s := newSecretService(t, address)
	s.add(t, "locked", "locked", "me", "hush", true)
	hang := make(chan struct{})
	s.mu.Lock()
	s.hang = hang
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := source.Read(ctx, cfg, item("locked", "me"), source.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(hang)
	s.mu.Lock()
	s.hang, s.prompt = nil, "unlock"
	s.mu.Unlock()
	read(t, cfg, item("locked", "me"), source.Options{}, "hush")
}

// What answers on the socket need not be a bus.
func TestKeyringNoBus(t *testing.T) {
	for _, env := range []map[string]string{
		{}, {"XDG_RUNTIME_DIR": t.TempDir()}, {"DBUS_SESSION_BUS_ADDRESS": "unixexec:path=/bin/sh"}, {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/no/such"},
	} {
		read(t, at(t, env), item("s", "u"), source.Options{}, "", "there is no session bus")
	}
	quiet(t)
	for _, c := range []struct{ name, says, has string }{
		{"closes", "", "did not answer as it should"},
		{"other protocol", "HTTP/1.1 400 hush\r\n\r\n", "did not answer as it should"},
		{"no login", "REJECTED\r\n", "did not answer as it should"},
		{"login and rubbish", "REJECTED EXTERNAL\r\nOK 12\r\nERROR\r\n" + strings.Repeat("hush", 50), "did not answer as it should"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bus")
			serveOnce(t, path, func(conn net.Conn) { conn.Write([]byte(c.says)) })
			read(t, at(t, map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=" + path}), item("s", "u"), source.Options{}, "", c.has)
		})
	}
	t.Run("silent", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bus")
		serveOnce(t, path, func(conn net.Conn) {
			conn.Read(make([]byte, 1))
			conn.Read(make([]byte, 100))
			conn.Read(make([]byte, 100))
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		cfg := at(t, map[string]string{"XDG_RUNTIME_DIR": filepath.Dir(path)})
		if _, err := source.Read(ctx, cfg, item("s", "u"), source.Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func serveOnce(t *testing.T, path string, serve func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		if conn, err := l.Accept(); err == nil {
			serve(conn)
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wait.Wait() })
}

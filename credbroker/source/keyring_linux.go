package source

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// promptPatience is how long a person may take to unlock the keyring.
const promptPatience = 2 * time.Minute

// Names of the Secret Service API of freedesktop.org, version 0.2.
const (
	secretService   = "org.freedesktop.secrets"
	secretPath      = dbus.ObjectPath("/org/freedesktop/secrets")
	secretInterface = "org.freedesktop.Secret"
)

// Answers of the keyring that a user can do something about.
var (
	errNoBus     = errors.New("there is no session bus: DBUS_SESSION_BUS_ADDRESS names none that is a Unix socket")
	errNoKeyring = errors.New("no keyring (org.freedesktop.secrets) is on the session bus")
	errNoItem    = errors.New("there is no such item")
	errUnopened  = errors.New("nobody unlocked the keyring in time")
	errLocked    = errors.New("the keyring is locked")
	errBus       = errors.New("the keyring did not answer as it should")
)

// keyring reads an item of the Secret Service (GNOME Keyring, KWallet, KeePassXC)
// by the attributes service and username, as secret-tool and the usual
// libraries store it. It makes a connection of its own for each reading: a
// shared one would outlive its context, and one that is looked for may start
// dbus-launch from PATH.
func (c Config) keyring(ctx context.Context, item Keyring) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, promptPatience, errUnopened)
	defer cancel()
	k, err := c.bus(ctx)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	var ignored dbus.Variant
	var session dbus.ObjectPath
	// "plain": the secret crosses a socket between processes of one user.
	if err := k.call(ctx, secretPath, "Service.OpenSession", "plain", dbus.MakeVariant("")).into(&ignored, &session); err != nil {
		return nil, err
	}
	var open, locked []dbus.ObjectPath
	wanted := map[string]string{"service": item.Service, "username": item.User}
	if err := k.call(ctx, secretPath, "Service.SearchItems", wanted).into(&open, &locked); err != nil {
		return nil, err
	}
	switch {
	case len(open) > 0:
	case len(locked) == 0:
		return nil, errNoItem
	default:
		if err := k.unlock(ctx, locked[0]); err != nil {
			return nil, err
		}
		open = locked
	}
	var s struct {
		Session     dbus.ObjectPath
		Parameters  []byte
		Value       []byte
		ContentType string
	}
	if err := k.call(ctx, open[0], "Item.GetSecret", session).into(&s); err != nil {
		return nil, err
	}
	return s.Value, nil
}

// KeyringReady says whether there is a keyring to ask; nil: there is one. No
// item is looked at, and nobody is asked to unlock it.
func (c Config) KeyringReady(ctx context.Context) error {
	k, err := c.bus(ctx)
	if err != nil {
		return err
	}
	defer k.Close()
	var ignored dbus.Variant
	var session dbus.ObjectPath
	return k.call(ctx, secretPath, "Service.OpenSession", "plain", dbus.MakeVariant("")).into(&ignored, &session)
}

// bus is a connection to the session bus.
type bus struct{ *dbus.Conn }

func (c Config) bus(ctx context.Context) (*bus, error) {
	for _, address := range c.busAddresses() {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
		if err != nil {
			continue
		}
		// The handshake knows no context.
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		d, err := dbus.ConnectUnix(conn.(*net.UnixConn), dbus.WithContext(ctx), dbus.WithAuth(dbus.AuthExternal(strconv.Itoa(os.Geteuid()))))
		stop()
		if err == nil {
			return &bus{d}, nil
		}
		conn.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, errBus
	}
	return nil, errNoBus
}

// busAddresses are the Unix sockets of the session bus, in the order they are
// to be tried ("D-Bus Specification", Server Addresses; "@" begins an abstract
// one). Other transports are passed over; one of them runs a program.
func (c Config) busAddresses() []string {
	addresses := c.getenv("DBUS_SESSION_BUS_ADDRESS")
	if addresses == "" {
		addresses = "unix:runtime=yes"
	}
	var list []string
	for _, address := range strings.Split(addresses, ";") {
		keys, ok := strings.CutPrefix(address, "unix:")
		if !ok {
			continue
		}
		for _, kv := range strings.Split(keys, ",") {
			key, value, _ := strings.Cut(kv, "=")
			value, err := url.PathUnescape(value)
			dir := c.getenv("XDG_RUNTIME_DIR")
			switch {
			case err != nil || value == "":
			case key == "path":
				list = append(list, value)
			case key == "abstract":
				list = append(list, "@"+value)
			case key == "runtime" && filepath.IsAbs(dir):
				list = append(list, filepath.Join(dir, "bus"))
			}
		}
	}
	return list
}

// call calls a method of the keyring, for at most 30 s.
func (k *bus) call(ctx context.Context, path dbus.ObjectPath, method string, args ...any) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	call := k.Object(secretService, path).CallWithContext(ctx, secretInterface+"."+method, 0, args...)
	if ctx.Err() != nil && call.Err != nil {
		return answer{err: context.Cause(ctx)}
	}
	return answer{call, call.Err}
}

// answer is what the keyring answered.
type answer struct {
	call *dbus.Call
	err  error
}

// into stores an answer, or says what was wrong in words of ours.
func (a answer) into(values ...any) error {
	var e dbus.Error
	switch {
	case a.call == nil:
		return a.err
	case errors.As(a.err, &e):
		switch e.Name {
		case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner":
			return errNoKeyring
		case secretInterface + ".Error.IsLocked":
			return errLocked
		case secretInterface + ".Error.NoSuchObject":
			return errNoItem
		}
		return errBus
	case a.err != nil || a.call.Store(values...) != nil:
		return errBus
	}
	return nil
}

// unlock opens the keyring that holds an item; the desktop asks the user.
func (k *bus) unlock(ctx context.Context, item dbus.ObjectPath) error {
	var done []dbus.ObjectPath
	var prompt dbus.ObjectPath
	if err := k.call(ctx, secretPath, "Service.Unlock", []dbus.ObjectPath{item}).into(&done, &prompt); err != nil {
		return err
	}
	if prompt == "/" {
		if len(done) == 0 {
			return errLocked
		}
		return nil
	}
	signals := make(chan *dbus.Signal, 16)
	k.Signal(signals)
	if err := k.AddMatchSignalContext(ctx, dbus.WithMatchObjectPath(prompt), dbus.WithMatchInterface(secretInterface+".Prompt")); err != nil {
		return errBus
	}
	if err := k.call(ctx, prompt, "Prompt.Prompt", "").into(); err != nil {
		return err
	}
	for {
		select {
		case s, ok := <-signals:
			if !ok {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return errBus
			}
			if s.Path != prompt || s.Name != secretInterface+".Prompt.Completed" || len(s.Body) == 0 {
				continue
			}
			if dismissed, ok := s.Body[0].(bool); !ok || dismissed {
				return errLocked
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

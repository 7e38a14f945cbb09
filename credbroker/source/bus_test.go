//go:build linux

package source_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// buses are the message buses a test of the keyring runs on: a small one of our
// own, and dbus-daemon where it is installed. The answer is the address.
func buses(t *testing.T) map[string]func(*testing.T) string {
	all := map[string]func(*testing.T) string{"stand-in": smallBus}
	if daemon, err := exec.LookPath("dbus-daemon"); err == nil {
		all["dbus-daemon"] = func(t *testing.T) string { return daemonBus(t, daemon) }
	}
	return all
}

// daemonBus runs a real bus. Its configuration knows no services, so that no
// keyring of the machine is started.
func daemonBus(t *testing.T, daemon string) string {
	t.Helper()
	dir := t.TempDir()
	socket := "unix:path=" + filepath.Join(dir, "bus")
	config := write(t, filepath.Join(dir, "bus.conf"), `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>`+socket+`</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`, 0o600)
	cmd := exec.Command(daemon, "--config-file="+config, "--nofork", "--nopidfile", "--print-address")
	cmd.Env = []string{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("waiting for dbus-daemon: %v", err)
	}
	return strings.TrimSpace(address)
}

// smallBus is as much of a message bus as two programs that talk to each other
// need: names, calls by name, and signals to everyone.
func smallBus(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	b := &busServer{peers: map[string]*busPeer{}}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); b.close(); wait.Wait() })
	return "unix:path=" + path
}

type busServer struct {
	mu    sync.Mutex
	conns int
	peers map[string]*busPeer // by name
}

type busPeer struct {
	net.Conn
	name string
	mu   sync.Mutex
}

func (b *busServer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.peers {
		p.Close()
	}
}

func (b *busServer) serve(c net.Conn) {
	b.mu.Lock()
	b.conns++
	p := &busPeer{Conn: c, name: fmt.Sprintf(":1.%d", b.conns)}
	b.peers[p.name] = p
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for name, other := range b.peers {
			if other == p {
				delete(b.peers, name)
			}
		}
		p.Close()
	}()
	r := bufio.NewReader(c)
	if greet(r, c) != nil {
		return
	}
	for {
		var raw bytes.Buffer
		msg, err := dbus.DecodeMessage(io.TeeReader(r, &raw))
		if err != nil {
			return
		}
		b.route(p, msg, raw.Bytes())
	}
}

// greet speaks the server's side of the handshake ("D-Bus Specification",
// Authentication Protocol), EXTERNAL alone.
func greet(r *bufio.Reader, c net.Conn) error {
	if zero, err := r.ReadByte(); err != nil || zero != 0 {
		return errors.New("no null byte")
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		switch words := strings.Fields(line); {
		case len(words) == 0:
			return errors.New("an empty line")
		case words[0] == "BEGIN":
			return nil
		case words[0] == "AUTH" && len(words) == 2 && words[1] == "EXTERNAL":
			fmt.Fprint(c, "DATA\r\n")
		case words[0] == "DATA":
			fmt.Fprint(c, "OK 1234deadbeef\r\n")
		case words[0] == "AUTH":
			fmt.Fprint(c, "REJECTED EXTERNAL\r\n")
		default:
			fmt.Fprint(c, "ERROR\r\n")
		}
	}
}

// route hands a message on. An answer goes as it came: structures in it would
// not be written as they were read.
func (b *busServer) route(from *busPeer, msg *dbus.Message, raw []byte) {
	msg.Headers[dbus.FieldSender] = dbus.MakeVariant(from.name)
	to, _ := msg.Headers[dbus.FieldDestination].Value().(string)
	member, _ := msg.Headers[dbus.FieldMember].Value().(string)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case msg.Type == dbus.TypeSignal:
		for name, p := range b.peers {
			if name == p.name {
				p.send(msg, 0)
			}
		}
	case to != "org.freedesktop.DBus":
		if p := b.peers[to]; p != nil && msg.Type != dbus.TypeMethodCall {
			p.write(raw)
		} else if p != nil {
			p.send(msg, 0)
		} else if msg.Type == dbus.TypeMethodCall {
			from.answer(msg, dbus.TypeError, "org.freedesktop.DBus.Error.ServiceUnknown", "nobody has that name")
		}
	case member == "Hello":
		from.answer(msg, dbus.TypeMethodReply, "", from.name)
	case member == "RequestName":
		b.peers[msg.Body[0].(string)] = from
		from.acquired(msg.Body[0])
		from.answer(msg, dbus.TypeMethodReply, "", uint32(dbus.RequestNameReplyPrimaryOwner))
	default:
		from.answer(msg, dbus.TypeMethodReply, "")
	}
}

func (p *busPeer) answer(to *dbus.Message, kind dbus.Type, name string, body ...any) {
	msg := &dbus.Message{Type: kind, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(to.Serial()),
		dbus.FieldSender:      dbus.MakeVariant("org.freedesktop.DBus"),
		dbus.FieldDestination: dbus.MakeVariant(p.name),
	}, Body: body}
	if name != "" {
		msg.Headers[dbus.FieldErrorName] = dbus.MakeVariant(name)
	}
	if len(body) > 0 {
		msg.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	p.send(msg, 1)
}

// acquired tells a peer of a name, without which it does not listen to it.
func (p *busPeer) acquired(name any) {
	p.send(&dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldSender:    dbus.MakeVariant("org.freedesktop.DBus"),
		dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.DBus"),
		dbus.FieldMember:    dbus.MakeVariant("NameAcquired"),
		dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/DBus")),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(name)),
	}, Body: []any{name}}, 1)
}

// send writes a message. A message of the bus's own has no serial but the one
// given; it stands at byte 8 ("D-Bus Specification", Message Format).
func (p *busPeer) send(msg *dbus.Message, serial uint32) {
	var b bytes.Buffer
	if err := msg.EncodeTo(&b, binary.LittleEndian); err != nil {
		return
	}
	if serial != 0 {
		binary.LittleEndian.PutUint32(b.Bytes()[8:], serial)
	}
	p.write(b.Bytes())
}

func (p *busPeer) write(raw []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Write(raw)
}

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/seatbelt"
)

// A Session is one sandbox, from Start to Close.
type Session struct {
	cfg      Config
	user     mount.User
	plan     mount.Plan
	notes    []string
	self     string // egressd's own file
	base     string // the session's folder
	env      []string
	profile  string // its file
	proxy    net.Listener
	captured silence
	terminal *terminalPair
	keeper   *keeper
	program  *Process

	mu       sync.Mutex
	commands map[*Process]bool // that run
	number   int

	ended    chan struct{} // closed at Close
	close    sync.Once
	closeErr error
}

// Start makes the sandbox: its profile, folders and port are there when it
// returns, and the program waits for Go. An error that names no sandbox is an
// *Unavailable. ctx bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Session, error) {
	s := &Session{cfg: cfg, ended: make(chan struct{}), commands: map[*Process]bool{}, captured: silence{make(chan struct{}), new(sync.Once)}}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Session) start(ctx context.Context) (err error) {
	c := &s.cfg
	if err := c.check(); err != nil {
		return err
	}
	if c.ForkAt != "" {
		return errors.New("making a sandbox: macOS shows no copy of a folder in its place")
	}
	if c.Capture == CaptureTransparent {
		return &Unavailable{Problem: "macOS has no transparent capture", Advice: "leave --capture out: clients must honour the proxy variables"}
	}
	if err := s.hostHas(); err != nil {
		return err
	}
	ahead := c.Ahead
	if ahead == nil || ahead.base == "" {
		ahead = Begin(c.Cwd, c.Invoker)
	}
	if s.base, s.proxy, err = ahead.take(); err != nil {
		return err
	}
	if c.Network != Captured {
		err, s.proxy = s.proxy.Close(), nil
		if err != nil {
			return fmt.Errorf("closing a port that is not needed: %w", err)
		}
	}
	if err := s.makePlan(); err != nil {
		return err
	}
	if err := s.writeFiles(); err != nil {
		return err
	}
	s.env = s.environment()
	if c.Streams.Pty {
		if s.terminal, err = openTerminal(s.user.UID); err != nil {
			return err
		}
	}
	if err := s.writeProfile(); err != nil {
		return err
	}
	if s.keeper, err = s.startKeeper(); err != nil {
		return err
	}
	if c.Network == Captured {
		s.notes = append(s.notes, "macOS: only clients that honour the proxy variables reach the network, others find none")
	}
	return ctx.Err()
}

// What a Config says for what is another in every session: the words stand in
// Env, Files and addresses to dial, and Start puts the session's own there.
const (
	ProxyPort = "@egressd-port@"   // the port of the proxy on 127.0.0.1
	Shown     = "/@egressd-shown@" // the folder in which Files lie
)

// own puts the session's own port and folder into a text.
func (s *Session) own(text string) string {
	if s.proxy != nil {
		text = strings.ReplaceAll(text, ProxyPort, strconv.Itoa(s.proxy.Addr().(*net.TCPAddr).Port))
	}
	return strings.ReplaceAll(text, Shown, filepath.Join(s.base, shownPart))
}

// sandboxExec is the system's own program; no other of its name is looked for.
const sandboxExec = "/usr/bin/sandbox-exec"

// whoReads decides who the sandboxed processes are, who read the host's files as
// themselves.
func (s *Session) whoReads() (uid, gid int, err error) {
	err = s.hostHas()
	return s.user.UID, s.user.GID, err
}

// hostHas looks whether a sandbox can be made, and for whom.
func (s *Session) hostHas() error {
	if _, err := os.Stat(sandboxExec); err != nil {
		return &Unavailable{Problem: sandboxExec + " is not there", Advice: "it is a part of macOS up to this one; no other sandbox is known", Err: err}
	}
	s.user = mount.User{UID: os.Geteuid(), GID: os.Getegid()}
	if s.user.UID == 0 {
		if s.cfg.Invoker.SudoUID == 0 {
			return &Unavailable{Problem: "as root, programs in a sandbox of macOS would be root", Advice: "run egressd as a user, or by sudo from one"}
		}
		s.user.UID, s.user.GID = s.cfg.Invoker.SudoUID, s.cfg.Invoker.SudoGID
	}
	u, err := user.LookupId(strconv.Itoa(s.user.UID))
	if err != nil {
		return fmt.Errorf("finding the user's name: %w", err)
	}
	s.user.Name = u.Username
	for _, p := range s.cfg.Publish {
		if p.Port != p.HostPort {
			return fmt.Errorf("publishing port %d: macOS has one loopback, so the port is the same outside: --publish %d", p.Port, p.Port)
		}
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", p.Port))
		if err != nil {
			return fmt.Errorf("publishing port %d: %w", p.Port, err)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("publishing port %d: %w", p.Port, err)
		}
	}
	return nil
}

func (s *Session) makePlan() (err error) {
	if s.self, err = os.Executable(); err == nil {
		s.self, err = filepath.EvalSymlinks(s.self)
	}
	if err != nil {
		return fmt.Errorf("finding egressd's own file: %w", err)
	}
	c := &s.cfg
	r := mount.Request{
		Cwd: c.Cwd, Grants: c.Grants, AllowHidden: c.AllowHidden, Hidden: c.Hidden, Masks: c.Masks, Dots: c.Dots, ReadOnly: c.ReadOnly,
		Names: c.GrantNames, Home: c.Home, HomeSource: c.HomeSource, Launcher: s.self, Files: c.Files, User: s.user,
		HostNetwork: c.Network == HostNetwork,
	}
	if os.Geteuid() == 0 {
		r.Owner = &mount.Owner{UID: s.user.UID, GID: s.user.GID}
	}
	s.plan, s.notes, err = mount.Make(r)
	if err != nil {
		return err
	}
	if s.base == "" {
		return nil // a look alone
	}
	s.plan.Temp = filepath.Join(s.base, tempPart)
	if c.Scratch {
		s.plan.Cwd = s.plan.Temp
	}
	switch {
	case c.HomeSource != "":
		s.plan.Home = c.HomeSource // nothing can be shown in another place
	case !slices.ContainsFunc(s.plan.Roots, func(r mount.Root) bool { return r.Path == c.Home }):
		s.plan.Home = filepath.Join(s.base, homePart)
	}
	return nil
}

// writeFiles puts the files that are made for the program where it reads them.
func (s *Session) writeFiles() error {
	texts := map[string][]byte{}
	if s.cfg.Texts != nil {
		var err error
		if texts, err = s.cfg.Texts(); err != nil {
			return err
		}
	}
	for _, f := range s.cfg.Files {
		if !mount.Below(f.Path, Shown) {
			return fmt.Errorf("placing %s: on macOS no file can lie over one of the host", f.Path)
		}
		data := f.Data
		if data == nil {
			data = texts[f.Path]
		}
		path := s.own(f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("placing a file: %w", err)
		}
		if err := os.WriteFile(path, data, 0o444); err != nil {
			return fmt.Errorf("placing a file: %w", err)
		}
	}
	return nil
}

func (s *Session) environment() []string {
	env := s.cfg.Env
	if s.cfg.EnvLate != nil {
		env = override(env, s.cfg.EnvLate())
	}
	if s.cfg.Network == Captured {
		env = override(env, s.cfg.EnvExplicit)
	}
	env = slices.Clone(env)
	for i, kv := range env {
		env[i] = s.own(kv)
	}
	return override(env, []string{"HOME=" + s.plan.Home, "TMPDIR=" + s.plan.Temp, "USER=" + s.user.Name, "LOGNAME=" + s.user.Name})
}

// writeProfile says what the sandbox may do.
func (s *Session) writeProfile() error {
	allow := s.cfg.AllowHidden
	if allow == nil {
		allow = []string{".venv"}
	}
	p := seatbelt.View{
		Plan: s.plan, ReadOnly: slices.Concat(s.cfg.ReadOnly, s.cfg.Hidden), AllowHidden: allow,
		Scratch: []string{filepath.Join(s.base, homePart), s.plan.Temp},
		Shown:   []string{filepath.Join(s.base, shownPart), s.self},
		Exists:  func(path string) bool { _, err := os.Lstat(path); return err == nil },
		Name:    newKernelNames().of,
	}.Profile()
	switch s.cfg.Network {
	case Captured:
		p.Network, p.Proxy = seatbelt.Proxied, s.proxy.Addr().(*net.TCPAddr).Port
	case HostNetwork:
		p.Network = seatbelt.Unfiltered
	}
	for _, x := range s.cfg.Publish {
		p.Publish = append(p.Publish, x.Port)
	}
	if s.terminal != nil {
		p.Terminal = s.terminal.name
	}
	text, err := p.Text()
	if err != nil {
		return err
	}
	s.profile = filepath.Join(s.base, profilePart)
	if err := os.WriteFile(s.profile, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	return nil
}

// Explicit is the listener of the proxy, on a port of the host's loopback that
// the profile opens to the sandbox; nil without a captured network. Other
// programs of the host reach it too.
func (s *Session) Explicit() net.Listener { return s.proxy }

// Captured gives nothing: macOS captures nothing. It ends with the session.
func (s *Session) Captured() net.Listener { return s.captured }

// Transparent reports whether capture is: never.
func (s *Session) Transparent() bool { return false }

// IPv6 reports whether the sandbox has IPv6 to be tried: it sees the host's.
func (s *Session) IPv6() bool { return true }

// SetNames is told of new rules. There is nothing that would ask for names.
func (s *Session) SetNames(Namer) error { return nil }

// Lookup says which name an address was given out for: none is.
func (s *Session) Lookup(netip.Addr) (name string, pool bool) { return "", false }

// Terminal is the master of the terminal that was made for the program, or nil.
// The caller closes it.
func (s *Session) Terminal() *os.File {
	if s.terminal == nil {
		return nil
	}
	return s.terminal.master
}

// Notes are lines for the operator: what could not be shown, and what is less
// than it should be.
func (s *Session) Notes() []string { return s.notes }

// Plan is what the sandbox sees.
func (s *Session) Plan() mount.Plan { return s.plan }

// HostUID and HostGID are whose the sandboxed processes are on the host.
func (s *Session) HostUID() int { return s.user.UID }

// HostGID is the group of HostUID.
func (s *Session) HostGID() int { return s.user.GID }

// silence is a listener that nobody dials.
type silence struct {
	closed chan struct{}
	once   *sync.Once
}

func (l silence) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l silence) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l silence) Addr() net.Addr { return &net.TCPAddr{} }

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

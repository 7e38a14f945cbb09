//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/cgroup"
	"github.com/egressd/egressd/netns/mount"
)

// A Session is one sandbox, from Start to Close.
type Session struct {
	cfg   Config
	id    identity
	plan  mount.Plan
	notes []string
	bwrap string

	ahead    *Ahead // to be taken, or nil
	chain    chain
	launcher *remote
	doors    doorSet
	explicit bool // the fallback: no capture
	ipv6     bool
	terminal *os.File
	server   *nameServer
	early    chan error // what Early came to, or nil where it was not called
	blank    *blanks    // files inside that are written meanwhile, or nil
	public   *publisher
	watcher  *watcher
	keeper   *remote
	group    *cgroup.Group // the session's own, or nil
	noGroup  string        // why there is none
	bounds   *bounds       // of the tree, or nil

	mu      sync.Mutex
	cookie  uint64     // of the network namespace
	spares  []*os.File // sockets inside
	running bool       // the program, or a command, has been started

	env         []string // of each command of a standing session
	lastCommand uint64
	commands    map[uint64]*Process // that run, by their numbers

	close    sync.Once
	closeErr error
}

// Start makes the sandbox: namespaces, mounts and listeners are there when it
// returns, and the program waits for Go. An error that names no sandbox is an
// *Unavailable. ctx bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Session, error) {
	s, err := start(ctx, cfg)
	closeStreams(cfg.Streams)
	return s, err
}

func closeStreams(streams Streams) {
	for _, f := range []*os.File{streams.Stdin, streams.Stdout, streams.Stderr} {
		if f != nil {
			_ = f.Close() // the program's copies are inside
		}
	}
}

func start(ctx context.Context, cfg Config) (*Session, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := conceal(); err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg}
	s.makeGroup()
	if err := s.reach(ctx); err != nil {
		return nil, errors.Join(err, s.stopWatching(), s.removeGroup())
	}
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// reach goes as far as the launcher.
func (s *Session) reach(ctx context.Context) error {
	err := s.settle()
	if err != nil {
		return err
	}
	if s.cfg.Firejail == "" {
		if s.bwrap, err = FindBwrap(s.cfg.Path, writable(s.cfg)); err != nil {
			return err
		}
	}
	if err := s.makePlan(); err != nil {
		return err
	}
	s.watch()
	return s.build(ctx)
}

// settle decides who the sandboxed processes are: who the helper that was
// started ahead is for, if that one fits.
func (s *Session) settle() (err error) {
	a, c := s.cfg.Ahead, &s.cfg
	if a != nil && s.group == nil && c.Network == Captured && c.Capture != CaptureExplicit && a.cwd == c.Cwd && a.invoker == c.Invoker {
		<-a.done
		if a.helper != nil || a.err != nil {
			s.ahead, s.id = a, a.id
			return nil
		}
	}
	s.id, err = whoRuns(c.Cwd, c.Invoker)
	return err
}

// writable are the folders that a sandbox can write, or could have yesterday,
// such as the working folder, or that came from somebody: nothing in them is
// run on the host.
func writable(cfg Config) []string {
	out := []string{}
	if !mount.InBase(cfg.Cwd) {
		out = append(out, cfg.Cwd)
	}
	for _, g := range cfg.Grants {
		if g.Write {
			out = append(out, g.Path)
		}
	}
	return out
}

func (s *Session) makePlan() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding egressd's own file: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host name: %w", err)
	}
	r := mount.Request{
		Cwd: s.cfg.Cwd, Grants: s.cfg.Grants, AllowHidden: s.cfg.AllowHidden, Hidden: s.cfg.Hidden,
		Names: s.cfg.GrantNames, Masks: s.cfg.Masks, Dots: s.cfg.Dots, ReadOnly: s.cfg.ReadOnly, Home: s.cfg.Home, HomeSource: s.cfg.HomeSource, Launcher: self,
		Scratch: s.cfg.Scratch, Forked: s.cfg.Forked, ForkAt: s.cfg.ForkAt,
		Files: s.cfg.Files, User: s.id.inside, HostNetwork: s.cfg.Network == HostNetwork, Hostname: host,
	}
	// What is made to be hidden is egressd's own, so it goes to whose run it is,
	// not to whom the sandbox runs as: that may be the owner of a working folder.
	if s.id.root && s.cfg.Invoker.SudoUID > 0 {
		r.Owner = &mount.Owner{UID: s.cfg.Invoker.SudoUID, GID: s.cfg.Invoker.SudoGID}
	}
	s.plan, s.notes, err = mount.Make(r)
	return err
}

// build starts the chain as far as the launcher, by the first of the ways that
// the host allows.
func (s *Session) build(ctx context.Context) error {
	if s.cfg.Firejail != "" {
		return s.try(ctx, s.startFirejail)
	}
	if s.cfg.Capture != CaptureExplicit || s.cfg.Network != Captured {
		err := s.try(ctx, s.startHelper)
		var idmap *mount.IdmapError
		if errors.As(err, &idmap) {
			s.id = s.id.asRoot(err.Error())
			err = s.try(ctx, s.startHelper)
		}
		var no *forbidden
		if !errors.As(err, &no) {
			return err
		}
		if s.cfg.Capture == CaptureTransparent {
			return &Unavailable{Problem: "this host forbids transparent capture", Advice: advice(), Err: err}
		}
		if s.cfg.Network == Captured {
			s.notes = append(s.notes, "capture is explicit only, clients must honour proxy variables: "+err.Error())
		}
	}
	s.explicit = s.cfg.Network == Captured
	return s.try(ctx, s.startFallback)
}

// try runs one way to the launcher, and clears away what it left if it fails.
func (s *Session) try(ctx context.Context, way func(context.Context) error) error {
	s.chain = chain{said: &tail{}}
	s.cookie = 0
	s.doors = doorSet{captured: newFanIn()}
	err := way(ctx)
	if err == nil {
		err = s.hearLauncher(ctx)
	}
	if err == nil {
		err = s.finishMounts()
	}
	if err == nil {
		return nil
	}
	s.chain.end()
	_ = s.doors.close()
	if s.early != nil {
		err = errors.Join(err, <-s.early)
		s.early = nil
	}
	err, s.blank = errors.Join(err, s.blank.wait()), nil
	if s.server != nil {
		s.server.close()
		s.server = nil
	}
	s.dropSpares()
	return err
}

// ready hands the program and its streams to the launcher and opens what is
// opened from outside.
func (s *Session) ready(ctx context.Context) error {
	s.mu.Lock()
	s.launcher = newRemote(s.chain.launcher, s.fromLauncher)
	s.mu.Unlock()
	if err := s.blank.wait(); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if s.cookie == 0 {
		// Learn the namespace while nothing of the sandbox runs.
		probe, err := s.socket(ctx, unix.AF_INET, unix.SOCK_DGRAM)
		if err != nil {
			return err
		}
		_ = probe.Close()
	}
	s.keep()
	err := s.openDoors(ctx)
	if err != nil {
		return err
	}
	if err := s.bound(ctx); err != nil {
		return err
	}
	if s.public, err = s.publish(s.cfg.Publish); err != nil {
		return err
	}
	if s.early != nil {
		err, s.early = <-s.early, nil
	}
	s.dropSpares()
	return err
}

// prepare hands over the program and its streams, if there is one.
func (s *Session) prepare(ctx context.Context) error {
	if len(s.cfg.Argv) == 0 {
		s.env = s.environment()
		_, files, err := s.launcher.ask(ctx, startTime, message{Kind: kindStand})
		closeFiles(files)
		return err
	}
	spec, err := parcel("program", program{Argv: s.cfg.Argv, Env: s.environment(), Cwd: s.plan.Cwd, Limits: s.ofEach()})
	if err != nil {
		return err
	}
	defer func() { _ = spec.Close() }()
	files := []*os.File{spec}
	var carried []int
	for i, f := range []*os.File{s.cfg.Streams.Stdin, s.cfg.Streams.Stdout, s.cfg.Streams.Stderr} {
		if f != nil {
			carried, files = append(carried, i), append(files, f)
		}
	}
	_, got, err := s.launcher.ask(ctx, startTime, message{Kind: kindPrepare, Pty: s.cfg.Streams.Pty, Carried: carried}, files...)
	if err != nil {
		return err
	}
	if s.cfg.Streams.Pty {
		if s.terminal, err = oneFile(got); err != nil {
			return err
		}
		if err := checkMaster(s.terminal); err != nil {
			return err
		}
	} else {
		closeFiles(got)
	}
	return nil
}

// watch begins to look at what is hidden or read-only, before it is mounted.
func (s *Session) watch() {
	if spots := s.plan.Spots(); len(spots) > 0 {
		s.watcher = watchSpots(spots)
	}
}

// keep begins to have it mended. What cannot be ends the sandbox: it would show
// a secret, or let a policy be written.
func (s *Session) keep() {
	if s.watcher == nil {
		return
	}
	if s.chain.keeper != nil {
		s.keeper = newRemote(s.chain.keeper, func(message) {})
	}
	s.watcher.serve(s.keeper, func(spot mount.Spot, err error) {
		if s.cfg.Event != nil {
			s.cfg.Event(Event{Kind: Uncovered, Name: filepath.Join(spot.Folder, spot.Name), Err: err})
		}
		_ = s.chain.child.process.Kill() // it has ended already
	})
}

func (s *Session) stopWatching() error {
	if s.watcher == nil {
		return nil
	}
	return s.watcher.close()
}

func (s *Session) fromLauncher(m message) {
	if m.Kind == kindEnded {
		s.commandEnded(m)
		return
	}
	if s.cfg.Event == nil {
		return
	}
	switch m.Kind {
	case kindStopped:
		s.cfg.Event(Event{Kind: Stopped, Signal: m.Signal})
	case kindContinued:
		s.cfg.Event(Event{Kind: Continued})
	}
}

// Explicit is the listener of the explicit proxy, 127.0.0.1:3128 inside; nil
// without a captured network.
func (s *Session) Explicit() net.Listener { return s.doors.explicit }

// Captured gives what was dialled past the proxy: to 80, to 443 and to ports
// that rules name. A connection's LocalAddr is the address dialled. In the
// explicit-only fallback nothing ever comes.
func (s *Session) Captured() net.Listener { return s.doors.captured }

// Transparent reports whether capture is: false in the fallback and without a
// captured network.
func (s *Session) Transparent() bool { return s.cfg.Network == Captured && !s.explicit }

// IPv6 reports whether the namespace has IPv6.
func (s *Session) IPv6() bool { return s.ipv6 }

// Terminal is the master of the terminal that was made inside, or nil. The
// caller closes it.
func (s *Session) Terminal() *os.File { return s.terminal }

// Notes are lines for the operator: what could not be shown, and what is less
// than it should be.
func (s *Session) Notes() []string {
	if s.id.note != "" {
		return append([]string{s.id.note}, s.notes...)
	}
	return s.notes
}

// Plan is what the sandbox sees.
func (s *Session) Plan() mount.Plan { return s.plan }

// HostUID and HostGID are whose the sandboxed processes are on the host.
func (s *Session) HostUID() int { return s.id.uid }

// HostGID is the group of HostUID.
func (s *Session) HostGID() int { return s.id.gid }

// whoReads decides who the sandboxed processes are, and whom that makes the
// readers of the host's files: root, where their mounts map a uid of their own.
func (s *Session) whoReads() (uid, gid int, err error) {
	if s.id, err = whoRuns(s.cfg.Cwd, s.cfg.Invoker); err != nil || s.id.invented {
		return 0, 0, err
	}
	return s.id.uid, s.id.gid, nil
}

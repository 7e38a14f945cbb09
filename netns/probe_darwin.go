package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probeTime bounds what a probe does.
const probeTime = 10 * time.Second

// inquiry is what a probe is to do, and finding what came of it.
type inquiry struct {
	Network, Address string // to dial
	Checks           []Check
}

type finding struct {
	Failures []string
	Errno    int    // of a dial
	Problem  string // of a dial
}

// inquire starts a probe under the profile, whose descriptor 3 is end.
func (s *Session) inquire(ctx context.Context, q inquiry, end *os.File) (*exec.Cmd, finding, error) {
	input, err := json.Marshal(q)
	if err != nil {
		return nil, finding{}, fmt.Errorf("starting a probe: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, finding{}, fmt.Errorf("starting a probe: %w", err)
	}
	defer func() { _ = read.Close() }()
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, finding{}, errors.Join(fmt.Errorf("starting a probe: %w", err), write.Close())
	}
	attr := s.attributes()
	cmd := &exec.Cmd{Path: sandboxExec, Args: s.words(probeWord), Env: []string{s.mark() + "probe;"}, Dir: "/",
		Stdin: in, Stdout: write, SysProcAttr: attr}
	if end != nil {
		cmd.ExtraFiles = []*os.File{end}
	}
	err = cmd.Start()
	closeFiles([]*os.File{in, write})
	if err != nil {
		_ = feed.Close()
		return nil, finding{}, &Unavailable{Problem: sandboxExec + " does not run", Advice: "see egressd doctor", Err: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	_, err = feed.Write(input)
	_ = feed.Close()
	var f finding
	if e := json.NewDecoder(read).Decode(&f); e != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, finding{}, &Unavailable{Problem: "macOS did not take the profile, or a probe under it does not run",
			Advice: "egressd is written for macOS 13 and newer", Err: errors.Join(err, e)}
	}
	return cmd, f, nil
}

// Check looks from inside, before Go, and returns what does not hold.
func (s *Session) Check(ctx context.Context, checks ...Check) ([]string, error) {
	cmd, f, err := s.inquire(ctx, inquiry{Checks: checks}, nil)
	if err != nil {
		return nil, err
	}
	_ = cmd.Wait() // it has said all there is
	return f.Failures, nil
}

// Dial dials from inside, before Go. Only TCP carries anything.
func (s *Session) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("dialling from inside: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "probe"), os.NewFile(uintptr(ends[1]), "probe")
	unix.CloseOnExec(ends[0])
	unix.CloseOnExec(ends[1])
	cmd, f, err := s.inquire(ctx, inquiry{Network: network, Address: s.own(address)}, theirs)
	_ = theirs.Close()
	if err == nil && f.Problem != "" {
		_ = cmd.Wait()
		err = fmt.Errorf("dialling %s from inside: %w", address, dialError(f))
	}
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("dialling from inside: %w", err)
	}
	return &probed{Conn: conn, cmd: cmd}, nil
}

func dialError(f finding) error {
	if f.Errno != 0 {
		return syscall.Errno(f.Errno)
	}
	return errors.New(f.Problem)
}

// probed is a connection that a probe carries.
type probed struct {
	net.Conn
	cmd  *exec.Cmd
	once sync.Once
}

func (p *probed) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return err
}

// Refuses makes sure that what is sent from inside to an address is refused at
// once: by the profile, or because nobody listens there.
func (s *Session) Refuses(ctx context.Context, network, address string) error {
	c, err := s.Dial(ctx, network, address)
	if err == nil {
		err = errors.Join(errors.New("it is not"), c.Close())
	}
	for _, refused := range []error{unix.EPERM, unix.EACCES, unix.ECONNREFUSED, unix.ENETUNREACH, unix.EHOSTUNREACH} {
		if errors.Is(err, refused) {
			return nil
		}
	}
	return fmt.Errorf("checking that %s to %s is refused: %w", network, address, err)
}

// probe is what a probe does.
func probe(in io.Reader, out io.Writer) {
	var q inquiry
	if json.NewDecoder(in).Decode(&q) != nil {
		return
	}
	f := finding{}
	for _, c := range q.Checks {
		if err := c.run(); err != nil {
			f.Failures = append(f.Failures, err.Error())
		}
	}
	var conn net.Conn
	if q.Address != "" {
		var err error
		if conn, err = net.DialTimeout(q.Network, q.Address, probeTime); err != nil {
			f.Problem = err.Error()
			var errno syscall.Errno
			if errors.As(err, &errno) {
				f.Errno = int(errno)
			}
		}
	}
	if json.NewEncoder(out).Encode(f) != nil || conn == nil {
		return
	}
	end, err := net.FileConn(os.NewFile(3, "end"))
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(conn, end)
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
	}()
	_, _ = io.Copy(end, conn)
}

// run looks at one thing. What cannot be seen is as good as absent.
func (c Check) run() error {
	switch c.Kind {
	case CheckAbsent:
		if _, err := os.ReadFile(c.Path); err == nil {
			return fmt.Errorf("checking that %s is absent: it can be read", c.Path)
		}
		if _, err := os.ReadDir(c.Path); err == nil {
			return fmt.Errorf("checking that %s is absent: it can be listed", c.Path)
		}
	case CheckReadOnly:
		name := filepath.Join(c.Path, fmt.Sprintf(".egressd-self-test-%d", os.Getpid()))
		if f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			return errors.Join(fmt.Errorf("checking that %s takes no write: it does", c.Path), f.Close(), os.Remove(name))
		}
	default:
		return fmt.Errorf("checking %q: macOS has no such check", c.Kind)
	}
	return nil
}

// Package streams carries a sandboxed program's standard streams. None of them
// ever is a file, pipe or terminal of the host, since /proc/self/fd/N opens
// whatever a descriptor stands for anew, for writing too:
//
//	a terminal                     is replaced by one made inside, and relayed
//	a pipe, file, socket or device is carried through a pipe of egressd's own
//	/dev/null, a closed descriptor is /dev/null
//	a folder                       is an error
//
// Stdout and stderr that are one file share a pipe, so that their order is kept.
//
// [Open] looks at the three and makes what the program gets ([Streams.Program]);
// [Streams.Attach] begins to carry; [Streams.Close] waits until what the
// program wrote has arrived and gives the user's terminal back.
package streams

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns"
)

// Config is what Open needs.
type Config struct {
	Stdin, Stdout, Stderr *os.File
	// Raw lets everything through that a program writes to a terminal; else the
	// sequences that set the clipboard or ask for the title are taken out.
	Raw bool
}

// Streams are the three streams of one program.
type Streams struct {
	program  netns.Streams
	carried  []*carried
	terminal *terminal // nil where none of the three is one
	relaying bool
	out      sync.WaitGroup // copies of what the program writes
}

// carried is a stream behind a pipe of ours.
type carried struct {
	name   string
	host   *os.File // a descriptor of our own for the host's side
	pipe   *os.File // our end
	theirs *os.File // the program's end, which Start closes
	output bool
	err    error // of an output, when its copy has ended
}

// Open looks at the streams. Nothing is read from or written to them yet.
func Open(c Config) (*Streams, error) {
	s := &Streams{}
	t := &terminal{raw: c.Raw}
	files := [3]*os.File{c.Stdin, c.Stdout, c.Stderr}
	ends := [3]**os.File{&s.program.Stdin, &s.program.Stdout, &s.program.Stderr}
	var terms [3]*os.File
	for i, f := range files {
		name := [3]string{"stdin", "stdout", "stderr"}[i]
		what, err := classify(f)
		if err == nil {
			switch what {
			case isTerminal:
				terms[i], err = apart(f)
			case isNull:
				*ends[i], err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
			default:
				if i == 2 && s.program.Stdout != nil && sameFile(files[1], f) {
					*ends[i], err = apart(s.program.Stdout)
				} else {
					*ends[i], err = s.carry(name, f, i > 0)
				}
			}
		}
		if err != nil {
			s.abandon()
			return nil, fmt.Errorf("taking %s over: %w", name, err)
		}
	}
	// What is shown goes to the first terminal of stdout, stderr, stdin.
	for _, i := range []int{1, 2, 0} {
		if terms[i] != nil && t.out == nil {
			t.out = terms[i]
		}
	}
	if t.out != nil {
		t.in = terms[0]
		s.terminal, s.program.Pty = t, true
	}
	return s, nil
}

type kind int

const (
	isOther kind = iota
	isTerminal
	isNull
)

func classify(f *os.File) (kind, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	switch {
	case errors.Is(err, unix.EBADF):
		return isNull, nil
	case err != nil:
		return 0, err
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return 0, errors.New("it is a folder")
	case st.Mode&unix.S_IFMT == unix.S_IFCHR && sameDevice(&st, nullMajor, nullMinor):
		return isNull, nil
	case st.Mode&unix.S_IFMT == unix.S_IFCHR:
		if _, err := unix.IoctlGetTermios(int(f.Fd()), getModes); err == nil {
			return isTerminal, nil
		}
	}
	return isOther, nil
}

// sameFile says that two descriptors are of one file or pipe, as after 2>&1.
// One pipe then carries both, so that what was written to them stays in order.
func sameFile(a, b *os.File) bool {
	var x, y unix.Stat_t
	return unix.Fstat(int(a.Fd()), &x) == nil && unix.Fstat(int(b.Fd()), &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// carry makes a pipe for a stream and returns the program's end.
func (s *Streams) carry(name string, f *os.File, output bool) (*os.File, error) {
	host, err := apart(f)
	if err != nil {
		return nil, err
	}
	// Not os.Pipe, which would make the program's end non-blocking.
	var ends [2]int
	if err := pipe(&ends); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	r, w := os.NewFile(uintptr(ends[0]), name), os.NewFile(uintptr(ends[1]), name)
	c := &carried{name: name, host: host, pipe: w, theirs: r, output: output}
	if output {
		c.pipe, c.theirs = r, w
	}
	s.carried = append(s.carried, c)
	return c.theirs, nil
}

func (s *Streams) abandon() {
	for _, c := range s.carried {
		_, _, _ = c.host.Close(), c.pipe.Close(), c.theirs.Close()
	}
}

// Program is what the program gets. netns.Start closes it.
func (s *Streams) Program() netns.Streams { return s.program }

// Terminal says whether the program has one.
func (s *Streams) Terminal() bool { return s.terminal != nil }

// Attach begins to carry. master is the terminal that was made inside, nil
// where there is none, and is taken over; uid and gid are the program's on the host: it may open
// its own pipes anew (/dev/stdin), as it could without a sandbox.
func (s *Streams) Attach(master *os.File, uid, gid int) error {
	for _, c := range s.carried {
		if os.Getuid() == 0 {
			if err := c.pipe.Chown(uid, gid); err != nil {
				return fmt.Errorf("handing %s over: %w", c.name, err)
			}
		}
		if c.output {
			s.out.Go(c.run)
		} else {
			go c.run() // waits for the user, whom nothing can interrupt
		}
	}
	if s.terminal == nil {
		return nil
	}
	var err error
	if s.terminal.master, err = pollable(master); err != nil {
		return err
	}
	if err := s.terminal.start(); err != nil {
		return err
	}
	s.relaying = true
	return nil
}

func (c *carried) run() {
	to, from := c.pipe, c.host
	if c.output {
		to, from = c.host, c.pipe
	}
	c.err = carry(int(to.Fd()), int(from.Fd()))
	_ = c.pipe.Close() // tells the program: the end of its input, or a broken pipe
}

// Stopped is told that the program stopped, as on Ctrl-Z: it stops egressd too,
// as a shell expects of its job, and calls resume when that shell lets it go
// on. Without a shell that could, the program goes on at once.
func (s *Streams) Stopped(resume func()) {
	go func() {
		if s.terminal != nil && s.relaying {
			s.terminal.restore()
		}
		if err := unix.Kill(0, unix.SIGTSTP); err == nil {
			// The signal is on its way to another thread, which a busy machine makes
			// wait. Taken, it stops this one too.
			for sent := time.Now(); pending(unix.SIGTSTP) && time.Since(sent) < time.Second; {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if s.terminal != nil && s.relaying && s.terminal.in != nil {
			s.terminal.makeRaw()
		}
		resume()
	}()
}

// HungUp says whether the user's terminal is gone.
func (s *Streams) HungUp() bool {
	if s.terminal == nil {
		return false
	}
	f := s.terminal.out
	if s.terminal.in != nil {
		f = s.terminal.in
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// Close waits until what the program wrote has arrived, and gives the terminal
// back. Its error is an output that could not be written.
func (s *Streams) Close() error {
	if s.terminal != nil && s.relaying {
		s.terminal.close()
		s.relaying = false
	}
	s.out.Wait()
	var errs []error
	for _, c := range s.carried {
		if !c.output {
			continue // its copy may still wait for the user
		}
		if err := errors.Join(c.err, c.host.Close()); err != nil {
			errs = append(errs, fmt.Errorf("writing to %s: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

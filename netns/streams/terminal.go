package streams

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// terminal relays between the user's terminal and the one inside.
type terminal struct {
	in, out *os.File // the user's; in is nil where stdin is none
	master  *os.File // of the one inside
	raw     bool     // the program may do all that its terminal can

	mu    sync.Mutex
	saved *unix.Termios // of in, while it is in raw mode
	stop  chan struct{}
	wake  [2]int // a pipe that ends the reader's wait
	done  sync.WaitGroup
	ended chan struct{} // the output has come to its end
}

// start sets the inner terminal up like the outer one, and begins to relay.
func (t *terminal) start() error {
	from := t.out
	if t.in != nil {
		from = t.in
	}
	if modes, err := unix.IoctlGetTermios(int(from.Fd()), getModes); err == nil {
		if err := t.inside(func(fd int) error { return unix.IoctlSetTermios(fd, setModes, modes) }); err != nil {
			return fmt.Errorf("setting up the terminal inside: %w", err)
		}
	}
	t.resize()
	if err := pipe(&t.wake); err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	t.stop, t.ended = make(chan struct{}), make(chan struct{})
	if t.in != nil {
		t.makeRaw()
	}
	changes := make(chan os.Signal, 4)
	signal.Notify(changes, unix.SIGWINCH, unix.SIGCONT)
	// A background job that is asked to read or write must not be stopped by it:
	// the relay looks whether it is in the foreground itself.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTTIN, unix.SIGTTOU)
	t.done.Go(func() { t.follow(changes) })
	go t.output()
	if t.in != nil {
		t.done.Go(t.input)
	}
	return nil
}

// pollable takes a terminal's master over as a file whose Close ends a Read.
func pollable(master *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return nil, fmt.Errorf("taking the terminal inside over: %w", err)
	}
	if err := errors.Join(unix.SetNonblock(fd, true), master.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("taking the terminal inside over: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}

// inside does something with the master's descriptor. Fd would make it
// blocking, and Close would then wait for a Read.
func (t *terminal) inside(f func(fd int) error) error {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	return errors.Join(raw.Control(func(fd uintptr) { inner = f(int(fd)) }), inner)
}

// follow keeps size and mode in step with the outer terminal.
func (t *terminal) follow(changes chan os.Signal) {
	defer signal.Stop(changes)
	for {
		select {
		case <-t.stop:
			return
		case s := <-changes:
			if s == unix.SIGCONT && t.in != nil {
				t.makeRaw()
			}
			t.resize()
		}
	}
}

func (t *terminal) resize() {
	for _, f := range []*os.File{t.in, t.out} {
		if f == nil {
			continue
		}
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			_ = t.inside(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) }) // the program may have ended
			return
		}
	}
}

// foreground says whether the outer terminal's input is ours to take.
func (t *terminal) foreground() bool {
	group, err := unix.IoctlGetInt(int(t.in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// makeRaw hands every key to the inner terminal, which makes signals of them.
func (t *terminal) makeRaw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil || !t.foreground() {
		return
	}
	fd := int(t.in.Fd())
	modes, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return
	}
	saved := *modes
	modes.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	modes.Oflag &^= unix.OPOST
	modes.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	modes.Cflag = modes.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setModes, modes) == nil {
		t.saved = &saved
	}
}

// restore gives the outer terminal its own mode back.
func (t *terminal) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved != nil && t.foreground() {
		_ = unix.IoctlSetTermios(int(t.in.Fd()), setModes, t.saved) // a terminal that is gone needs none
	}
	t.saved = nil
}

// input relays keys. It waits for a key or for the end, and reads only in the
// foreground, so that a job that was sent to the background is not stopped.
func (t *terminal) input() {
	buf := make([]byte, 4096)
	for {
		fds := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}, {Fd: int32(t.wake[0]), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || fds[1].Revents != 0 {
			return
		}
		if !t.foreground() && fds[0].Revents&unix.POLLHUP == 0 {
			select {
			case <-t.stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			continue
		}
		n, err := unix.Read(int(t.in.Fd()), buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case err != nil || n == 0: // the user's terminal is gone: so is the inner one
			_ = t.master.Close()
			return
		default:
			if _, err := t.master.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}

// output relays what the program shows, until nobody holds the inner terminal.
func (t *terminal) output() {
	defer close(t.ended)
	var f filter
	buf, shown := make([]byte, 32<<10), []byte(nil)
	for {
		n, err := t.master.Read(buf)
		if t.raw {
			shown = append(shown[:0], buf[:n]...)
		} else {
			shown = f.next(shown[:0], buf[:n])
		}
		if len(shown) > 0 {
			if _, err := t.out.Write(shown); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// drainTime is how long output that is under way has when the program ended.
const drainTime = 2 * time.Second

// close waits for the output's end and gives the terminal back.
func (t *terminal) close() {
	select {
	case <-t.ended:
	case <-time.After(drainTime):
	}
	close(t.stop)
	_ = unix.Close(t.wake[1])
	t.done.Wait()
	_ = unix.Close(t.wake[0])
	t.restore()
	_ = t.master.Close() // closed already where the user's terminal went away
}

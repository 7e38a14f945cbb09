//go:build linux

package netns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

const launcherPath = mount.LauncherPath

// ownImage is this binary, also where no name leads to it, as in firejail.
const ownImage = "/proc/self/exe"

// launcher is the first process inside: no capability, all of bwrap's view,
// and one control to egressd. It makes what can only be made inside, starts
// the program when it is told, says how it fares, and ends with it. When
// egressd is gone it ends everything.
func launcher(fd int) {
	// A program may signal everything it can see, or hang its terminal up. A
	// handler, not SIG_IGN: the program would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGALRM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	// The program has our uid: without this it could open our descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return
	}
	c, err := openControl(fd)
	if err != nil {
		return
	}
	l := &launched{c: c}
	if err = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err == nil {
		err = c.send(message{Kind: kindHello})
	}
	for err == nil {
		var m message
		var files []*os.File
		if m, files, err = c.receive(); err == nil {
			err = l.handle(m, files)
		}
	}
	_ = unix.Kill(-1, unix.SIGKILL) // nothing is left to kill, or it is killed
}

// launched is the launcher's state.
type launched struct {
	c       *control
	spec    *os.File   // what to start
	streams []*os.File // the program's 0, 1 and 2
	slave   *os.File   // of the terminal, or nil
	reaper  *reaper    // of a session without a program, else nil

	mu   sync.Mutex
	pid  int  // of the program, 0 before and after
	done bool // it has ended
}

// handle answers one message. An error ends the launcher.
func (l *launched) handle(m message, files []*os.File) error {
	switch m.Kind {
	case kindPrepare:
		return l.answer(m, l.prepare(m, files))
	case kindSocket:
		return l.socket(m)
	case kindCheck:
		return l.c.send(message{Kind: m.Kind, ID: m.ID, Failures: runChecks(m.Checks)})
	case kindGo:
		err := l.start()
		if err := l.answer(m, result{err: err}); err != nil {
			return err
		}
		if err != nil {
			return errEnd
		}
		go l.watch()
	case kindStand:
		var err error
		if l.reaper == nil {
			l.reaper, err = newReaper(l.c)
		}
		return l.answer(m, result{err: err})
	case kindExec, kindKill:
		return l.command(m, files)
	case kindSignal:
		l.signal(unix.Signal(m.Signal), m)
		return l.answer(m, result{})
	case kindCensus:
		return l.census(m)
	}
	return nil
}

var errEnd = errors.New("ending the launcher")

// result is what a question came to.
type result struct {
	file *os.File // handed over and closed
	err  error
}

func (l *launched) answer(m message, r result) error {
	out := message{Kind: m.Kind, ID: m.ID}
	if r.err != nil {
		out.Error = r.err.Error()
		var errno unix.Errno
		if errors.As(r.err, &errno) {
			out.Errno = int(errno)
		}
		var exec *execError
		if errors.As(r.err, &exec) {
			out.Code = exec.Code
		}
	}
	if r.file == nil {
		return l.c.send(out)
	}
	return errors.Join(l.c.send(out, r.file), r.file.Close())
}

// prepare takes what is to be started, and makes the terminal if it is to have
// one: inside, so that it has a device here.
func (l *launched) prepare(m message, files []*os.File) result {
	if len(files) < 1 || l.spec != nil {
		closeFiles(files)
		return result{err: errors.New("preparing the program: out of turn")}
	}
	l.spec, l.streams = files[0], make([]*os.File, 3)
	if len(files)-1 != len(m.Carried) || !m.Pty && len(m.Carried) != len(l.streams) {
		closeFiles(files[1:])
		return result{err: errors.New("preparing the program: three streams are needed")}
	}
	for i, n := range m.Carried {
		if n < 0 || n >= len(l.streams) || l.streams[n] != nil {
			closeFiles(files[1:])
			return result{err: errors.New("preparing the program: three streams are needed")}
		}
		l.streams[n] = files[1+i]
	}
	if !m.Pty {
		return result{}
	}
	master, slave, err := openPty()
	if err != nil {
		return result{err: err}
	}
	l.slave = slave
	for i, f := range l.streams {
		if f == nil {
			l.streams[i] = slave
		}
	}
	return result{file: master}
}

// socket makes one inside and sends it out. It is bare: egressd binds or
// connects it from outside.
func (l *launched) socket(m message) error {
	fd, err := unix.Socket(m.Domain, m.Type|unix.SOCK_CLOEXEC, m.Protocol)
	if err != nil {
		return l.answer(m, result{err: fmt.Errorf("making a socket: %w", err)})
	}
	return l.answer(m, result{file: os.NewFile(uintptr(fd), "socket")})
}

// command starts or ends one of a standing session.
func (l *launched) command(m message, files []*os.File) error {
	switch {
	case l.reaper == nil:
		closeFiles(files)
		return l.answer(m, result{err: errors.New("running a command: the session has a program of its own")})
	case m.Kind == kindKill:
		closeFiles(files)
		l.reaper.kill(m.Command)
		return l.answer(m, result{})
	}
	// Nobody is there if an answer cannot be sent: handle's loop ends by itself.
	l.reaper.start(m, files, func(err error) { _ = l.answer(m, result{err: err}) })
	return nil
}

// start starts the program with its streams, or says why it cannot.
func (l *launched) start() error {
	if l.spec == nil {
		return errors.New("starting the program: nothing to start")
	}
	defer func() {
		closeFiles(append(l.streams, l.spec))
		if l.slave != nil {
			_ = l.slave.Close() // it may be one of the streams
		}
	}()
	pid, err := l.launch()
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.pid = pid
	l.mu.Unlock()
	return nil
}

// launch starts a program without limits itself. One with limits takes a second
// stage: this process must not have them, and nothing of Go runs under a limit
// of processes.
func (l *launched) launch() (int, error) {
	var p program
	if _, err := unparcel(l.spec, &p); err != nil {
		return 0, fmt.Errorf("starting the program: %w", err)
	}
	if p.Limits == (Limits{}) {
		path, err := p.prepare()
		if err != nil {
			return 0, err
		}
		pid, err := syscall.ForkExec(path, p.Argv, attributes(p.Env, l.streams, l.slave))
		if err != nil {
			return 0, refusal(p.Argv[0], err)
		}
		return pid, nil
	}
	return l.launchLimited()
}

// launchLimited runs the second stage and waits until it has become the
// program.
func (l *launched) launchLimited() (int, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("starting the program: %w", err)
	}
	defer func() { _ = read.Close() }()
	files := append(append([]*os.File{}, l.streams...), l.spec, write)
	pid, err := syscall.ForkExec(ownImage, []string{launcherPath, programWord}, attributes([]string{}, files, l.slave))
	_ = write.Close()
	if err != nil {
		return 0, fmt.Errorf("starting the program: %w", err)
	}
	text, err := io.ReadAll(read)
	if err != nil {
		return 0, fmt.Errorf("starting the program: %w", err)
	}
	if len(text) > 0 {
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return 0, parseExecError(text)
	}
	return pid, nil
}

// watch tells how the program fares until it ends; then everything ends.
func (l *launched) watch() {
	runtime.LockOSThread()
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(l.pid, &status, unix.WUNTRACED|unix.WCONTINUED, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		m := message{Kind: kindExited, Status: int(status)}
		switch {
		case err != nil:
			m = message{Kind: kindFailed, Error: "waiting for the program: " + err.Error()}
		case status.Stopped():
			m = message{Kind: kindStopped, Signal: int(status.StopSignal())}
		case status.Continued():
			m = message{Kind: kindContinued}
		default:
			l.mu.Lock()
			l.pid, l.done = 0, true
			l.mu.Unlock()
		}
		err = errors.Join(err, l.c.send(m))
		if err != nil || m.Kind == kindExited {
			_ = l.c.c.CloseRead() // ends handle's loop, and with it the launcher
			return
		}
	}
}

// signal passes a signal to the program, to its process group, or to everything
// that this process can see but itself.
func (l *launched) signal(s unix.Signal, m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pid := l.pid
	switch {
	case m.All:
		pid = -1
	case pid == 0:
		return
	case m.Group:
		pid = -pid
	}
	_ = unix.Kill(pid, s) // it has just ended
}

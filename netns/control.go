//go:build linux

package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
)

// A control is one end of a SOCK_SEQPACKET pair: messages keep their bounds
// and carry descriptors. The helper and the launcher each have one. What comes
// from the launcher is not believed: the sandboxed program may have got hold
// of it.
//
// One goroutine at a time receives.
type control struct {
	c   *net.UnixConn
	buf []byte // what receive reads into
}

// message is all that is said on a control. Kind says which members count.
type message struct {
	Kind  string
	ID    uint64 `json:",omitempty"` // of a question; its answer repeats it
	Error string `json:",omitempty"` // why the answer is no
	Errno int    `json:",omitempty"` // the kernel's word for it
	Code  int    `json:",omitempty"` // of a program that cannot be started: its status

	Step    string  `json:",omitempty"` // of the helper: what it was at
	IPv6    bool    `json:",omitempty"` // of the helper: the namespace has it
	Network Network `json:",omitempty"` // of begin
	Mounts  int     `json:",omitempty"` // of task: how many mounts follow

	Domain, Type, Protocol int     `json:",omitempty"` // of a socket
	Pty                    bool    `json:",omitempty"` // of prepare: make a terminal
	Carried                []int   `json:",omitempty"` // of prepare: the streams that are handed over
	Checks                 []Check `json:",omitempty"` // of check
	Failures               []string
	Signal                 int         `json:",omitempty"` // to send, or that stopped the program
	Group                  bool        `json:",omitempty"` // send it to the program's process group
	All                    bool        `json:",omitempty"` // send it to everything inside
	Status                 int         `json:",omitempty"` // wait status of the program
	Spot                   *mount.Spot `json:",omitempty"` // of mend
	Command                uint64      `json:",omitempty"` // of exec, kill and ended: which one
}

// Kinds of messages, and who says them.
const (
	kindBegin     = "begin"     // egressd to the helper: bring this network up
	kindTask      = "task"      // egressd to the helper: the plan, and bwrap
	kindMounts    = "mounts"    // egressd to the helper: detached mounts, maxFiles or fewer
	kindListeners = "listeners" // helper: nine sockets
	kindSpares    = "spares"    // helper: bare sockets
	kindFailed    = "failed"    // helper, launcher: it ends now
	kindBlanks    = "blanks"    // helper: files inside to write, maxFiles or fewer
	kindHello     = "hello"     // launcher: here
	kindTexts     = "texts"     // egressd to the helper: the texts of the files, as one descriptor
	kindPrepare   = "prepare"   // egressd: the program and its streams; answered with the pty's master
	kindSocket    = "socket"    // egressd asks, the launcher answers with one
	kindCheck     = "check"     // egressd asks, the launcher answers with failures
	kindGo        = "go"        // egressd: start the program; answered when it runs, or cannot
	kindSignal    = "signal"    // egressd
	kindCensus    = "census"    // egressd asks, the launcher answers with what the sandbox is counted by
	kindStopped   = "stopped"   // launcher
	kindContinued = "continued" // launcher
	kindExited    = "exited"    // launcher
	kindLate      = "late"      // egressd asks the keeper
	kindMend      = "mend"      // egressd asks the keeper
	kindStand     = "stand"     // egressd: there is no program, commands will come
	kindExec      = "exec"      // egressd: a command and its streams; answered when it runs, or cannot. And so on to a stage
	kindKill      = "kill"      // egressd: end a command and all it has started
	kindEnded     = "ended"     // launcher: a command and all it has started is over
)

// Bounds of one message. The kernel carries 253 descriptors at most.
const (
	maxMessage = 64 << 10
	maxFiles   = 16
)

// controlPair is a control and the file of its other end, for a child.
func controlPair() (*control, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a control socket: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	ours, err := openControl(fds[0])
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// openControl takes over a descriptor.
func openControl(fd int) (*control, error) {
	f := os.NewFile(uintptr(fd), "control")
	c, err := net.FileConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("opening a control socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("opening a control socket: not a unix socket"), c.Close())
	}
	return &control{c: u}, nil
}

func (c *control) close() error { return c.c.Close() }

// send says one thing and hands copies of files over.
func (c *control) send(m message, files ...*os.File) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	if _, _, err := c.c.WriteMsgUnix(data, oob, nil); err != nil {
		return fmt.Errorf("sending %s: %w", m.Kind, err)
	}
	return nil
}

// receive waits for a message. The error is io.EOF when the other end is gone.
func (c *control) receive() (message, []*os.File, error) {
	if c.buf == nil {
		c.buf = make([]byte, maxMessage)
	}
	buf := c.buf
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, flags, _, err := c.c.ReadMsgUnix(buf, oob)
	if err != nil {
		return message{}, nil, err
	}
	files, err := takeFiles(oob[:oobn])
	if err != nil {
		return message{}, nil, err
	}
	if n == 0 && len(files) == 0 {
		return message{}, nil, io.EOF
	}
	var m message
	if err = json.Unmarshal(buf[:n], &m); err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("it is too long")
	}
	if err != nil {
		closeFiles(files)
		return message{}, nil, fmt.Errorf("reading a message: %w", err)
	}
	return m, files, nil
}

func takeFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	parts, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("reading descriptors: %w", err)
	}
	var files []*os.File
	for i := range parts {
		fds, err := unix.ParseUnixRights(&parts[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "handed over"))
		}
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

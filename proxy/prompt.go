package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// prompt is the connection below an origin's TLS. TLS gives one record at a
// time, of 16 KiB at most; by a Read that does not wait the records behind it,
// where they are there already, come with it, and go on as one piece.
type prompt struct {
	net.Conn
	raw    syscall.RawConn
	atOnce bool // Read does not wait
}

// newPrompt is false where c is no connection of the kernel's.
func newPrompt(c net.Conn) (*prompt, bool) {
	kernel, ok := c.(syscall.Conn)
	if !ok {
		return nil, false
	}
	raw, err := kernel.SyscallConn()
	if err != nil {
		return nil, false
	}
	return &prompt{Conn: c, raw: raw}, true
}

// errDry says that a Read would wait. For TLS it is a deadline that passed, the
// one error behind which it goes on.
var errDry = os.ErrDeadlineExceeded

// Read reads; at once, it is errDry where nothing is there.
func (c *prompt) Read(p []byte) (int, error) {
	if !c.atOnce {
		return c.Conn.Read(p)
	}
	return c.readAtOnce(p)
}

func (c *prompt) readAtOnce(p []byte) (n int, err error) {
	var fault error
	err = c.raw.Read(func(fd uintptr) bool {
		n, fault = syscall.Read(int(fd), p)
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case errors.Is(fault, syscall.EAGAIN), errors.Is(fault, syscall.EINTR):
		return 0, errDry
	case fault != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("read", fault)}
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// CloseWrite ends the bytes to the origin.
func (c *prompt) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// records is a TLS connection that gives all the records that are there.
type records struct {
	*tls.Conn
	below *prompt
}

// roomForMore is how much must be free for it to be worth another look, in
// bytes: a head, and the answer that came with it, are read by less.
const roomForMore = 8 << 10

// Read waits for one record and takes what came behind it. An error that it
// meets there is met again by the next Read.
func (r *records) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	for n > 0 && err == nil && len(p)-n >= roomForMore {
		var m int
		r.below.atOnce = true
		m, err = r.Conn.Read(p[n:])
		r.below.atOnce = false
		n += m
	}
	if n > 0 {
		return n, nil
	}
	return n, err
}

package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	idleSlack   = 32                     // part of an idle limit by which it may run over
	lingerTime  = 500 * time.Millisecond // how long a client may still send before a close
	lingerBytes = 256 << 10
)

// wireInput is the connection below a wireConn as its flow reads it: with the
// earlier of the two deadlines in force.
type wireInput wireConn

func (in *wireInput) Read(p []byte) (int, error) {
	w := (*wireConn)(in)
	w.mu.Lock()
	w.reading = true
	w.apply()
	w.mu.Unlock()
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	w.reading = false
	w.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	if err != nil && isTimeout(err) {
		return 0, os.ErrDeadlineExceeded
	}
	return n, err
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// apply sets the deadline in force on the connection, w.mu held. Without a
// Read under way that waits for the next one.
func (w *wireConn) apply() {
	if !w.reading && !w.hijacked.Load() {
		return
	}
	t := w.user
	if !w.hijacked.Load() && !w.own.IsZero() && (t.IsZero() || w.own.Before(t)) {
		t = w.own
	}
	if t != w.applied {
		w.applied = t
		w.Conn.SetReadDeadline(t)
	}
}

// SetReadDeadline sets the server's own deadline and wakes a Read it is past for.
func (w *wireConn) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return net.ErrClosed
	}
	if t.IsZero() && w.user.IsZero() {
		return nil
	}
	w.user = t
	w.apply()
	w.wake.Broadcast()
	return nil
}

// SetDeadline sets both deadlines of the server.
func (w *wireConn) SetDeadline(t time.Time) error {
	if err := w.SetReadDeadline(t); err != nil {
		return err
	}
	return w.SetWriteDeadline(t)
}

// SetWriteDeadline sets the deadline for writes. The server takes its own back
// behind every answer, though it has set none.
func (w *wireConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && !w.bounded.Load() {
		return nil
	}
	w.bounded.Store(true)
	return w.Conn.SetWriteDeadline(t)
}

// readHead reads on in the head that comes next, until it, or the fault it is
// given as, stands in w.flow.out, or the connection is hijacked. p is free to
// use. Of the errors only os.ErrDeadlineExceeded is not final; it means the
// server's own deadline.
func (w *wireConn) readHead(p []byte) error {
	for {
		if ok, err := w.released(p); !ok || err != nil {
			return err
		}
		if w.flow.in == nil {
			if err := w.rest(); err != nil {
				return err
			}
			if w.hijacked.Load() {
				return nil
			}
			w.await(w.idleLimit())
			if err := w.ending(w.flow.fill(p)); err != nil {
				return err
			}
			w.arrived()
		}
		done, fault := w.head.read(w.flow.in.unread(), w.cfg.maxHeader, w.given.Load()+1)
		if fault == nil && !done {
			w.await(w.cfg.headerTimeout)
			err := w.flow.fill(p)
			if err == nil {
				continue
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || !w.late() {
				return w.ending(err)
			}
			fault = &wireFault{http.StatusRequestTimeout, "timeout", "The head did not come in time."}
		}
		w.hand(fault)
		return nil
	}
}

// await sets the deadline of a wait that begins, d from now, 0 for none. A wait
// that goes on, because the server woke it, keeps the one it has. Between
// requests it is somewhat later, so that the timer need not be set for each.
func (w *wireConn) await(d time.Duration) {
	if d <= 0 || !w.own.IsZero() {
		return
	}
	w.mu.Lock()
	w.own = time.Now().Add(d)
	if slack := d / idleSlack; w.given.Load() > 0 && w.flow.in == nil {
		if w.applied.Before(w.own) || w.applied.After(w.own.Add(slack)) {
			w.own = w.own.Add(slack)
		} else {
			w.own = w.applied
		}
	}
	w.mu.Unlock()
}

// arrived ends the wait.
func (w *wireConn) arrived() {
	w.mu.Lock()
	w.own = time.Time{}
	w.mu.Unlock()
}

// late reports whether the deadline of the wait has passed.
func (w *wireConn) late() bool {
	return !w.own.IsZero() && !time.Now().Before(w.own)
}

// idleLimit is how long the first byte of the next head may take: while a
// request is being answered, any time.
func (w *wireConn) idleLimit() time.Duration {
	switch given := w.given.Load(); {
	case given == 0:
		return w.cfg.headerTimeout
	case given > w.done.Load():
		return 0
	}
	return w.cfg.idleTimeout
}

// ending makes an error of the connection the last one, io.EOF, which net/http
// answers with silence, and keeps why. A deadline of the server's passes.
func (w *wireConn) ending(err error) error {
	if err == nil {
		return nil
	}
	outcome := ""
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if !w.late() {
			return err
		}
		outcome = "timeout"
	} else if w.given.Load() == 0 || w.flow.in != nil {
		outcome = "client_gone"
	}
	w.mu.Lock()
	w.err, w.outcome = io.EOF, outcome
	w.mu.Unlock()
	release(&w.flow.in)
	release(&w.head.out)
	return io.EOF
}

// hand gives the head that was read, or what is wrong with it, to the server
// and sets out for what follows.
func (w *wireConn) hand(fault *wireFault) {
	h := &w.head
	number := w.given.Load() + 1
	switch {
	case fault != nil:
		release(&w.flow.in)
		h.refuse(fault, number)
		w.lingers.Store(true)
		w.holdUntil = never
	case h.last():
		w.lingers.Store(true)
		w.holdUntil = never
	case h.switches():
		w.holdUntil = number
	}
	if fault == nil {
		skip(&w.flow.in, h.scan.at)
		w.flow.begin(h.body())
	}
	w.flow.out = h.out
	h.head.number = number
	w.mu.Lock()
	w.own = time.Time{}
	w.heads = append(w.heads, h.head)
	w.mu.Unlock()
	w.given.Store(number)
	*h = requestHead{}
}

// released waits behind a CONNECT or upgrade until the request is answered or
// the connection hijacked, and behind the last request for ever. Meanwhile it
// reads a little, so that a client that goes away is noticed. It is false once
// the connection is hijacked.
func (w *wireConn) released(p []byte) (ok bool, err error) {
	for {
		w.mu.Lock()
		switch {
		case w.hijacked.Load():
			w.mu.Unlock()
			return false, nil
		case w.done.Load() >= w.holdUntil:
			w.mu.Unlock()
			return true, nil
		case w.closed:
			w.mu.Unlock()
			return false, net.ErrClosed
		case !w.user.IsZero() && !time.Now().Before(w.user):
			w.mu.Unlock()
			return false, os.ErrDeadlineExceeded
		case len(w.flow.in.unread()) >= wireBufferSize:
			w.sleep()
			w.mu.Unlock()
			continue
		}
		w.mu.Unlock()
		w.await(w.idleLimit())
		err := w.flow.fill(p)
		switch {
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded) && !w.late():
		case w.flow.in != nil && w.holdUntil != never:
			return false, err // what came before it may be a request yet
		default:
			return false, w.ending(err)
		}
	}
}

// sleep waits for a change of state or the server's deadline, w.mu held.
func (w *wireConn) sleep() {
	if !w.user.IsZero() {
		alarm := time.AfterFunc(time.Until(w.user), func() {
			w.mu.Lock()
			w.wake.Broadcast()
			w.mu.Unlock()
		})
		defer alarm.Stop()
	}
	w.wake.Wait()
}

// readRaw gives the bytes of a hijacked connection, those read early first.
func (w *wireConn) readRaw(p []byte) (int, error) {
	if w.flow.out != nil {
		return w.flow.take(p), nil
	}
	if w.flow.in != nil {
		n := copy(p, w.flow.in.unread())
		skip(&w.flow.in, n)
		return n, nil
	}
	return w.Conn.Read(p)
}

// detach gives the connection below a hijacked wireConn and the bytes that
// were read from it early. After it the wireConn is only good for Close.
func (w *wireConn) detach() (c net.Conn, early []byte) {
	early = append(early, w.flow.in.unread()...)
	release(&w.flow.in)
	return w.Conn, early
}

// CloseWrite ends the bytes to the client (net/http looks for it before it
// waits for a client to read an answer).
func (w *wireConn) CloseWrite() error {
	if c, ok := w.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection. Where the client may still be sending, it gets
// half a second to read the answer first: a close with bytes unread is a reset,
// and that may eat the answer (RFC 9112 section 9.6). Close does not wait for
// it, for http.Server.Close calls it with a lock held; closing the connection
// below ends it at once.
func (w *wireConn) Close() error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.wake.Broadcast()
	w.mu.Unlock()
	if first && w.lingers.Load() && !w.hijacked.Load() {
		go w.linger()
		return nil
	}
	return w.Conn.Close()
}

// linger ends the bytes to the client, passes over what it sends, and closes.
func (w *wireConn) linger() {
	defer w.Conn.Close()
	w.Conn.SetDeadline(time.Now().Add(lingerTime))
	if w.CloseWrite() == nil {
		io.CopyN(io.Discard, w.Conn, lingerBytes)
	}
}

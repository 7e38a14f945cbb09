//go:build linux

package stub

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// What a client on TCP may hold (RFC 7766, 6.2.3): so many connections at a
// time, and each so long without a whole question.
const (
	maxConns    = 64
	idleTimeout = 10 * time.Second
)

// Serve answers on a listener, TCP by its sense, until it is closed or ctx
// ends; then it closes the connections and returns nil once they are gone.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	places := make(chan struct{}, maxConns)
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			if conn != nil {
				conn.Close()
			}
			return nil
		case err != nil:
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				time.Sleep(10 * time.Millisecond) // out of descriptors: some will come back
				continue
			}
			return fmt.Errorf("accepting a question: %w", err)
		}
		select {
		case places <- struct{}{}:
		default:
			conn.Close() // one client too many: it may ask again
			continue
		}
		serving.Go(func() {
			defer func() { <-places }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			s.serveConn(conn)
		})
	}
}

// serveConn answers the questions of one connection in their order. It ends at
// whatever goes wrong.
func (s *Server) serveConn(conn net.Conn) {
	buf := make([]byte, 2+maxMessage)
	for {
		if conn.SetDeadline(time.Now().Add(idleTimeout)) != nil {
			return
		}
		if _, err := io.ReadFull(conn, buf[:2]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(buf))
		if n > maxMessage {
			return
		}
		if _, err := io.ReadFull(conn, buf[:n]); err != nil {
			return
		}
		s.busy <- struct{}{}
		out := s.answer(buf[:n])
		<-s.busy
		if out == nil {
			return
		}
		// One write: some clients take the first segment for the whole.
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}

package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Shutdown closes the listeners, tells HTTP/2 clients to go away, and waits for
// what runs, tunnels and upgrades included. When ctx ends first, what is left
// is closed, and its error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		l.Close()
	}
	var fresh []*client
	for c := range s.clients {
		if c.isFresh() {
			fresh = append(fresh, c)
		}
	}
	s.mu.Unlock()
	for _, c := range fresh {
		c.Close()
	}
	err := s.inner.Shutdown(ctx)
	select {
	case <-s.live.wait():
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.live.stop()
	s.feed.Close()
	s.inner.Close()
	s.mu.Lock()
	s.closed = true
	left := make([]*client, 0, len(s.clients))
	for c := range s.clients {
		left = append(left, c)
	}
	s.mu.Unlock()
	for _, x := range s.live.snapshot(time.Now().Add(time.Hour)) {
		x.breakOff()
	}
	for _, c := range left {
		c.Close()
	}
	s.current.Load().up.close()
	s.work.Wait()
	<-s.live.wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

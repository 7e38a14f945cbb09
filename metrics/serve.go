package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server serves counts on a listener until it is closed.
type Server struct {
	server *http.Server
	done   chan error
}

// Serve begins to serve /metrics on l, which Close closes.
func Serve(l net.Listener, c *Counts) *Server {
	s := &Server{done: make(chan error, 1), server: &http.Server{
		Handler: c.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}}
	go func() { s.done <- s.server.Serve(l) }()
	return s
}

// closeTime is how long a scrape may still run.
const closeTime = time.Second

// Close ends the listener, and the scrapes within a second.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = s.server.Close()
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("closing the metrics: %w", err)
	}
	return nil
}

package proxy

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elazarl/goproxy"

	"github.com/egressd/egressd/audit"
)

// Config is what New needs. The zero value of each field but Issuer and Sink is
// usable.
type Config struct {
	// Issuer makes certificates for clients. Required.
	Issuer Issuer
	// Sink takes the records. Required: nothing happens that is not recorded.
	Sink audit.Sink
	// Names knows the addresses of the DNS stub; nil knows none.
	Names Names
	// Session is the id that request ids begin with the tail of.
	Session string
	// Limits bound what clients can hold.
	Limits Limits
	// Token, where not empty, is asked of every client of the explicit door.
	Token string
	// Log is for the operator; nil discards.
	Log *slog.Logger
	// Policy is the first one; nil refuses everything.
	Policy *Policy
	// Capture is how records call the explicit door: "explicit" (default) or
	// "serve".
	Capture string
	// MinTLS is the lowest version spoken with clients; 0 is TLS 1.2.
	MinTLS uint16
	// NoHTTP2 offers clients HTTP/1.1 alone.
	NoHTTP2 bool
}

// Server is the proxy: the doors, and the one pipeline behind them.
type Server struct {
	cfg     Config
	limits  Limits
	tls     *tls.Config
	current atomic.Pointer[inForce]

	inner     *http.Server
	feed      *feed
	connector *goproxy.ProxyHttpServer
	forward   *httputil.ReverseProxy
	live      live

	idPrefix string
	ids      atomic.Uint64

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	clients   map[*client]struct{}
	closing   bool           // no more connections
	closed    bool           // no more work
	work      sync.WaitGroup // accept loops, connections before the inner server, the server itself
}

// New builds a Server. It serves nothing until a door is opened.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Issuer == nil:
		return nil, errors.New("building the proxy: no issuer of certificates")
	case cfg.Sink == nil:
		return nil, errors.New("building the proxy: no sink for its records")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Capture == "" {
		cfg.Capture = "explicit"
	}
	s := &Server{
		cfg: cfg, limits: cfg.Limits.withDefaults(), feed: newFeed(), connector: newConnect(),
		listeners: make(map[net.Listener]struct{}), clients: make(map[*client]struct{}),
		idPrefix: idPrefix(cfg.Session),
	}
	s.live.server = s
	s.tls = s.newTLS()
	s.forward = s.newForward()
	s.current.Store(enforce(cfg.Policy))
	var err error
	if s.inner, err = s.newInner(); err != nil {
		return nil, err
	}
	s.work.Add(1)
	go func() { // the inner server; ended by Shutdown
		defer s.work.Done()
		s.inner.Serve(s.feed)
	}()
	return s, nil
}

func enforce(p *Policy) *inForce {
	if p == nil {
		p = new(Policy)
	}
	return &inForce{Policy: p, up: newUpstream(p)}
}

// idPrefix is what makes the request ids of a session its own.
func idPrefix(session string) string {
	if len(session) > 10 {
		session = session[len(session)-10:]
	}
	return strings.ToLower(session) + "-"
}

// ServeProxy opens the explicit door on l: CONNECT and absolute-form requests.
// It returns when l ends, nil after Shutdown, and closes l.
func (s *Server) ServeProxy(l net.Listener) error {
	return s.accept(l, func(c *client) { s.serveWire(c, c) })
}

// ServeCaptured takes connections that programs dialled themselves: the local
// address of each is the address and port that was dialled. It returns when l
// ends, nil after Shutdown, and closes l.
func (s *Server) ServeCaptured(l net.Listener) error {
	return s.accept(l, func(c *client) {
		c.captured = true
		s.enterCaptured(c)
	})
}

// accept gives every connection of l to serve.
func (s *Server) accept(l net.Listener, serve func(*client)) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		l.Close()
		return nil
	}
	s.listeners[l] = struct{}{}
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()
	defer func() {
		l.Close()
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	var pause time.Duration
	for {
		conn, err := l.Accept()
		if err != nil {
			if s.isClosing() {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() { // out of descriptors
				pause = min(max(2*pause, 5*time.Millisecond), time.Second)
				time.Sleep(pause)
				continue
			}
			return err
		}
		pause = 0
		s.admit(conn, serve)
	}
}

// admit counts a connection in and serves it. One over the cap is answered 503
// as long as it holds its own buffers only and there are not too many of its
// kind.
func (s *Server) admit(conn net.Conn, serve func(*client)) {
	c := &client{Conn: conn, server: s}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		conn.Close()
		return
	}
	n, most := len(s.clients), s.limits.MaxConnections
	s.clients[c] = struct{}{}
	s.work.Add(1)
	s.mu.Unlock()
	c.over = n >= most
	if n >= most+max(16, most/8) {
		defer s.work.Done()
		c.doom("overloaded")
		c.Close()
		return
	}
	go func() { // one connection, until the inner server has it or it is a tunnel's end
		defer s.work.Done()
		serve(c)
	}()
}

// enterCaptured finds out what a captured connection was opened for.
func (s *Server) enterCaptured(c *client) {
	dialled, ok := c.dialled()
	if !ok {
		c.doom("internal")
		c.Close()
		return
	}
	t := target{tunnel: true, literal: dialled.Addr().String(), port: int(dialled.Port())}
	t.host, t.shared, t.unnamed = s.named(t.literal)
	if !t.shared && !t.unnamed {
		t.literal = t.host // whoever asked for the name expects its certificate
	}
	c.target = t
	if !c.over && !t.shared && !t.unnamed {
		if force := s.current.Load(); force.Rules != nil {
			if rule, _, err := force.Rules.Connect(time.Now(), true, bracketed(t.host), t.port); err == nil && rule != "" {
				s.captureTunnel(c, rule, false)
				return
			}
		}
	}
	s.enter(c)
}

// forget takes a closed connection off the count.
func (s *Server) forget(c *client) {
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// track counts work that Shutdown waits for; it is false once that is too late.
func (s *Server) track() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// SetPolicy puts p in force at once. Each request is judged by the policy of
// its moment; tunnels, upgrades and running requests that p forbids are broken
// off (revoked), and idle connections to origins are closed.
func (s *Server) SetPolicy(p *Policy) {
	force := enforce(p)
	old := s.current.Swap(force)
	s.live.revise(force)
	old.up.close()
}

package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// learnSilence is how long a client may be silent, under learn, before it is
// taken for one that waits for its server to speak first.
const learnSilence = 500 * time.Millisecond

// enter takes a connection whose target is known: it looks at the first bytes,
// whatever pieces they come in, ends TLS where they are a ClientHello, and
// hands it to the inner server. It returns once that is done.
func (s *Server) enter(c *client) {
	// The deadline in the past, by which the CONNECT's own read was ended, says
	// nothing of what follows.
	c.sawLate.Store(false)
	patience := s.limits.ClientHelloTimeout
	learns := s.current.Load().Learn && c.target.port != 443 && c.target.port != 80
	if learns {
		patience = min(patience, learnSilence)
	}
	c.SetReadDeadline(time.Now().Add(patience))
	if err := c.peek(1); err != nil {
		if learns && errors.Is(err, os.ErrDeadlineExceeded) {
			s.learnTunnel(c) // where the server speaks first
			return
		}
		c.Close()
		return
	}
	c.busy.Store(1)
	switch {
	case c.pre[0] != recordHandshake:
		if s.current.Load().Learn && !s.speaksHTTP(c) {
			s.learnTunnel(c)
			return
		}
		c.SetReadDeadline(time.Time{})
		s.serveWire(c, c)
	case c.over:
		c.doom("overloaded")
		c.Close()
	default:
		s.enterTLS(c)
	}
}

// enterTLS ends the client's TLS. The session's authority is what it trusts.
func (s *Server) enterTLS(c *client) {
	c.SetDeadline(time.Now().Add(s.limits.ClientHelloTimeout))
	t := tls.Server(c, s.tls)
	if err := t.Handshake(); err != nil {
		switch {
		case c.sawLate.Load():
			c.doom("timeout")
		case c.sawEOF.Load():
			c.doom("client_gone")
		case errors.Is(err, errLeaf):
			c.doom("internal")
		default:
			c.doom("protocol")
		}
		if c.sawLate.Load() {
			c.Close() // without a word
			return
		}
		// What the client still sends would reset the connection before it has
		// read the alert.
		c.CloseWrite()
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	state := t.ConnectionState()
	c.target.tls = true
	if name := state.ServerName; name != "" {
		canonical, err := s.current.Load().canonical(name)
		c.target.sni, c.target.badSNI = canonical, err != nil
	}
	if c.target.shared && (c.target.sni == "" || c.target.badSNI) {
		// The address names no host and neither does the handshake.
		c.doom("no_rule")
		t.Close()
		return
	}
	if state.NegotiatedProtocol == "h2" {
		s.feed.give(t)
		return
	}
	s.serveWire(c, t)
}

// serveWire hands an HTTP/1 connection to the inner server, behind the checks
// of the wire.
func (s *Server) serveWire(c *client, conn net.Conn) {
	wire := newWire(conn, wireConfig{
		maxHeader: s.limits.MaxHeaderBytes, headerTimeout: s.limits.HeaderTimeout,
		idleTimeout: s.limits.IdleTimeout, proxyForm: !c.target.tunnel,
	})
	c.wire.Store(wire)
	s.feed.give(&served{wireConn: wire, client: c})
}

// errLeaf says that a certificate could not be made.
var errLeaf = errors.New("making a certificate for the client")

// newTLS builds the one configuration of the client's side: certificates are
// found by what the connection is for, so tickets of every host go together,
// which costs nothing, as it is the client who checks the name. The leg never
// leaves the machine: ML-KEM is left out of its key exchange.
func (s *Server) newTLS() *tls.Config {
	protos := []string{"h2", "http/1.1"}
	if s.cfg.NoHTTP2 {
		protos = protos[1:]
	}
	return &tls.Config{
		MinVersion:       max(s.cfg.MinTLS, tls.VersionTLS12),
		NextProtos:       protos,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			name := ""
			if c, ok := hello.Conn.(*client); ok {
				name = c.target.literal
			}
			// A server name gets its certificate also where it differs from the
			// tunnel's, so that the client can read why it is refused.
			if sni := hello.ServerName; sni != "" {
				if canonical, err := s.current.Load().canonical(sni); err == nil {
					name = canonical
				}
			}
			if name == "" {
				return nil, errLeaf
			}
			leaf, err := s.cfg.Issuer.Leaf(name)
			if err != nil {
				s.cfg.Log.Error("making a certificate", "err", err)
				return nil, errLeaf
			}
			return leaf, nil
		},
	}
}

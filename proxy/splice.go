package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// tunnel opens an uninspected tunnel for a CONNECT: the origin is dialled
// before the client is answered, so that what fails is an answer.
func (x *exchange) tunnel(w http.ResponseWriter, r *http.Request, rule string) {
	up, err := x.dialTunnel(rule)
	if err != nil {
		x.refuse(x.tunnelDenial(err))
		return
	}
	x.answer.status, x.answer.wrote, x.answer.taken = http.StatusOK, true, true
	x.takeOver(w, r, func(c *client) {
		defer c.Close()
		defer up.Close()
		if _, err := io.WriteString(c.Conn, connectAnswer); err != nil {
			x.fails("client_gone")
			return
		}
		x.splice(c, up)
	})
}

// dialTunnel records the tunnel as allowed, and reaches its origin.
func (x *exchange) dialTunnel(rule string) (net.Conn, error) {
	x.rec.Tunnel = true
	x.allow(rule)
	if err := x.reserve(); err != nil {
		return nil, err
	}
	if !x.server.live.add(x) {
		return nil, &denial{reason: "no_rule"}
	}
	up, err := x.force.up.dial(x, "tcp", x.forward.hostPort())
	if err != nil {
		return nil, err
	}
	x.breakable(up)
	x.breakable(x.client.Conn)
	x.reaches(up, remote(up))
	x.open()
	return up, nil
}

func (x *exchange) tunnelDenial(err error) *denial {
	if x.Err() != nil {
		return &denial{reason: "client_gone"}
	}
	var reason interface{ Reason() string }
	if errors.As(err, &reason) {
		return refusalOf(err)
	}
	return &denial{reason: "connect"}
}

// tunnelForbidden asks the policy of now about a running tunnel.
func (x *exchange) tunnelForbidden(f *inForce, now time.Time) bool {
	if f.Rules == nil {
		return true
	}
	rule, inspect, err := f.Rules.Connect(now, false, bracketed(x.forward.host.host), x.forward.host.port)
	if x.learned && f.Learn {
		return f.shuts(&x.client.target, now) != ""
	}
	if err != nil {
		return refusalOf(err).reason != "rate_limited"
	}
	return rule == "" || inspect
}

// shuts gives the reason against a tunnel that is learned, empty for none. No
// rule allows such a tunnel and nobody looks into it, so a host and port that a
// deny rule speaks of, whatever its path, is shut; so is what is no host to dial.
func (f *inForce) shuts(t *target, now time.Time) (reason string) {
	rules, ok := f.Rules.(interface {
		Denies(at time.Time, host string, port int) bool
	})
	switch {
	case !ok || t.shared || t.unnamed || isOwnHost(t.host):
		return "no_rule"
	case rules.Denies(now, t.host, t.port):
		return "deny_rule"
	}
	return ""
}

// splice carries bytes both ways until both directions have ended. The server
// may speak first; the client's first bytes wait, where they are a ClientHello,
// until its server name is known to be the tunnel's host.
func (x *exchange) splice(c *client, up net.Conn) {
	var both sync.WaitGroup
	both.Add(1)
	go func() { // origin to client; ended by either connection's end
		defer both.Done()
		n, err := io.Copy(c.Conn, up)
		x.answer.count.Add(n)
		if err != nil {
			c.Conn.Close()
			up.Close()
			return
		}
		c.CloseWrite()
	}()
	if !x.holdHello(c) {
		up.Close()
		c.Conn.Close()
		both.Wait()
		return
	}
	n, err := x.sendOn(c, up)
	x.body.count.Add(n)
	if err != nil {
		up.Close()
		c.Conn.Close()
	} else if half, ok := up.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	} else {
		up.Close()
	}
	both.Wait()
}

// sendOn copies what was read ahead and all that follows. The bare connections
// are copied where they can be, since the kernel may then move the bytes.
func (x *exchange) sendOn(c *client, up net.Conn) (int64, error) {
	early := c.pre
	c.pre = nil
	n, err := up.Write(early)
	if err != nil {
		return int64(n), err
	}
	m, err := io.Copy(up, c.Conn)
	return int64(n) + m, err
}

// holdHello reads the client's first bytes. It is false where the tunnel must
// not go on: its handshake names another server, or did not come whole in time.
func (x *exchange) holdHello(c *client) bool {
	if err := c.peek(1); err != nil {
		return true // the copy will see the same end
	}
	c.busy.Store(1)
	late := time.Now().Add(x.server.limits.ClientHelloTimeout)
	for {
		name, state := readHello(c.pre)
		switch {
		case state == helloOther:
			c.SetReadDeadline(time.Time{})
			return true
		case state == helloWhole:
			c.SetReadDeadline(time.Time{})
			return name == "" || x.sniAgrees(name)
		case state == helloBad, len(c.pre) > maxHello+4096:
			x.fails("protocol")
			return false
		}
		c.SetReadDeadline(late)
		if err := c.peek(len(c.pre) + 1); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				x.fails("timeout")
			} else {
				x.fails("client_gone")
			}
			return false
		}
	}
}

func (x *exchange) sniAgrees(name string) bool {
	canonical, err := x.force.canonical(name)
	if err != nil || canonical != x.client.target.host {
		x.fails("authority_mismatch")
		return false
	}
	return true
}

// speaksHTTP looks whether the first bytes of a connection could be a request:
// letters of a method up to a space.
func (s *Server) speaksHTTP(c *client) bool {
	for i := 0; i < 32; i++ {
		if err := c.peek(i + 1); err != nil {
			return true // the wire answers what there is
		}
		switch b := c.pre[i]; {
		case b == ' ':
			return i > 0
		case b < 'A' || b > 'Z' && b != '_':
			return false
		}
	}
	return false
}

// learnTunnel carries what is neither TLS nor HTTP, under learn only, and
// records it as a tunnel.
func (s *Server) learnTunnel(c *client) {
	c.SetReadDeadline(time.Time{})
	s.captureTunnel(c, "", true)
}

// captureTunnel opens an uninspected tunnel for a connection that was captured
// or learned: there is no CONNECT that could be answered, so what is refused is
// closed.
func (s *Server) captureTunnel(c *client, rule string, learned bool) {
	x := s.beginTunnel(c)
	x.learned = learned
	defer x.end()
	defer c.Close()
	if learned {
		if reason := x.force.shuts(&c.target, x.start); reason != "" {
			x.rec.Tunnel = true
			x.fails(reason)
			return
		}
	}
	up, err := x.dialTunnel(rule)
	if err != nil {
		x.fails(x.tunnelDenial(err).reason)
		return
	}
	defer up.Close()
	x.splice(c, up)
}

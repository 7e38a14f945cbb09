package proxy

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/elazarl/goproxy"
)

// connectAnswer opens a tunnel: a status line and a blank line (RFC 9110
// section 9.3.6: a 2xx to CONNECT has neither length nor coding).
const connectAnswer = "HTTP/1.1 200 Connection established\r\n\r\n"

// newConnect builds the goproxy server that takes a CONNECT's connection over.
// It sees no other method, and of its actions only Hijack is used: it never
// intercepts, dials or answers by itself.
func newConnect() *goproxy.ProxyHttpServer {
	p := &goproxy.ProxyHttpServer{Logger: silent{}}
	p.OnRequest().HandleConnectFunc(func(host string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		return &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: func(r *http.Request, c net.Conn, _ *goproxy.ProxyCtx) {
			hand, ok := r.Context().Value(connectKey{}).(func(net.Conn))
			if !ok {
				c.Close()
				return
			}
			hand(c)
		}}, host
	})
	return p
}

type connectKey struct{}

type silent struct{}

func (silent) Printf(string, ...any) {}

// takeOver hijacks the connection of a CONNECT that is answered 200 and gives
// it to hand, without the wire in front and with what was read behind the head
// put back.
func (x *exchange) takeOver(w http.ResponseWriter, r *http.Request, hand func(*client)) {
	ctx := context.WithValue(r.Context(), connectKey{}, func(c net.Conn) {
		if s, ok := c.(*served); ok {
			_, early := s.detach()
			x.client.pre = append(x.client.pre, early...)
		}
		x.client.wire.Store(nil)
		x.client.SetDeadline(time.Time{})
		if !x.server.track() {
			x.client.Close()
			return
		}
		defer x.server.work.Done()
		hand(x.client)
	})
	r = r.WithContext(ctx)
	r.Method = http.MethodConnect
	r.URL.Host = x.head.target
	x.server.connector.ServeHTTP(w, r)
}

// connect judges a CONNECT on the explicit door. A port that rules speak of is
// answered 200 and judged inside, so that the client reads the reason in a
// normal answer.
func (x *exchange) connect(w http.ResponseWriter, r *http.Request) {
	x.rec.Method = http.MethodConnect
	raw, port, err := splitAuthority(x.head.target)
	if err == nil && port < 0 {
		err = badRequest("A CONNECT names a host and a port.")
	}
	if err != nil {
		x.refuse(refusalOf(err))
		return
	}
	x.rec.Port = port
	literal, err := x.force.canonical(raw)
	if err != nil {
		x.refuse(refusalOf(err))
		return
	}
	t := target{tunnel: true, literal: literal, port: port}
	t.host, t.shared, t.unnamed = x.server.named(literal)
	x.rec.Host = t.host
	rule, err := x.decideTunnel(&t, true)
	switch {
	case err != nil:
		x.refuse(refusalOf(err))
	case rule != "":
		x.forward.host = authority{host: t.host, port: port, written: true}
		x.client.target = t
		x.tunnel(w, r, rule)
	default:
		x.finished = true // what is inside has the record
		x.takeOver(w, r, func(c *client) {
			c.target = t
			if _, err := io.WriteString(c.Conn, connectAnswer); err != nil {
				c.sawEOF.Store(true)
				c.Close()
				return
			}
			x.server.enter(c)
		})
	}
}

// decideTunnel asks whether a connection is a tunnel (rule is not empty), or to
// be looked into.
func (x *exchange) decideTunnel(t *target, charge bool) (rule string, err error) {
	if x.force.Rules == nil || t.unnamed {
		return "", &denial{reason: "no_rule"}
	}
	if t.shared {
		if t.port == 443 || t.port == 80 {
			return "", nil
		}
		return "", &denial{reason: "no_rule"}
	}
	rule, inspect, err := x.force.Rules.Connect(x.start, charge, bracketed(t.host), t.port)
	if err != nil {
		if x.force.Learn && learnable(refusalOf(err).reason) {
			return "", nil
		}
		return "", err
	}
	if rule == "" && !inspect {
		return "", &denial{reason: "no_rule"}
	}
	if inspect {
		return "", nil
	}
	return rule, nil
}

// authorised looks for the proxy's token. Clients send it as the user or the
// password of Basic, or as Bearer; both are compared in constant time.
func (s *Server) authorised(h http.Header) bool {
	if s.cfg.Token == "" {
		return true
	}
	ok := false
	for _, v := range h["Proxy-Authorization"] {
		scheme, value, _ := strings.Cut(v, " ")
		value = strings.Trim(value, " ")
		switch strings.ToLower(scheme) {
		case "bearer":
			ok = ok || s.isToken(value)
		case "basic":
			plain, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				continue
			}
			user, password, _ := strings.Cut(string(plain), ":")
			ok = s.isToken(user) || s.isToken(password) || ok
		}
	}
	return ok
}

func (s *Server) isToken(v string) bool {
	return subtle.ConstantTimeCompare([]byte(v), []byte(s.cfg.Token)) == 1
}

package proxy

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
)

// newInner builds the one http.Server. HTTP/1 reaches it through the wire,
// which has the limits of heads; HTTP/2 as a *tls.Conn.
func (s *Server) newInner() (*http.Server, error) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!s.cfg.NoHTTP2)
	inner := &http.Server{
		Handler: http.HandlerFunc(s.handle), Protocols: protocols, TLSConfig: s.tls,
		// The wire holds the limit of a head exactly and hands net/http one of
		// its own making; over HTTP/2 the handler does, up to this.
		MaxHeaderBytes:               s.limits.MaxHeaderBytes + 64<<10,
		IdleTimeout:                  s.limits.IdleTimeout, // HTTP/2; kept from the wire
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // would quote clients
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: 250},
		ConnState: func(c net.Conn, state http.ConnState) {
			if h1, ok := c.(*served); ok {
				h1.stateChanged(state)
			}
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if h1, ok := c.(*served); ok {
				ctx = wireContext(ctx, h1.wireConn)
			}
			return context.WithValue(ctx, clientKey{}, clientOf(c))
		},
	}
	return inner, s.watchStreams(inner)
}

type clientKey struct{}

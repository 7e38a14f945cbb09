package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// The library accepts `:scheme: http` on a stream inside TLS. It leaves
// Request.TLS nil for such a stream, but only until a wrapper of its own fills
// it in again, before any handler sees it; nothing else of the request tells.
// So a handler of ours stands between the two.

// otherSchemeKey marks the context of a stream whose :scheme is not https.
type otherSchemeKey struct{}

// schemeHandler marks such streams and hands all on to the library's wrapper.
type schemeHandler struct{ http.Handler }

// ServeHTTP is called by the HTTP/2 server.
func (h schemeHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil {
		r = r.WithContext(context.WithValue(r.Context(), otherSchemeKey{}, true))
	}
	h.Handler.ServeHTTP(w, r)
}

// BaseContext passes on the context of the connection: the library looks for
// this method on its wrapper.
func (h schemeHandler) BaseContext() context.Context {
	if b, ok := h.Handler.(interface{ BaseContext() context.Context }); ok {
		return b.BaseContext()
	}
	return context.Background()
}

// otherScheme tells of a stream whose :scheme is not the one that is spoken.
func otherScheme(r *http.Request) bool {
	return r.Context().Value(otherSchemeKey{}) != nil
}

// watchStreams puts schemeHandler and the count of streams in their places. The
// library installs HTTP/2 at the first Serve, so that one is on a listener that
// has ended. It takes a connection that it does not know the bytes of only where
// it believes that there is no TLS. The error is a library that has no such
// place: streams would go unrecorded.
func (s *Server) watchStreams(inner *http.Server) error {
	inner.Serve(endedListener{})
	if inner.TLSNextProto["h2"] == nil {
		return nil // HTTP/1.1 alone
	}
	serve, ok := inner.TLSNextProto["unencrypted_http2"]
	if !ok {
		return errors.New("building the proxy: the HTTP/2 of this library cannot be watched")
	}
	inner.TLSNextProto["h2"] = func(hs *http.Server, conn *tls.Conn, h http.Handler) {
		s.serveStreams(clientOf(conn), conn, func(given *tls.Conn, count *streamCount) {
			serve(hs, given, streamHandler{schemeHandler{h}, count})
		})
	}
	return nil
}

// endedListener accepts nothing.
type endedListener struct{}

func (endedListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (endedListener) Close() error              { return nil }
func (endedListener) Addr() net.Addr            { return &net.TCPAddr{} }

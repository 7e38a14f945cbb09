package redact

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// upgrade makes a 101 safe. Only WebSocket without an extension can be read.
func (s *sieve) upgrade(res *http.Response, from *origin) error {
	up := res.Header["Upgrade"]
	conn, ok := res.Body.(io.ReadWriteCloser)
	if !ok || len(up) != 1 || !strings.EqualFold(up[0], "websocket") {
		return errSwitch
	}
	if len(res.Header["Sec-Websocket-Extensions"]) > 0 {
		return errExtension
	}
	s.head(res)
	res.Body = &socket{body: newBody(from, from, s, s.scanner(kindFrames)), conn: conn}
	return nil
}

// socket is an upgraded connection whose server is scanned. What the client
// sends passes as it is.
type socket struct {
	*body
	conn io.ReadWriteCloser
}

func (s *socket) Write(p []byte) (int, error) { return s.conn.Write(p) }

// CloseWrite ends the client's direction where the connection can do that.
func (s *socket) CloseWrite() error {
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

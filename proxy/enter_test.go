package proxy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// enter does what the test does before the client of a case begins: CONNECT for
// the tunnel door, the handshake where there is TLS.
func enter(t *testing.T, h *house, c wireCase, conn net.Conn, host string) net.Conn {
	t.Helper()
	if c.Door == "tunnel" {
		target := net.JoinHostPort(host, fmt.Sprint(c.Port))
		request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"
		enterer := &enterConn{Conn: conn, request: request}
		if c.Hello != "with_connect" || !c.TLS {
			if _, err := enterer.Write(nil); err != nil {
				t.Fatalf("writing CONNECT: %v", err)
			}
			if err := enterer.answer(); err != nil {
				t.Fatalf("CONNECT %s: %v", target, err)
			}
		}
		conn = enterer
	}
	if !c.TLS {
		return conn
	}
	if c.Hello == "split" {
		conn = &splitConn{Conn: conn}
	}
	sni := host
	if c.SNI != nil {
		sni = *c.SNI
	}
	protocol := c.ALPN
	if protocol == "" {
		protocol = "http/1.1"
	}
	verify := sni
	if verify == "" {
		verify = host
	}
	client := tls.Client(conn, &tls.Config{
		ServerName:         sni,
		NextProtos:         []string{protocol},
		InsecureSkipVerify: true, // verified below: without SNI the library has no name to verify
		VerifyConnection: func(cs tls.ConnectionState) error {
			_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: h.trust(), DNSName: verify})
			return err
		},
	})
	client.SetDeadline(time.Now().Add(10 * time.Second))
	if err := client.Handshake(); err != nil {
		t.Fatalf("handshake: %v", err)
	}
	client.SetDeadline(time.Time{})
	if s, ok := conn.(*splitConn); ok {
		s.whole = true
	}
	if got := client.ConnectionState().NegotiatedProtocol; got != protocol {
		t.Fatalf("negotiated %q, want %q", got, protocol)
	}
	return client
}

// enterConn puts the CONNECT in front of the first write and reads its answer
// before the first read.
type enterConn struct {
	net.Conn
	request string
	entered bool
}

func (c *enterConn) Write(b []byte) (int, error) {
	if c.request == "" {
		return c.Conn.Write(b)
	}
	head := c.request
	c.request = ""
	n, err := c.Conn.Write(append([]byte(head), b...))
	return max(0, n-len(head)), err
}

func (c *enterConn) Read(b []byte) (int, error) {
	if err := c.answer(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// answer reads the answer byte by byte, so that nothing behind it is taken.
func (c *enterConn) answer() error {
	if c.entered {
		return nil
	}
	c.entered = true
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	var got []byte
	for !bytes.HasSuffix(got, []byte("\r\n\r\n")) {
		one := make([]byte, 1)
		if _, err := c.Conn.Read(one); err != nil {
			return fmt.Errorf("reading answer %q: %w", got, err)
		}
		got = append(got, one...)
	}
	c.SetReadDeadline(time.Time{})
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("refused: %q", got)
	}
	return nil
}

// splitConn writes one byte a write until the handshake is done.
type splitConn struct {
	net.Conn
	whole bool
}

func (c *splitConn) Write(b []byte) (int, error) {
	if c.whole {
		return c.Conn.Write(b)
	}
	for i := range b {
		if _, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// tunnelTLS is a connection through a CONNECT of the proxy port with TLS inside.
func (h *house) tunnelTLS(target, protocol string) *tls.Conn {
	h.t.Helper()
	c := h.dial(h.proxyAddr)
	io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
		h.t.Fatalf("CONNECT %s: %v", target, err)
	}
	host, _, _ := net.SplitHostPort(target)
	t := tls.Client(c, &tls.Config{ServerName: host, NextProtos: []string{protocol}, RootCAs: h.trust()})
	if err := t.Handshake(); err != nil {
		h.t.Fatalf("TLS with %s: %v", target, err)
	}
	return t
}

// helloOf is the ClientHello that crypto/tls writes for a server name.
func helloOf(t testing.TB, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		tls.Client(theirs, &tls.Config{ServerName: name}).Handshake()
		theirs.Close()
	}()
	buf := make([]byte, 16<<10)
	n, err := ours.Read(buf)
	if err != nil {
		t.Fatalf("reading a ClientHello: %v", err)
	}
	return buf[:n]
}

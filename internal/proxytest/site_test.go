package proxytest

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A client that trusts the authority and dials the site gets each of its pages.
func TestSite(t *testing.T) {
	ca := NewCA(t)
	site := NewSite(t, ca)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, site.Address(addr))
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	get := func(url string) string {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatalf("getting %s: %v", url, err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("reading %s: %v", url, err)
		}
		return resp.Proto + " " + string(body)
	}
	if got := get("http://ok.test/"); got != "HTTP/1.1 ok" {
		t.Errorf("plain: %q", got)
	}
	if got := get("https://ok.test/drip?n=2&ms=1"); got != "HTTP/2.0 line 1\nline 2\n" {
		t.Errorf("TLS: %q", got)
	}
	resp, err := client.Post("https://ok.test/echo", "text/x", strings.NewReader("hello"))
	if err != nil {
		t.Fatalf("posting: %v", err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello" || resp.Header.Get("Content-Type") != "text/x" {
		t.Errorf("echo: %q", body)
	}
	old := &http.Transport{DialContext: dial}
	defer old.CloseIdleConnections()
	ws, _, err := websocket.Dial(t.Context(), "ws://ok.test/ws", &websocket.DialOptions{HTTPClient: &http.Client{Transport: old}})
	if err != nil {
		t.Fatalf("dialling WebSocket: %v", err)
	}
	defer ws.CloseNow()
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	if _, message, err := ws.Read(t.Context()); err != nil || string(message) != "hi" {
		t.Errorf("WebSocket: %q, %v", message, err)
	}
}

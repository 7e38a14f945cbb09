package redact

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// front is a reverse proxy before origin whose Transport redacts.
func front(t *testing.T, cfg Config, transport http.RoundTripper, origin string) *httptest.Server {
	t.Helper()
	to, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     redacting{transport, cfg},
		FlushInterval: -1,
	})
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// socketOrigin serves WebSockets that offer every compression.
func socketOrigin(t *testing.T, serve func(ctx context.Context, c *websocket.Conn) error) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			t.Errorf("accepting: %v", err)
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(1 << 22)
		if err := serve(r.Context(), c); err != nil {
			t.Errorf("serving: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func dial(t *testing.T, server *httptest.Server) *websocket.Conn {
	t.Helper()
	c, res, err := websocket.Dial(t.Context(), server.URL, &websocket.DialOptions{
		HTTPClient: server.Client(), CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header["Sec-Websocket-Extensions"]; got != nil {
		t.Errorf("an extension: %q", got)
	}
	c.SetReadLimit(1 << 22)
	t.Cleanup(func() { c.CloseNow() })
	return c
}

// http1 is a Transport that can upgrade.
func http1(t *testing.T) *http.Transport {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// An echo over a real client and a real server: what the client says passes as
// it is, what the server says is scanned, and a conversation goes to and fro.
func TestWebSocket(t *testing.T) {
	origin := socketOrigin(t, func(ctx context.Context, c *websocket.Conn) error {
		for {
			kind, r, err := c.Reader(ctx)
			if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
				return nil
			}
			if err != nil {
				return err
			}
			all, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			if strings.HasPrefix(string(all), "secret?") {
				all = []byte("it is " + secret + "!")
			}
			w, err := c.Writer(ctx, kind)
			if err != nil {
				return err
			}
			for len(all) > 0 { // each in a fragment of its own
				n := min(len(all), 1+len(all)/2)
				if _, err := w.Write(all[:n]); err != nil {
					return err
				}
				all = all[n:]
			}
			if err := w.Close(); err != nil {
				return err
			}
		}
	})
	cfg, _ := config()
	client := dial(t, front(t, cfg, http1(t), origin))
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	for _, c := range []struct {
		kind       websocket.MessageType
		send, want string
	}{
		{websocket.MessageText, "hello", "hello"},
		{websocket.MessageText, "", ""},
		{websocket.MessageText, "secret?", "it is " + stars + "!"},
		{websocket.MessageText, "you " + secret, "you " + stars},
		{websocket.MessageBinary, string(noise), string(noise)},
		{websocket.MessageBinary, string(noise) + secret, string(noise) + stars},
		{websocket.MessageText, strings.Repeat("\u20ac*", 100_000), strings.Repeat("\u20ac*", 100_000)},
	} {
		if err := client.Write(t.Context(), c.kind, []byte(c.send)); err != nil {
			t.Fatal(err)
		}
		kind, got, err := client.Read(t.Context())
		if err != nil || kind != c.kind || string(got) != c.want {
			t.Fatalf("sent %.40q: got %v %.40q, %v; want %.40q", c.send, kind, got, err, c.want)
		}
	}
	if err := client.Close(websocket.StatusNormalClosure, "bye"); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// The server's ping reaches a client in the middle of a message, and the pong
// goes back.
func TestPingInAMessage(t *testing.T) {
	origin := socketOrigin(t, func(ctx context.Context, c *websocket.Conn) error {
		c.CloseRead(ctx)
		w, err := c.Writer(ctx, websocket.MessageText)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, strings.Repeat("z", 8192)); err != nil { // more than its buffer
			return err
		}
		if err := c.Ping(ctx); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return c.Ping(ctx)
	})
	cfg, _ := config()
	client := dial(t, front(t, cfg, http1(t), origin))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, got, err := client.Read(ctx); err != nil || string(got) != strings.Repeat("z", 8192) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	_, _, _ = client.Read(ctx) // answers the last ping, until the server ends
}

// A close of the server carries its word, scanned.
func TestCloseOfAWebSocket(t *testing.T) {
	origin := socketOrigin(t, func(_ context.Context, c *websocket.Conn) error {
		return c.Close(4001, "no "+secret)
	})
	cfg, found := config()
	client := dial(t, front(t, cfg, http1(t), origin))
	_, _, err := client.Read(t.Context())
	var closed websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != 4001 || closed.Reason != "no "+stars {
		t.Errorf("got %v", err)
	}
	if len(*found) != 1 {
		t.Errorf("noted: %q", *found)
	}
}

// duplex is an upgraded connection made of two pipes.
type duplex struct {
	io.Reader
	io.WriteCloser
}

func TestUpgradeRefused(t *testing.T) {
	cfg, _ := config()
	for _, c := range []struct {
		name   string
		fields []string
		body   io.ReadCloser
		err    error
	}{
		{"another protocol", []string{"Upgrade", "h2c"}, duplex{}, errSwitch},
		{"two protocols", []string{"Upgrade", "websocket", "Upgrade", "h2c"}, duplex{}, errSwitch},
		{"no protocol", nil, duplex{}, errSwitch},
		{"no connection", []string{"Upgrade", "websocket"}, http.NoBody, errSwitch},
		{"an extension", []string{"Upgrade", "websocket", "Sec-Websocket-Extensions", "permessage-deflate"}, duplex{}, errExtension},
	} {
		res, _ := answerOf(101, 0, "", c.fields...)
		if d, ok := c.body.(duplex); ok {
			_, w := io.Pipe()
			d.WriteCloser = w
			c.body = d
		}
		res.Body = c.body
		if err := Answer(res, cfg); err != c.err {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// The head of a 101 is scanned, a frame that cannot be read ends the connection
// with a reason, and the client's direction is the connection itself.
func TestUpgraded(t *testing.T) {
	cfg, _ := config()
	toClient, server := io.Pipe()
	fromClient, client := io.Pipe()
	res, _ := answerOf(101, 0, "", "Upgrade", "WebSocket", "X-Echo", secret)
	res.Body = duplex{toClient, client}
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("X-Echo"); got != "[redacted]" || res.Status != "101 Switching Protocols" {
		t.Errorf("head: %q, %q", got, res.Status)
	}
	conn, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatal("no longer a connection")
	}
	go func() {
		io.WriteString(conn, secret)
		conn.Close()
	}()
	if got, err := io.ReadAll(fromClient); err != nil || string(got) != secret {
		t.Errorf("the server got %q, %v", got, err)
	}
	go func() {
		io.WriteString(server, wsFrame(textOpen, "a "+secret[:9]))
		io.WriteString(server, wsFrame("\x80", secret[9:]+" b")+wsFrame(textWhole, secret)+wsFrame("\xc1", "deflated"))
		server.Close()
	}()
	got, err := io.ReadAll(conn)
	want := wsFrame(textOpen, "a "+stars[:9]) + wsFrame("\x80", stars[9:]+" b") + wsFrame(textWhole, stars)
	if string(got) != want || !errors.Is(err, errFrame) {
		t.Errorf("the client got %q, %v", got, err)
	}
	if half, ok := res.Body.(interface{ CloseWrite() error }); !ok || !errors.Is(half.CloseWrite(), errors.ErrUnsupported) {
		t.Error("a direction was closed that cannot be")
	}
}

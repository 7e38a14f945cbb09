// Command client is a Go program as users write them: it asks with what the
// libraries do by themselves, and prints what came.
//
//	client get URL            status, protocol and body
//	client put URL SIZE       sends SIZE bytes without a length
//	client grpc NAME METHOD   one message to a method of the Echo service
//	client ws URL             one message to an echo and back
//	client s3 URL FILE        an upload to S3 whose chunks are signed
//	client hello NAME WAY     a TLS handshake whose hello comes in bytes, records or whole
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: client get|put|grpc|ws|s3|hello …")
	}
	switch args[0] {
	case "get":
		return request(ctx, http.MethodGet, args[1], nil)
	case "put":
		n, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return err
		}
		return request(ctx, http.MethodPut, args[1], io.LimitReader(noughts{}, n))
	case "grpc":
		return call(ctx, args[1], args[2])
	case "ws":
		return webSocket(ctx, args[1])
	case "s3":
		return streamed(ctx, args[1], args[2])
	case "hello":
		return hello(ctx, args[1], args[2])
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func request(ctx context.Context, method, url string, body io.Reader) error {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	return send(req, nil)
}

// send sends a request, with a body of a known length where one is given.
func send(req *http.Request, body *bytes.Buffer) error {
	if body != nil {
		req.Body, req.ContentLength = io.NopCloser(body), int64(body.Len())
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s %s\n", resp.Status, resp.Proto, text)
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

type noughts struct{}

func (noughts) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// raw passes messages through as they are.
type raw struct{}

func (raw) Name() string { return "raw" }

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func call(ctx context.Context, name, method string) error {
	conn, err := grpc.NewClient(name+":443", grpc.WithTransportCredentials(credentials.NewTLS(nil)), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		return err
	}
	defer conn.Close()
	in, out := []byte("hello over gRPC"), []byte(nil)
	var trailer metadata.MD
	if err := conn.Invoke(ctx, "/proxytest.Echo/"+method, &in, &out, grpc.Trailer(&trailer)); err != nil {
		return err
	}
	fmt.Printf("%s, echoed %v\n", out, trailer.Get("x-echoed"))
	return nil
}

func webSocket(ctx context.Context, url string) error {
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageText, []byte("hello over WebSocket")); err != nil {
		return err
	}
	_, text, err := conn.Read(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", text)
	return conn.Close(websocket.StatusNormalClosure, "")
}

// hello makes a handshake by its own dialling, the first flight cut up.
func hello(ctx context.Context, name, way string) error {
	var d net.Dialer
	plain, err := d.DialContext(ctx, "tcp", name+":443")
	if err != nil {
		return err
	}
	defer plain.Close()
	roots, err := x509.SystemCertPool()
	if err != nil {
		return err
	}
	c := tls.Client(&cutter{Conn: plain, way: way}, &tls.Config{ServerName: name, RootCAs: roots, NextProtos: []string{"http/1.1"}})
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	fmt.Fprintf(c, "GET /pub/a HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name)
	text, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", text)
	return nil
}

// cutter sends the ClientHello a byte a write, or as two records (RFC 8446
// section 5.1 allows it), and the rest as it comes.
type cutter struct {
	net.Conn
	way  string
	done bool
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.done {
		return c.Conn.Write(b)
	}
	c.done = true
	switch c.way {
	case "bytes":
		for i := range b {
			if _, err := c.Conn.Write(b[i : i+1]); err != nil {
				return i, err
			}
		}
	case "records":
		const head = 5
		half := (len(b) - head) / 2
		for _, part := range [][]byte{b[head : head+half], b[head+half:]} {
			record := append([]byte{b[0], b[1], b[2], byte(len(part) >> 8), byte(len(part))}, part...)
			if _, err := c.Conn.Write(record); err != nil {
				return 0, err
			}
			time.Sleep(20 * time.Millisecond)
		}
	default:
		return c.Conn.Write(b)
	}
	return len(b), nil
}

package redact

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/egressd/egressd/internal/proxytest"
)

// echo answers each message of a stream with itself, and ends with a trailer.
func echo(_ any, stream grpc.ServerStream) error {
	stream.SetTrailer(metadata.Pairs("x-auth", "Bearer "+secret, "x-sum", "v1"))
	for {
		var message []byte
		switch err := stream.RecvMsg(&message); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		if string(message) == "fail" {
			return status.Error(codes.PermissionDenied, "bad token "+secret)
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
}

// grpcFront is a connection to a real server by way of a reverse proxy.
func grpcFront(t *testing.T, cfg Config) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.ForceServerCodec(proxytest.RawCodec()))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Echo", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "Echo", Handler: echo, ServerStreams: true, ClientStreams: true}},
	}, struct{}{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(server.Stop)

	transport := http1(t)
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetUnencryptedHTTP2(true)
	proxy := front(t, cfg, transport, "http://"+listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(proxy.Certificate())
	conn, err := grpc.NewClient(proxy.Listener.Addr().String(),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "example.com"})),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(proxytest.RawCodec())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func call(t *testing.T, conn *grpc.ClientConn, options ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Echo/Echo", options...)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// A call that waits for each answer before it asks again runs through, whatever
// a message looks like, and its trailers are scanned.
func TestGRPC(t *testing.T) {
	cfg, found := config()
	stream := call(t, grpcFront(t, cfg))
	long := strings.Repeat("zy", 100_000)
	for _, m := range []struct{ send, want string }{
		{"", ""}, {"ping", "ping"}, {"you " + secret, "you " + stars}, {long + secret + long, long + stars + long}, {"pong", "pong"},
	} {
		send, got := []byte(m.send), []byte(nil)
		if err := stream.SendMsg(&send); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(&got); err != nil || string(got) != m.want {
			t.Fatalf("got %.50q, %v; want %.50q", got, err, m.want)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var end []byte
	if err := stream.RecvMsg(&end); err != io.EOF {
		t.Fatalf("the end: %v", err)
	}
	if got := stream.Trailer(); len(got["x-auth"]) != 1 || got["x-auth"][0] != "Bearer [redacted]" || len(got["x-sum"]) != 1 {
		t.Errorf("trailers: %v", got)
	}
	if len(*found) != 1 {
		t.Errorf("noted: %q", *found)
	}
}

func TestGRPCStatus(t *testing.T) {
	cfg, _ := config()
	stream := call(t, grpcFront(t, cfg))
	send, got := []byte("fail"), []byte(nil)
	if err := stream.SendMsg(&send); err != nil {
		t.Fatal(err)
	}
	err := stream.RecvMsg(&got)
	if s := status.Convert(err); s.Code() != codes.PermissionDenied || s.Message() != "bad token [redacted]" {
		t.Errorf("got %v", err)
	}
}

// A server that compresses all the same is broken off before a byte of it.
func TestGRPCCompressed(t *testing.T) {
	cfg, _ := config()
	stream := call(t, grpcFront(t, cfg), grpc.UseCompressor("gzip"))
	send, got := []byte(strings.Repeat(secret, 100)), []byte(nil)
	if err := stream.SendMsg(&send); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&got); err == nil || err == io.EOF || status.Code(err) == codes.OK {
		t.Errorf("got %q, %v", got, err)
	}
}

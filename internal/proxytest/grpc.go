package proxytest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
)

// A gRPC service without generated code: its messages are bytes.

// EchoMethod and EchoStream are the methods of the service: both send back what
// they get, with the trailer "x-echoed" holding the number of messages. The
// message "fail" is answered with an error.
const (
	EchoMethod = "/proxytest.Echo/Once"
	EchoStream = "/proxytest.Echo/Stream"
)

// rawCodec passes *[]byte through.
type rawCodec struct{}

func (rawCodec) Name() string { return "proxytest-raw" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshalling %T", v)
	}
	return *b, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshalling into %T", v)
	}
	*b = append([]byte(nil), data...)
	return nil
}

// RawCodec is the codec of the service, for clients: its messages are *[]byte.
func RawCodec() encoding.Codec { return rawCodec{} }

// echoer is what the service's description asks of its server.
type echoer any

func newEchoServer() *grpc.Server {
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "proxytest.Echo",
		HandlerType: (*echoer)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Once", Handler: echoOnce}},
		Streams:     []grpc.StreamDesc{{StreamName: "Stream", Handler: echoStream, ServerStreams: true, ClientStreams: true}},
	}, struct{}{})
	return server
}

func echoOnce(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var message []byte
	if err := decode(&message); err != nil {
		return nil, err
	}
	if err := grpc.SetTrailer(ctx, metadata.Pairs("x-echoed", "1")); err != nil {
		return nil, err
	}
	if string(message) == "fail" {
		return nil, errors.New("asked to fail")
	}
	return &message, nil
}

func echoStream(_ any, stream grpc.ServerStream) error {
	n := 0
	for {
		var message []byte
		err := stream.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			stream.SetTrailer(metadata.Pairs("x-echoed", fmt.Sprint(n)))
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
		n++
	}
}

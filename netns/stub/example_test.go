//go:build linux

package stub_test

import (
	"context"
	"fmt"
	"net"

	"github.com/egressd/egressd/netns/stub"
)

func ExampleNew() {
	server, err := stub.New(stub.Config{Knows: func(host string) bool { return host == "api.example.com" }})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	go func() { _ = server.ServePacket(conn) }() // ends with conn
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	for _, host := range []string{"api.example.com.", "unknown.example."} {
		addrs, err := resolver.LookupNetIP(context.Background(), "ip4", host)
		if err != nil {
			fmt.Println(err)
			return
		}
		name, pool := server.Lookup(addrs[0])
		fmt.Printf("%q %v %v\n", name, pool, addrs[0] == stub.SharedAddr4())
	}
	// Output:
	// "api.example.com" true false
	// "*" true true
}

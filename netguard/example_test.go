package netguard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/egressd/egressd/netguard"
)

func ExampleNew() {
	guard := netguard.New(netguard.Config{})
	for _, addr := range []string{"93.184.215.14", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::a00:1"} {
		fmt.Println(addr, guard.Check("db.example.com", netip.MustParseAddr(addr)) == nil)
	}
	// Output:
	// 93.184.215.14 true
	// 10.0.0.1 false
	// 169.254.169.254 false
	// ::ffff:127.0.0.1 false
	// 64:ff9b::a00:1 false
}

func ExampleParseAllow() {
	allow, err := netguard.ParseAllow([]string{"10.1.0.0/16"})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard := netguard.New(netguard.Config{Allow: allow})
	fmt.Println(guard.Check("db.example.com", netip.MustParseAddr("10.1.2.3")) == nil)
	fmt.Println(guard.Check("db.example.com", netip.MustParseAddr("10.2.2.3")) == nil)
	// Output:
	// true
	// false
}

func ExampleNewResolver() {
	_, err := netguard.NewResolver("dns.example.com") // a name would have to be looked up first
	fmt.Println(err != nil)
	_, err = netguard.NewResolver("192.0.2.53")
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// answers is a resolver that knows a few names.
type answers map[string]netip.Addr

func (a answers) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return []netip.Addr{a[host]}, nil
}

// Whatever has a DialContext, such as http.Transport, is kept from the private
// addresses that names lead to.
func ExampleDialer() {
	origin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer origin.Close()
	dialer := &netguard.Dialer{
		Guard:    netguard.New(netguard.Config{}),
		Resolver: answers{"rebound.example.com": netip.MustParseAddr("127.0.0.1")},
		Pin:      map[string]string{"intranet.example.com:443": origin.Addr().String()},
	}
	_, err = dialer.DialContext(context.Background(), "tcp", "rebound.example.com:443")
	var refusal *netguard.Refusal
	fmt.Println(errors.As(err, &refusal))
	conn, err := dialer.DialContext(context.Background(), "tcp", "intranet.example.com:443") // the operator's word
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(conn.RemoteAddr().String() == origin.Addr().String(), conn.Close())
	// Output:
	// true
	// true <nil>
}

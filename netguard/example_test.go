package netguard_test

import (
	"fmt"
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

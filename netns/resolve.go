//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// resolveTime bounds a question to our own stub.
const resolveTime = 5 * time.Second

// Resolve asks the DNS stub for a name's IPv4 address, from inside, as a
// program there would. It serves the self-test.
func (s *Session) Resolve(ctx context.Context, host string) (netip.Addr, error) {
	fail := func(err error) (netip.Addr, error) {
		return netip.Addr{}, fmt.Errorf("asking the DNS stub for %s: %w", host, err)
	}
	name, err := dnsmessage.NewName(host + ".")
	if err != nil {
		return fail(err)
	}
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 1, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		return fail(err)
	}
	c, err := s.Dial(ctx, "udp", "127.0.0.1:53")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(resolveTime)); err != nil {
		return fail(err)
	}
	if _, err := c.Write(packed); err != nil {
		return fail(err)
	}
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	if err != nil {
		return fail(err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(buf[:n]); err != nil {
		return fail(err)
	}
	for _, a := range answer.Answers {
		if body, ok := a.Body.(*dnsmessage.AResource); ok {
			return netip.AddrFrom4(body.A), nil
		}
	}
	return fail(errors.New("it has no address"))
}

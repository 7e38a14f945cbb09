//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// refusalTime is how long a refusal may take: it comes from the same kernel.
const refusalTime = 2 * time.Second

// Refuses makes sure that what is sent from inside to an address is refused at
// once, as to a port that nobody listens on. network and address are Dial's.
// In the explicit-only fallback an address that is not loopback's is
// unreachable instead, which counts too.
func (s *Session) Refuses(ctx context.Context, network, address string) error {
	ctx, cancel := context.WithTimeout(ctx, refusalTime)
	defer cancel()
	c, err := s.Dial(ctx, network, address)
	if err == nil {
		defer func() { _ = c.Close() }()
		err = answered(c)
	}
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENETUNREACH) {
		return nil
	}
	return fmt.Errorf("checking that %s to %s is refused: %w", network, address, err)
}

// errAnswered is the absence of a refusal.
var errAnswered = errors.New("it is not")

// answered sends a byte and reads: what refuses it says so then at the latest.
func answered(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(refusalTime)); err != nil {
		return err
	}
	if c.RemoteAddr().Network() == "tcp" {
		return errAnswered
	}
	_, err := c.Write([]byte{0})
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil {
		return errAnswered
	}
	return err
}

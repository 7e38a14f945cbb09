package proxy

import (
	"context"
	"net"
)

// Through is a dialler that reaches "host:port" by a tunnel through the proxy
// or, where NoProxy says so, by direct: for calls that are not a client's.
func (p *UpstreamProxy) Through(direct DialFunc) DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if p.bypassesAddr(addr) {
			return direct(ctx, network, addr)
		}
		return p.tunnel(ctx, network, addr)
	}
}

package proxy_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// newSiteHouse is a house whose internet is a Site under every name.
func newSiteHouse(t testing.TB, list ...any) (*house, *proxytest.Site) {
	t.Helper()
	return newLimitedSiteHouse(t, nil, list...)
}

func newLimitedSiteHouse(t testing.TB, more casePolicy, list ...any) (*house, *proxytest.Site) {
	t.Helper()
	roots := proxytest.NewCA(t)
	site := proxytest.NewSite(t, roots) // ends after the proxy: it is made before it
	h := newHouseWith(t, list, more, roots)
	h.kernel = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, site.Address(addr))
	}
	return h, site
}

// explicit is a client of the proxy port.
func (h *house) explicit() proxytest.Trust {
	return proxytest.Trust{Proxy: h.proxyAddr, Roots: h.trust()}
}

// captured is a client that dials by itself: name and port as the stub's address.
func (h *house) captured(name string, port uint16) proxytest.Trust {
	return proxytest.Trust{Captured: h.capture(netip.AddrPortFrom(h.table.Addr(name), port)), Roots: h.trust()}
}

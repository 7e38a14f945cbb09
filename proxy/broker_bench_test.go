package proxy_test

import (
	"io"
	"testing"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/proxy"
)

// BenchmarkBroker is a small GET over a warm connection, without a broker, with
// one that does nothing, and with a real one that has no entries: the difference
// is what the seam costs, and what the guard.
func BenchmarkBroker(b *testing.B) {
	guard, err := credbroker.New(b.Context(), credbroker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name   string
		broker proxy.Broker
	}{{"none", nil}, {"idle", &fakeBroker{}}, {"guard", guard}} {
		b.Run(bb.name, func(b *testing.B) {
			h, _ := newSiteHouse(b, "* ok.test/**")
			h.broker = bb.broker
			h.server.SetPolicy(h.policy([]any{"* ok.test/**"}))
			client := h.explicit().HTTP()
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			for b.Loop() {
				res, err := client.Get("https://ok.test/")
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
}

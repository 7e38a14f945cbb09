package netguard

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/egressd/egressd/internal/cases"
)

type addressCase struct {
	ID, Why  string
	Addr     string
	Addrs    []string
	Allow    json.RawMessage
	Host     string
	Local    []string
	Q        int
	Verdict  Outcome
	Class    Class
	Reason   string
	Embedded string
}

// Every line of addresses.jsonl.
func TestAddressCases(t *testing.T) {
	cases.Each(t, "addresses.jsonl", func(t *testing.T, c addressCase) {
		config := Config{}
		if c.Allow != nil && json.Unmarshal(c.Allow, &config.Allow.All) != nil {
			var list []string
			if err := json.Unmarshal(c.Allow, &list); err != nil {
				t.Fatal(err)
			}
			allow, err := ParseAllow(list)
			if err != nil {
				t.Fatal(err)
			}
			config.Allow = allow
		}
		for _, a := range c.Local {
			config.Local = append(config.Local, netip.MustParseAddr(a))
		}
		if c.Addr != "" {
			c.Addrs = append(c.Addrs, c.Addr)
		}
		addrs := []netip.Addr{}
		for _, a := range c.Addrs {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		g := New(config)

		// The answer that decides is the first blocked one, else the first.
		got := g.Judge(c.Host, addrs[0])
		for _, a := range addrs[1:] {
			if v := g.Judge(c.Host, a); got.Verdict != Blocked && v.Verdict == Blocked {
				got = v
			}
		}
		embedded := ""
		if got.Embedded.IsValid() && c.Addr != "" {
			embedded = got.Embedded.String()
		}
		if got.Verdict != c.Verdict || got.Class != c.Class || got.Reason != c.Reason || embedded != c.Embedded {
			t.Errorf("%v: got %+v, want %s %s %q %q\n%s", c.Addrs, got, c.Verdict, c.Class, c.Reason, c.Embedded, c.Why)
		}
		if refused := g.CheckAll(c.Host, addrs) != nil; refused != (c.Verdict == Blocked) {
			t.Errorf("%v: refused as a set of answers: %v", c.Addrs, refused)
		}
	})
}

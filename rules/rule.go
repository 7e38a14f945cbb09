// Package rules is the rule language of egressd: it parses a rule, compiles a
// list of them into a Set, and answers a Request with a Decision. It does no
// I/O, holds no clock and knows nothing of HTTP libraries.
//
//	rule    = [ "!" ] methods SP target          ; "!" makes it a deny rule
//	methods = "*" / method *( "," method )       ; or CONNECT alone: a tunnel
//	target  = [ scheme "://" ] host [ ":" port ] [ path ]
//
// Everything is denied that no allow rule allows; a deny rule beats every allow
// rule, in any order. Servers disagree about what a path means, so a request
// is allowed only if every reading of its path is, and denied if any reading
// hits a deny rule (reading.go, deny.go). The nil Set and the zero Set deny
// everything.
//
//	set := rules.New(list)
//	d := set.Decide(rules.Request{Method: "GET", Scheme: "https",
//		Host: "api.test", Port: 443, Target: "/x", At: time.Now()})
//
// A Set is an index: exact hosts in a map, wildcard hosts by a walk over the
// labels from the right, then the few rules of that host one by one. Deciding
// on an ordinary path allocates nothing where the request is allowed.
package rules

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// AnyPort is the Port of a rule that is written with ":*".
const AnyPort = -1

// connect is the method that speaks of uninspected tunnels.
const connect = "CONNECT"

// Rule is one parsed rule. The zero Rule names no method and no host, so it
// fits nothing.
type Rule struct {
	Deny    bool
	Methods []string // upper case, each once; "*" alone for any but CONNECT
	Scheme  string   // "http", "https", or "" for both
	Host    string   // canonical (CanonicalHost); "*" and a leading "*." are wildcards
	Port    int      // 1 to 65535; 0: 443 for https and 80 for http; AnyPort
	Path    string   // as written; "/**" when none was; "" for a tunnel
	Tunnel  bool     // a CONNECT rule

	Note            string
	Query           map[string]string // parameter name to value pattern; nil for none
	Limited         bool              // whether MaxRequestBytes counts, so that 0 can be a limit
	MaxRequestBytes int64             // bytes of the request body
	Rate            Rate
	Until           time.Time // in force strictly before it; zero: for ever
}

// Rate is so many requests in any stretch of time as long as Per. The zero
// Rate is no limit.
type Rate struct {
	Count int
	Per   time.Duration
}

// String is the rate as it is written, "60/min", or "" for none.
func (r Rate) String() string {
	if r.Count == 0 {
		return ""
	}
	for _, u := range rateUnits {
		if u.per == r.Per {
			return strconv.Itoa(r.Count) + "/" + u.name
		}
	}
	return strconv.Itoa(r.Count) + "/" + r.Per.String()
}

// String is the canonical text of the rule without what only a mapping can
// hold; Parse reads it back as the same rule.
func (r Rule) String() string {
	var b strings.Builder
	if r.Deny {
		b.WriteByte('!')
	}
	b.WriteString(strings.Join(r.Methods, ","))
	b.WriteByte(' ')
	if r.Scheme != "" {
		b.WriteString(r.Scheme + "://")
	}
	b.WriteString(bracketed(r.Host))
	switch {
	case r.Port == AnyPort:
		b.WriteString(":*")
	case r.Port != 0:
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(r.Port))
	}
	b.WriteString(r.Path)
	return b.String()
}

// Mapping is the rule as a mapping that ParseMapping reads back as the same
// rule: "rule" is its String, further keys are there where they are set.
func (r Rule) Mapping() map[string]any {
	m := map[string]any{"rule": r.String()}
	if r.Note != "" {
		m["note"] = r.Note
	}
	if len(r.Query) > 0 {
		q := make(map[string]any, len(r.Query))
		for name, value := range r.Query {
			q[name] = value
		}
		m["query"] = q
	}
	if r.Limited {
		m["max_request_bytes"] = r.MaxRequestBytes
	}
	if r.Rate.Count > 0 {
		m["rate"] = r.Rate.String()
	}
	if !r.Until.IsZero() {
		m["until"] = r.Until.UTC().Format(time.RFC3339Nano)
	}
	return m
}

// bracketed is a canonical host as an authority writes it.
func bracketed(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		return "[" + host + "]"
	}
	return host
}

// address is the host of the rule where it is an address literal.
func (r *Rule) address() (netip.Addr, bool) {
	a, err := netip.ParseAddr(r.Host)
	return a, err == nil
}

// anyMethod says whether the rule is written with "*".
func (r *Rule) anyMethod() bool { return len(r.Methods) == 1 && r.Methods[0] == "*" }

// covers says whether the rule speaks of this scheme and port. A tunnel rule
// covers its port whatever is spoken there.
func (r *Rule) covers(scheme string, port int) bool {
	if r.Scheme != "" && r.Scheme != scheme {
		return false
	}
	if r.Port == 0 {
		return port == defaultPort(scheme)
	}
	return r.Port == AnyPort || r.Port == port
}

// defaultPort is the port that a scheme stands for, 0 for an unknown one.
func defaultPort(scheme string) int {
	switch scheme {
	case "https":
		return 443
	case "http":
		return 80
	}
	return 0
}

// ports lists the ports that the rule names, a missing port as its scheme
// stands for; none for AnyPort.
func (r *Rule) ports() []int {
	switch {
	case r.Port > 0:
		return []int{r.Port}
	case r.Port == AnyPort:
		return nil
	case r.Scheme == "":
		return []int{443, 80}
	}
	return []int{defaultPort(r.Scheme)}
}

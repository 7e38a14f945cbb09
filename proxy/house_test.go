package proxy_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/proxy"
	"github.com/egressd/egressd/rules"
)

type (
	netConn     = net.Conn
	dialledAddr = netip.AddrPort
)

// casePolicy is the part of a policy file that is merged with the rules.
type casePolicy map[string]map[string]any

// loadPolicy loads rules and the rest of a policy as a file of them would be.
func loadPolicy(t testing.TB, list []any, more casePolicy) *policy.Policy {
	t.Helper()
	sandbox := map[string]any{"egress_rules": append([]any{}, list...)}
	file := map[string]any{"sandbox": sandbox}
	for section, keys := range more {
		if section == "sandbox" {
			maps.Copy(sandbox, keys)
		} else {
			file[section] = keys
		}
	}
	text, err := json.Marshal(file) // JSON is YAML
	if err != nil {
		t.Fatalf("writing policy: %v", err)
	}
	p, problems := policy.Load("egressd.yaml", text, policy.Options{Platform: "linux"})
	if p == nil {
		t.Fatalf("loading policy %s: %v", text, problems)
	}
	return p
}

// house is one proxy on loopback with the real rules, authority and guard, and
// a fake internet behind the guard.
type house struct {
	t         testing.TB
	server    *proxy.Server
	config    proxy.Config
	issuer    *ca.Issuer
	sink      *memorySink
	table     *proxytest.Table
	resolver  *proxytest.Resolver
	origin    *proxytest.Origin
	roots     *proxytest.CA // that origins have certificates of
	more      casePolicy
	rules     *rules.Set
	proxyAddr string
	opened    []net.Conn
	broker    proxy.Broker
	// kernel stands in for the kernel behind the guard; nil leads to origin.
	kernel func(ctx context.Context, network, addr string) (net.Conn, error)
}

// newHouse starts a proxy with these rules; everything ends with the test.
func newHouse(t testing.TB, list []any, more casePolicy) *house {
	t.Helper()
	return newHouseWith(t, list, more, proxytest.NewCA(t))
}

// newHouseWith is newHouse with origins that have certificates of roots.
func newHouseWith(t testing.TB, list []any, more casePolicy, roots *proxytest.CA) *house {
	t.Helper()
	h := &house{t: t, sink: &memorySink{}, resolver: &proxytest.Resolver{}, roots: roots, more: more, broker: &fakeBroker{}}
	h.origin = proxytest.NewOrigin(t, h.roots)
	h.table = &proxytest.Table{Knows: func(name string) bool { return h.rules.Knows(name) }}
	issuer, err := ca.New(ca.Config{})
	if err != nil {
		t.Fatalf("making authority: %v", err)
	}
	h.issuer = issuer
	limits := loadPolicy(t, list, more).Limits
	h.config = proxy.Config{
		Issuer: issuer,
		Sink:   h.sink,
		Names:  h.table,
		Limits: proxy.Limits{
			MaxConnections:     limits.MaxConnections,
			MaxHeaderBytes:     int(limits.MaxHeaderBytes),
			ClientHelloTimeout: limits.ClientHelloTimeout,
			HeaderTimeout:      limits.HeaderTimeout,
			IdleTimeout:        limits.IdleTimeout,
		},
		Policy: h.policy(list),
	}
	h.start()
	t.Cleanup(h.stop)
	return h
}

func (h *house) start() {
	h.t.Helper()
	server, err := proxy.New(h.config)
	if err != nil {
		h.t.Fatalf("making server: %v", err)
	}
	l := h.listen()
	h.server, h.proxyAddr = server, l.Addr().String()
	go server.ServeProxy(l)
}

// restart ends the server and starts one with a changed configuration.
func (h *house) restart(change func(*proxy.Config)) {
	h.t.Helper()
	h.stop()
	change(&h.config)
	h.start()
}

// policy makes a policy of a rule list.
func (h *house) policy(list []any) *proxy.Policy {
	h.t.Helper()
	loaded := loadPolicy(h.t, list, h.more)
	set := rules.New(loaded.Rules)
	set.Adopt(h.rules)
	h.rules = set
	dialer := &netguard.Dialer{
		// No address is local: one of this machine's must not decide a case.
		Guard:    netguard.New(netguard.Config{Allow: loaded.Private}),
		Resolver: h.resolver,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if h.kernel != nil {
				return h.kernel(ctx, network, addr)
			}
			return h.origin.Dial(ctx, network, addr)
		},
	}
	texts := []string{}
	for _, rule := range loaded.Rules {
		texts = append(texts, rule.String())
	}
	page, err := json.Marshal(map[string]any{"rules": texts})
	if err != nil {
		h.t.Fatalf("making the page: %v", err)
	}
	return &proxy.Policy{Rules: set, Dial: dialer.DialContext, Roots: h.roots.Pool, Page: page,
		Broker: h.broker, MaxRequestBytes: loaded.Limits.MaxRequestBytes, Hash: "sha256:" + loaded.Hash}
}

func (h *house) listen() net.Listener {
	h.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatalf("listening: %v", err)
	}
	return l
}

// capture starts a captured listener whose clients dialled that address.
func (h *house) capture(dialled netip.AddrPort) string {
	l := h.listen()
	addr := l.Addr().String()
	go h.server.ServeCaptured(proxytest.Captured(l, dialled))
	return addr
}

// open leaves n connections without a byte.
func (h *house) open(n int, addr string) {
	for range n {
		h.opened = append(h.opened, h.dial(addr))
	}
}

func (h *house) dial(addr string) net.Conn {
	h.t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		h.t.Fatalf("dialling the proxy: %v", err)
	}
	h.opened = append(h.opened, c)
	return c
}

// dialQuietly is dial for goroutines: nil where it fails.
func (h *house) dialQuietly() net.Conn {
	c, err := net.DialTimeout("tcp", h.proxyAddr, 20*time.Second)
	if err != nil {
		return nil
	}
	return c
}

// trust is a pool that holds the session's authority alone.
func (h *house) trust() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(h.issuer.Certificate())
	return pool
}

func (h *house) stop() {
	for _, c := range h.opened {
		c.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := h.server.Shutdown(ctx); err != nil {
		h.t.Errorf("shutting down: %v", err)
	}
}

// memorySink keeps records in memory.
type memorySink struct {
	mu       sync.Mutex
	records  []audit.Record
	reserved int
	full     atomic.Bool // no room for another record
}

func (s *memorySink) Reserve(context.Context) error {
	if s.full.Load() {
		return &audit.Unavailable{Err: errors.New("no room")}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved++
	return nil
}

func (s *memorySink) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

func (s *memorySink) Append(records ...*audit.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		if r.Reserved {
			s.reserved--
		}
		s.records = append(s.records, *r)
	}
	return nil
}

// held is the number of reservations that no record has used.
func (s *memorySink) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserved
}

// of returns the records of that kind.
func (s *memorySink) of(kind audit.Kind) []audit.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.records), func(r audit.Record) bool { return r.Kind != kind })
}

// wait returns the records of that kind once there are n, at most after limit.
func (s *memorySink) wait(kind audit.Kind, n int, limit time.Duration) []audit.Record {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if list := s.of(kind); len(list) >= n || time.Now().After(end) {
			return list
		}
	}
}

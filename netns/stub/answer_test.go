//go:build linux

package stub

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

var prefix6 = netip.MustParsePrefix("fd65:6772:6573:7364::/64")

func newServer(t testing.TB, c Config) *Server {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// only knows these names.
func only(names ...string) func(string) bool {
	return func(host string) bool { return slices.Contains(names, host) }
}

func pack(t testing.TB, m dnsmessage.Message) []byte {
	t.Helper()
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func query(t testing.TB, name string, qtype dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	if err != nil {
		t.Fatal(err)
	}
	return dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 0x1234, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: qtype, Class: dnsmessage.ClassINET}},
	}
}

// ask returns the code, the address ("" for none) and its TTL.
func ask(t testing.TB, s *Server, name string, qtype dnsmessage.Type) (dnsmessage.RCode, string, uint32) {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(s.answer(pack(t, query(t, name, qtype)))); err != nil {
		t.Fatalf("%s %s: %v", name, qtype, err)
	}
	if m.ID != 0x1234 || !m.Response || !m.RecursionAvailable || !m.RecursionDesired || len(m.Questions) != 1 || m.Questions[0].Name.String() != name {
		t.Errorf("%s %s: %+v", name, qtype, m)
	}
	if len(m.Answers) == 0 {
		return m.RCode, "", 0
	}
	switch b := m.Answers[0].Body.(type) {
	case *dnsmessage.AResource:
		return m.RCode, netip.AddrFrom4(b.A).String(), m.Answers[0].Header.TTL
	case *dnsmessage.AAAAResource:
		return m.RCode, netip.AddrFrom16(b.AAAA).String(), m.Answers[0].Header.TTL
	}
	t.Errorf("%s %s: answer %v", name, qtype, m.Answers[0])
	return m.RCode, "", 0
}

func TestAnswers(t *testing.T) {
	s := newServer(t, Config{Knows: only("ok.test", "other.test", "10.0.0.1", "x.localhost"), IPv6: prefix6})
	const a, aaaa = dnsmessage.TypeA, dnsmessage.TypeAAAA
	tests := []struct {
		name  string
		qtype dnsmessage.Type
		addr  string
		ttl   uint32
	}{
		{"ok.test.", a, "198.18.0.3", 60},
		{"ok.test.", aaaa, "fd65:6772:6573:7364::3", 60},
		{"OK.Test.", a, "198.18.0.3", 60},
		{"other.test.", aaaa, "fd65:6772:6573:7364::4", 60},
		{"other.test.", a, "198.18.0.4", 60},
		{"ok.test.", a, "198.18.0.3", 60},
		{"x.evil.test.", a, "198.18.0.1", 1},
		{"x.evil.test.", aaaa, "fd65:6772:6573:7364::1", 1},
		{"localhost.", a, "127.0.0.1", 60},
		{"LocalHost.", aaaa, "::1", 60},
		{"x.localhost.", a, "127.0.0.1", 60},
		{"notlocalhost.", a, "198.18.0.1", 1},
		{"10.0.0.1.", a, "198.18.0.1", 1}, // an address is no name, whatever rules say of it
		{"*.ok.test.", a, "198.18.0.1", 1},
		{"o k.test.", a, "198.18.0.1", 1},
		{".", a, "", 0},
		{"ok.test.", dnsmessage.TypeMX, "", 0},
		{"ok.test.", dnsmessage.TypeTXT, "", 0},
		{"ok.test.", dnsmessage.TypeALL, "", 0},
		{"ok.test.", typeHTTPS, "", 0},
		{"ok.test.", typeSVCB, "", 0},
		{"1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, "", 0},
	}
	for _, tt := range tests {
		rcode, addr, ttl := ask(t, s, tt.name, tt.qtype)
		if rcode != dnsmessage.RCodeSuccess || addr != tt.addr || ttl != tt.ttl {
			t.Errorf("%s %s: got %s %s %d, want %s %d", tt.name, tt.qtype, rcode, addr, ttl, tt.addr, tt.ttl)
		}
	}
	for addr, want := range map[string]string{
		"198.18.0.3": "ok.test", "::ffff:198.18.0.3": "ok.test", "fd65:6772:6573:7364::4": "other.test", "198.18.0.1": "*", "fd65:6772:6573:7364::1": "*",
		"198.18.0.2": "", "198.18.0.0": "", "198.18.0.5": "", "198.19.255.255": "", "fd65:6772:6573:7364::2": "", "fd65:6772:6573:7364:1::3": "",
	} {
		if name, pool := s.Lookup(netip.MustParseAddr(addr)); name != want || !pool {
			t.Errorf("%s: %q %v, want %q", addr, name, pool, want)
		}
	}
	for _, addr := range []string{"198.17.255.255", "198.20.0.0", "127.0.0.1", "8.8.8.8", "fd65:6772:6573:7365::3", "::1"} {
		if name, pool := s.Lookup(netip.MustParseAddr(addr)); name != "" || pool {
			t.Errorf("%s is of the pool: %q", addr, name)
		}
	}
}

func TestWithoutIPv6(t *testing.T) {
	s := newServer(t, Config{Knows: only("ok.test")})
	for _, name := range []string{"ok.test.", "evil.test.", "localhost."} {
		if rcode, addr, _ := ask(t, s, name, dnsmessage.TypeAAAA); rcode != dnsmessage.RCodeSuccess || addr != "" {
			t.Errorf("%s: %s %s", name, rcode, addr)
		}
	}
	if _, pool := s.Lookup(netip.MustParseAddr("::3")); pool {
		t.Error("an IPv6 address is of a pool that is not there")
	}
	for _, bad := range []string{"10.0.0.0/8", "fd00::/97", "::ffff:0:0/96"} {
		if _, err := New(Config{IPv6: netip.MustParsePrefix(bad)}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// A name keeps its address when a reload takes its rule away, and gets one when
// a reload brings it.
func TestReload(t *testing.T) {
	known := true
	s := newServer(t, Config{Knows: func(string) bool { return known }})
	if _, addr, _ := ask(t, s, "a.test.", dnsmessage.TypeA); addr != "198.18.0.3" {
		t.Errorf("known: %s", addr)
	}
	known = false
	if _, addr, _ := ask(t, s, "a.test.", dnsmessage.TypeA); addr != "198.18.0.1" {
		t.Errorf("no longer known: %s", addr)
	}
	if name, _ := s.Lookup(netip.MustParseAddr("198.18.0.3")); name != "a.test" {
		t.Errorf("what was given out means %q", name)
	}
	known = true
	if _, addr, _ := ask(t, s, "a.test.", dnsmessage.TypeA); addr != "198.18.0.3" {
		t.Errorf("known again: %s", addr)
	}
}

func TestPoolUsedUp(t *testing.T) {
	var failed []string
	s := newServer(t, Config{Knows: only("a.test", "b.test", "c.test"), Event: func(name, qtype, verdict string, err error) {
		if verdict == Failed {
			failed = append(failed, fmt.Sprint(name, " ", qtype, " ", err))
		}
	}})
	s.table.size = firstIndex + 2
	want := []string{"198.18.0.3", "198.18.0.4", ""}
	for round := range 2 {
		for i, name := range []string{"a.test.", "b.test.", "c.test."} {
			rcode, addr, _ := ask(t, s, name, dnsmessage.TypeA)
			if addr != want[i] || (rcode == dnsmessage.RCodeServerFailure) != (i == 2) {
				t.Errorf("round %d, %s: %s %s", round, name, rcode, addr)
			}
		}
	}
	if _, addr, _ := ask(t, s, "evil.test.", dnsmessage.TypeA); addr != "198.18.0.1" {
		t.Errorf("the shared address is gone too: %s", addr)
	}
	if want := []string{"c.test A giving out an address: the pool is used up"}; !slices.Equal(failed, want) {
		t.Errorf("told of %q", failed)
	}
}

// Where a port that a rule names is held by the sandbox, the name is SERVFAIL
// until it is free.
func TestOpen(t *testing.T) {
	held := errors.New("address in use")
	var got []string
	var fail error = held
	s := newServer(t, Config{Knows: only("db.test"), IPv6: prefix6, Open: func(host string, addr4, addr6 netip.Addr) error {
		got = append(got, fmt.Sprint(host, " ", addr4, " ", addr6))
		return fail
	}})
	if rcode, addr, _ := ask(t, s, "db.test.", dnsmessage.TypeA); rcode != dnsmessage.RCodeServerFailure || addr != "" {
		t.Errorf("held: %s %s", rcode, addr)
	}
	fail = nil
	if rcode, addr, _ := ask(t, s, "db.test.", dnsmessage.TypeAAAA); rcode != dnsmessage.RCodeSuccess || addr != "fd65:6772:6573:7364::3" {
		t.Errorf("free: %s %s", rcode, addr)
	}
	ask(t, s, "evil.test.", dnsmessage.TypeA)
	ask(t, s, "localhost.", dnsmessage.TypeA)
	if want := "db.test 198.18.0.3 fd65:6772:6573:7364::3"; !slices.Equal(got, []string{want, want}) {
		t.Errorf("asked to open %q", got)
	}
}

func TestEvents(t *testing.T) {
	var got []string
	s := newServer(t, Config{Knows: only("ok.test"), Event: func(name, qtype, verdict string, err error) {
		got = append(got, strings.Join([]string{name, qtype, verdict}, " "))
	}})
	for range 2 {
		for _, q := range []struct {
			name  string
			qtype dnsmessage.Type
		}{
			{"ok.test.", dnsmessage.TypeA}, {"OK.test.", dnsmessage.TypeA}, {"ok.test.", dnsmessage.TypeAAAA}, {"evil.test.", dnsmessage.TypeA},
			{"ok.test.", typeHTTPS}, {"ok.test.", 9999}, {"ok.test.", dnsmessage.TypeALL}, {"localhost.", dnsmessage.TypeA}, {"a\n\"\\ü.test.", dnsmessage.TypeA}, {".", dnsmessage.TypeNS},
		} {
			ask(t, s, q.name, q.qtype)
		}
	}
	want := []string{"ok.test A given", "ok.test AAAA empty", "evil.test A shared", "ok.test HTTPS empty", "ok.test TYPE9999 empty", "ok.test ANY empty",
		"localhost A local", `a\010\034\092\195\188.test A shared`, ". NS empty"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// What is remembered is bounded; a name that was forgotten is told of again.
func TestSeenIsBounded(t *testing.T) {
	s := newSeen(1000)
	for n := range 100_000 {
		if !s.first(fmt.Sprint(n), "A", false) {
			t.Fatalf("%d was seen", n)
		}
	}
	if len(s.young) > 1000 || len(s.old) > 1000 {
		t.Errorf("%d and %d are remembered", len(s.young), len(s.old))
	}
	if s.first("99999", "A", false) || s.first("99500", "A", false) || !s.first("0", "A", false) {
		t.Error("the last are not remembered, or the first are")
	}
	if !s.first("99999", "AAAA", false) || !s.first("99999", "A", true) {
		t.Error("another type, or a failure, counts as the same")
	}
}

func TestConcurrent(t *testing.T) {
	s := newServer(t, Config{Knows: func(string) bool { return true }, IPv6: prefix6})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 500 {
				ask(t, s, fmt.Sprintf("n%d.test.", n), dnsmessage.TypeA)
				s.Lookup(at(Pool4, uint32(n)))
			}
		})
	}
	wg.Wait()
	owner := map[string]bool{}
	for n := range uint32(500) {
		name, _ := s.Lookup(at(Pool4, firstIndex+n))
		if name == "" || owner[name] {
			t.Fatalf("address %d: %q", n, name)
		}
		owner[name] = true
	}
}

func TestMalformed(t *testing.T) {
	s := newServer(t, Config{Knows: only("ok.test")})
	good := query(t, "ok.test.", dnsmessage.TypeA)
	with := func(change func(*dnsmessage.Message)) []byte {
		m := good
		m.Questions = slices.Clone(good.Questions)
		change(&m)
		return pack(t, m)
	}
	opt := func(ttl uint32) dnsmessage.Resource {
		return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: 4096, TTL: ttl}, Body: &dnsmessage.OPTResource{}}
	}
	plain := pack(t, good)
	loop := bytes.Clone(plain[:12])
	loop = append(loop, 0xc0, 12, 0, 1, 0, 1)
	tests := []struct {
		name  string
		msg   []byte
		rcode int // -1: no answer
	}{
		{"no header", plain[:11], -1},
		{"empty", nil, -1},
		{"an answer", with(func(m *dnsmessage.Message) { m.Response = true }), -1},
		{"no question", with(func(m *dnsmessage.Message) { m.Questions = nil }), 1},
		{"two questions", with(func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }), 1},
		{"cut off", plain[:len(plain)-1], 1},
		{"a name that points to itself", loop, 1},
		{"a label over 63", append(bytes.Clone(plain[:12]), 0x7f, 0), 1},
		{"additional records that are not there", func() []byte { m := bytes.Clone(plain); m[11] = 1; return m }(), 1},
		{"two OPT", with(func(m *dnsmessage.Message) { m.Additionals = []dnsmessage.Resource{opt(0), opt(0)} }), 1},
		{"another version of EDNS", with(func(m *dnsmessage.Message) { m.Additionals = []dnsmessage.Resource{opt(1 << 16)} }), 16},
		{"EDNS", with(func(m *dnsmessage.Message) { m.Additionals = []dnsmessage.Resource{opt(0)} }), 0},
		{"an update", with(func(m *dnsmessage.Message) { m.OpCode = 5 }), 4},
		{"another class", with(func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }), 0},
	}
	for _, tt := range tests {
		out := s.answer(tt.msg)
		if tt.rcode < 0 {
			if out != nil {
				t.Errorf("%s: answered", tt.name)
			}
			continue
		}
		var m dnsmessage.Message
		if err := m.Unpack(out); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		rcode := m.RCode
		for _, a := range m.Additionals {
			rcode = a.Header.ExtendedRCode(m.RCode)
		}
		if int(rcode) != tt.rcode || m.ID != 0x1234 || !m.Response {
			t.Errorf("%s: code %d, %+v", tt.name, rcode, m.Header)
		}
		if (len(m.Answers) > 0) != (tt.name == "EDNS") || (len(m.Additionals) > 0) != (tt.rcode == 16 || tt.name == "EDNS") {
			t.Errorf("%s: %v %v", tt.name, m.Answers, m.Additionals)
		}
	}
}

// Whatever comes in, nothing but an answer with its number goes out, in 512 bytes.
func FuzzAnswer(f *testing.F) {
	f.Add(pack(f, query(f, "ok.test.", dnsmessage.TypeA)))
	f.Add(pack(f, query(f, strings.Repeat(strings.Repeat("a", 61)+".", 4), dnsmessage.TypeAAAA)))
	m := query(f, "localhost.", dnsmessage.TypeAAAA)
	m.Additionals = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: 512}, Body: &dnsmessage.OPTResource{}}}
	f.Add(pack(f, m))
	s := newServer(f, Config{Knows: func(h string) bool { return len(h)%2 == 0 }, IPv6: prefix6, Event: func(name, qtype, verdict string, err error) {
		if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || qtype == "" || verdict == "" {
			panic(fmt.Sprintf("%q %q %q", name, qtype, verdict))
		}
	}})
	f.Fuzz(func(t *testing.T, msg []byte) {
		out := s.answer(msg)
		if out == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(out); err != nil {
			t.Fatalf("%x: %v", out, err)
		}
		if !m.Response || !bytes.Equal(out[:2], msg[:2]) || len(out) > 512 || len(m.Answers) > 1 {
			t.Fatalf("%x answers %x", out, msg)
		}
	})
}

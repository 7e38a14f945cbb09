package netguard

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestZeroRefuses(t *testing.T) {
	public, private := netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")
	if err := (*Guard)(nil).Check("a.test", public); err == nil {
		t.Error("a nil guard lets an address through")
	}
	if err := New(Config{}).Check("a.test", private); err == nil {
		t.Error("an empty config opens a private address")
	}
	if err := New(Config{Allow: Allow{All: true}}).Check("a.test", netip.Addr{}); err == nil {
		t.Error("the zero address passes")
	}
	if err := New(Config{Allow: Allow{All: true}}).CheckAll("a.test", nil); err == nil {
		t.Error("no answers pass")
	}
}

func TestRefusalHasReason(t *testing.T) {
	err := New(Config{}).Check("a.test", netip.MustParseAddr("64:ff9b::10.0.0.1"))
	var reason interface{ Reason() string }
	if !errors.As(err, &reason) || reason.Reason() != "private_address" {
		t.Fatalf("got %v", err)
	}
	if want := "dialling a.test: address 64:ff9b::a00:1, which holds 10.0.0.1, is not public (private)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// A zone changes nothing of what an address is.
func TestZone(t *testing.T) {
	for _, s := range []string{"fe80::1%eth0", "::ffff:127.0.0.1%lo", "fd00:ec2::254%eth0"} {
		if err := New(Config{Allow: Allow{All: true}}).Check("", netip.MustParseAddr(s)); err == nil {
			t.Errorf("%s passes", s)
		}
	}
}

// A range, a switch or a host opens no class that stays shut; a host opens what
// the switch would, for itself alone.
func TestShut(t *testing.T) {
	list, err := ParseAllow([]string{"0.0.0.0/0", "::/0", "any.corp.test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, allow := range []Allow{{All: true}, list} {
		g := New(Config{Allow: allow, Local: []netip.Addr{netip.MustParseAddr("10.0.0.9")}})
		for _, s := range []string{"0.0.0.0", "0.0.0.1", "127.0.0.1", "127.255.0.1", "::1", "::", "169.254.1.1", "169.254.169.254",
			"168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fe80::1", "224.0.0.1", "ff02::1",
			"255.255.255.255", "10.0.0.9", "2002:7f00:1::", "::ffff:0:127.0.0.1"} {
			if v := g.Judge("any.corp.test", netip.MustParseAddr(s)); v.Verdict != Blocked {
				t.Errorf("%s: %+v", s, v)
			}
		}
	}
}

func TestParseAllow(t *testing.T) {
	good := map[string]string{ // entry → the prefix or the host that it is
		"10.1.0.0/16":         "10.1.0.0/16",
		"192.168.1.10":        "192.168.1.10/32",
		"::ffff:10.1.0.0/112": "10.1.0.0/16",
		"::ffff:10.1.2.3":     "10.1.2.3/32",
		"fd12::/16":           "fd12::/16",
		"Reg.Corp.Test.":      "reg.corp.test",
		"nexus":               "nexus",
		"xn--bcher-kva.test":  "xn--bcher-kva.test",
		"_db.corp.test":       "_db.corp.test",
	}
	for in, want := range good {
		a, err := ParseAllow([]string{in})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got := strings.Join(a.Hosts, " ")
		if len(a.Prefixes) == 1 {
			got = a.Prefixes[0].String()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{"", ".", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "10.1.2.3/16", "10.0.0.0/33", "reg.corp.test/x",
		"*.corp.test", "*", "a..test", "-a.test", "a-.test", "bücher.test", "a.test:80", "10.0.0.1:80", "[::1]", "fe80::1%eth0",
		"::ffff:0:0/90", "a b", "10.0.0.0/", strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 130) + "test", "127。0。0。1"} {
		a, err := ParseAllow([]string{"ok.test", in})
		var entry *EntryError
		if !errors.As(err, &entry) || entry.Index != 1 || len(a.Hosts) != 0 {
			t.Errorf("%q: got %+v, %v", in, a, err)
		}
	}
}

// The lists given to New stay the caller's.
func TestConfigIsCopied(t *testing.T) {
	allow := Allow{Hosts: []string{"a.test"}}
	g := New(Config{Allow: allow})
	allow.Hosts[0] = "b.test"
	if err := g.Check("a.test", netip.MustParseAddr("10.0.0.1")); err != nil {
		t.Error(err)
	}
}

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now []netip.Addr
		var fail error
		g := New(Config{Refresh: func() ([]netip.Addr, error) { return now, fail }})
		a := netip.MustParseAddr("93.184.216.34")
		steps := []struct {
			what  string
			wait  time.Duration
			addrs []netip.Addr
			fail  error
			want  Outcome
		}{
			{"before this host has it", 0, nil, nil, Public},
			{"once this host has it", 6 * time.Second, []netip.Addr{a}, nil, Blocked},
			{"where the list cannot be read, the last one holds", 6 * time.Second, nil, errors.New("no"), Blocked},
			{"once it is gone", 6 * time.Second, nil, nil, Public},
		}
		for _, s := range steps {
			time.Sleep(s.wait)
			now, fail = s.addrs, s.fail
			if v := g.Judge("", a); v.Verdict != s.want {
				t.Errorf("%s: %+v", s.what, v)
			}
		}
	})
}

func TestLocalAddrs(t *testing.T) {
	addrs, err := LocalAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if a == netip.MustParseAddr("127.0.0.1") {
			return
		}
	}
	t.Errorf("127.0.0.1 is not among %v", addrs)
}

// An address is judged alike however it is written into IPv6, and nothing of
// this machine ever passes without being named.
func FuzzJudge(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "8.8.8.8", "::ffff:10.0.0.1", "2002:7f00:1::", "2001::", "64:ff9b::a9fe:a9fe", "fe80::1"} {
		a := netip.MustParseAddr(s)
		f.Add(a.AsSlice(), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, all bool) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		g := New(Config{Allow: Allow{All: all}})
		v := g.Judge("a.test", a)
		switch v.Verdict {
		case Blocked, Public, Opened:
		default:
			t.Fatalf("%s: no outcome: %+v", a, v)
		}
		if (v.Verdict == Blocked) != (v.Reason == "private_address") || (v.Verdict == Public) != (v.Class == PublicClass) {
			t.Fatalf("%s: %+v contradicts itself", a, v)
		}
		if v.Verdict == Opened && !all {
			t.Fatalf("%s: opened by nothing", a)
		}
		if u := a.Unmap(); v.Verdict == Public && (u.IsPrivate() || u.IsLoopback() || u.IsMulticast() || u.IsLinkLocalUnicast() || u.IsUnspecified()) {
			t.Fatalf("%s is called public", a)
		}
		if !a.Is4() {
			return
		}
		b := a.As4()
		for _, form := range [][16]byte{
			{10: 0xff, 11: 0xff, 12: b[0], 13: b[1], 14: b[2], 15: b[3]},
			{8: 0xff, 9: 0xff, 12: b[0], 13: b[1], 14: b[2], 15: b[3]},
			{1: 0x64, 2: 0xff, 3: 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]},
			{0: 0x20, 1: 0x02, 2: b[0], 3: b[1], 4: b[2], 5: b[3], 15: 1},
		} {
			w := g.Judge("a.test", netip.AddrFrom16(form))
			if w.Embedded != a || w.Verdict != v.Verdict || w.Class != v.Class {
				t.Fatalf("%s as %s: %+v, alone %+v", a, netip.AddrFrom16(form), w, v)
			}
		}
	})
}

func FuzzParseAllow(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "a.test", "127.1", "::ffff:10.0.0.1", "fe80::1%a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAllow([]string{s})
		if err != nil {
			return
		}
		if len(a.Prefixes)+len(a.Hosts) != 1 || a.All {
			t.Fatalf("%q: %+v", s, a)
		}
		for _, h := range a.Hosts {
			if _, err := netip.ParseAddr(h); err == nil {
				t.Fatalf("%q: address %s as a host", s, h)
			}
		}
	})
}

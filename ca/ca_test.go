package ca

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func issuer(t testing.TB, c Config) *Issuer {
	t.Helper()
	i, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func mustLeaf(t testing.TB, i *Issuer, host string) *x509.Certificate {
	t.Helper()
	cert, err := i.Leaf(host)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestSessionAuthority(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	c := issuer(t, Config{Now: func() time.Time { return now }}).Certificate()
	if !c.IsCA || c.MaxPathLen != 0 || !c.MaxPathLenZero {
		t.Errorf("authority %v, path length %d", c.IsCA, c.MaxPathLen)
	}
	if !c.NotBefore.Equal(now.Add(-time.Hour)) || c.NotAfter.Sub(c.NotBefore) != 397*24*time.Hour {
		t.Errorf("valid from %s for %s", c.NotBefore, c.NotAfter.Sub(c.NotBefore))
	}
	if c.PublicKeyAlgorithm != x509.ECDSA || len(c.SubjectKeyId) != 20 || !bytes.Equal(c.SubjectKeyId, c.AuthorityKeyId) {
		t.Errorf("%v, SKI %x, AKI %x", c.PublicKeyAlgorithm, c.SubjectKeyId, c.AuthorityKeyId)
	}
}

func TestLeaf(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	i := issuer(t, Config{Now: func() time.Time { return now }, LeafTTL: 6 * time.Hour})
	long := strings.Repeat("b", 70) + ".s3.test"
	for host, san := range map[string]string{
		"a.test": "a.test", "A.Test.": "a.test", long: long, "_svc.a.test": "_svc.a.test",
		"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "::ffff:192.0.2.7": "192.0.2.7",
	} {
		c := mustLeaf(t, i, host)
		got := strings.Join(c.DNSNames, " ")
		if len(c.IPAddresses) == 1 {
			got = c.IPAddresses[0].String()
		}
		if got != san || len(c.DNSNames)+len(c.IPAddresses) != 1 {
			t.Errorf("%s: names %v %v", host, c.DNSNames, c.IPAddresses)
		}
		if c.Subject.String() != "" {
			t.Errorf("%s: subject %q", host, c.Subject)
		}
		if !bytes.Equal(c.AuthorityKeyId, i.Certificate().SubjectKeyId) || len(c.SubjectKeyId) == 0 {
			t.Errorf("%s: AKI %x, the authority's SKI %x", host, c.AuthorityKeyId, i.Certificate().SubjectKeyId)
		}
		if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) || c.IsCA {
			t.Errorf("%s: usage %v, authority %v", host, c.ExtKeyUsage, c.IsCA)
		}
		if !c.NotBefore.Equal(now.Add(-time.Hour)) || !c.NotAfter.Equal(now.Add(6*time.Hour)) {
			t.Errorf("%s: valid from %s to %s", host, c.NotBefore, c.NotAfter)
		}
		critical := false
		for _, e := range c.Extensions {
			critical = critical || e.Critical && e.Id.String() == "2.5.29.17"
		}
		if !critical {
			t.Errorf("%s: subjectAltName is not critical", host)
		}
	}
	for _, bad := range []string{"", ".", "*", "*.a.test", "a..test", ".a.test", "a b", "a/b", "a\x00b", "[::1]", "fe80::1%eth0", "bücher.test", "a.test:443", strings.Repeat("a.", 127) + "test"} {
		if _, err := i.Leaf(bad); err == nil {
			t.Errorf("%q has a certificate", bad)
		}
	}
}

// Keys come from crypto/rand: two processes, or two issuers, share none.
func TestKeysDiffer(t *testing.T) {
	a, b := issuer(t, Config{}), issuer(t, Config{})
	if a.key.Equal(b.key) || bytes.Equal(a.Certificate().RawSubjectPublicKeyInfo, b.Certificate().RawSubjectPublicKeyInfo) {
		t.Error("two issuers share a key")
	}
	if x, y := mustLeaf(t, a, "a.test"), mustLeaf(t, b, "a.test"); x.SerialNumber.Cmp(y.SerialNumber) == 0 {
		t.Error("two leaves share a serial number")
	}
	if a.Certificate().Subject.String() == b.Certificate().Subject.String() {
		t.Error("two authorities share a name")
	}
}

func TestRenewal(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	start := now
	i := issuer(t, Config{Now: func() time.Time { return now }, LeafTTL: 4 * time.Hour})
	first := mustLeaf(t, i, "a.test")
	now = start.Add(3*time.Hour - time.Second)
	if again := mustLeaf(t, i, "a.test"); !again.Equal(first) {
		t.Error("renewed with more than a quarter of its life left")
	}
	now = start.Add(3 * time.Hour)
	if again := mustLeaf(t, i, "a.test"); again.Equal(first) || !again.NotAfter.Equal(now.Add(4*time.Hour)) {
		t.Errorf("not renewed: valid to %s", again.NotAfter)
	}
	// Near its end the authority bounds its leaves, and after it there are none.
	now = i.Certificate().NotAfter.Add(-time.Minute)
	if c := mustLeaf(t, i, "a.test"); !c.NotAfter.Equal(i.Certificate().NotAfter) {
		t.Errorf("valid to %s, the authority to %s", c.NotAfter, i.Certificate().NotAfter)
	}
	now = i.Certificate().NotAfter.Add(time.Minute)
	if _, err := i.Leaf("b.test"); err == nil {
		t.Error("an expired authority signs")
	}
	if len(i.slots) != i.order.Len() || i.slots["b.test"] != nil {
		t.Error("what failed is kept")
	}
}

// 200 first requests at once mint one leaf, and none waits 100 ms.
func TestSingleFlight(t *testing.T) {
	i := issuer(t, Config{})
	roots := i.UpstreamRoots()
	roots.AddCert(i.Certificate())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return i.Leaf(h.ServerName) }})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _ = c.(*tls.Conn).Handshake() }()
		}
	}()
	// The leaf alone: how long the last of 200 waits for it.
	var wg sync.WaitGroup
	took := make([]time.Duration, 200)
	certs := make([]*tls.Certificate, len(took))
	for n := range took {
		wg.Go(func() {
			start := time.Now()
			certs[n], _ = i.Leaf("new.test")
			took[n] = time.Since(start)
		})
	}
	wg.Wait()
	if got := i.Minted(); got != 1 {
		t.Errorf("%d leaves minted", got)
	}
	for _, c := range certs {
		if c == nil || c != certs[0] {
			t.Fatal("not everybody got the one leaf")
		}
	}
	slices.Sort(took)
	if p99 := took[len(took)*99/100]; p99 > 100*time.Millisecond {
		t.Errorf("p99 of the leaf: %s", p99)
	}
	// Handshakes of another new name, as many at a time as there are cores.
	var mu sync.Mutex
	took = took[:0]
	work := make(chan struct{})
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for range work {
				start := time.Now()
				c, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{ServerName: "other.test", RootCAs: roots})
				if err != nil {
					t.Error(err)
					continue
				}
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
				c.Close()
			}
		})
	}
	for range 200 {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	slices.Sort(took)
	if len(took) != 200 || took[198] > 100*time.Millisecond {
		t.Errorf("%d handshakes, p99 %s", len(took), took[max(len(took)-2, 0)])
	}
	if got := i.Minted(); got != 2 {
		t.Errorf("%d leaves minted in all", got)
	}
}

// However many names are asked for, the cache keeps to its size.
func TestCacheIsBounded(t *testing.T) {
	const names, size = 100_000, 500
	i := issuer(t, Config{CacheSize: size})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// Filling a slot costs a signature; what is bounded is the slots, so most
	// names take and drop theirs, and one in a hundred is minted.
	before := heap()
	for n := range names {
		name := fmt.Sprintf("n%d.w.test", n)
		if n%100 == 0 {
			mustLeaf(t, i, name)
			continue
		}
		s, mine := i.take(name, i.now())
		if !mine {
			t.Fatalf("%s was there", name)
		}
		close(s.done)
	}
	if i.order.Len() != size || len(i.slots) != size {
		t.Errorf("%d and %d of %d kept", i.order.Len(), len(i.slots), size)
	}
	if grown := int64(heap()) - int64(before); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	last := fmt.Sprintf("n%d.w.test", names-100)
	minted := i.Minted()
	mustLeaf(t, i, last)
	if i.Minted() != minted {
		t.Errorf("%s was used last and is gone", last)
	}
	mustLeaf(t, i, "n0.w.test")
	if i.Minted() != minted+1 {
		t.Error("the first name was kept")
	}
}

func FuzzLeafName(f *testing.F) {
	for _, s := range []string{"a.test", "192.0.2.1", "::1", "*.a", "a..b", "A.", "fe80::1%a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := leafName(s)
		if err != nil {
			return
		}
		if again, err := leafName(name); err != nil || again != name {
			t.Fatalf("%q becomes %q becomes %q, %v", s, name, again, err)
		}
		if a, err := netip.ParseAddr(name); err == nil && a.String() != name {
			t.Fatalf("%q: %q is not canonical", s, name)
		}
	})
}

func BenchmarkMint(b *testing.B) {
	i := issuer(b, Config{})
	now := time.Now()
	for b.Loop() {
		if _, err := i.mint("a.test", now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLeafCached(b *testing.B) {
	i := issuer(b, Config{})
	for b.Loop() {
		if _, err := i.Leaf("a.test"); err != nil {
			b.Fatal(err)
		}
	}
}

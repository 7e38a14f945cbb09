package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// networkProbes are those that need nothing inside.
func (r *runner) networkProbes() []func(context.Context) error {
	probes := []func(context.Context) error{r.probeDenied, r.probeRefused}
	if r.box.Transparent() {
		probes = append(probes, r.probeName)
	}
	return probes
}

// probeName asks the DNS stub for a name that no rule knows, dials the answer
// on 80 and 443, and wants the refusal; on 443 the certificate must verify.
func (r *runner) probeName(ctx context.Context) error {
	host := selfTestHost()
	addr, err := r.box.Resolve(ctx, host)
	if err != nil {
		return err
	}
	var plain, secure error
	var wg sync.WaitGroup
	wg.Go(func() { plain = r.probePlain(ctx, addr, host) })
	wg.Go(func() { secure = r.probeSecure(ctx, addr, host) })
	wg.Wait()
	return errors.Join(plain, secure)
}

func (r *runner) probePlain(ctx context.Context, addr netip.Addr, host string) error {
	c, err := r.box.Dial(ctx, "tcp", netip.AddrPortFrom(addr, 80).String())
	if err != nil {
		return fmt.Errorf("dialling the address of a name: %w", err)
	}
	return deniedBy(c, "/", host, "", "the captured port 80")
}

func (r *runner) probeSecure(ctx context.Context, addr netip.Addr, host string) error {
	c, err := r.box.Dial(ctx, "tcp", netip.AddrPortFrom(addr, 443).String())
	if err != nil {
		return fmt.Errorf("dialling the address of a name: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(r.sess.issuer.Certificate())
	t := tls.Client(c, &tls.Config{RootCAs: pool, ServerName: host, NextProtos: []string{"http/1.1"}, CurvePreferences: []tls.CurveID{tls.X25519}})
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		return fmt.Errorf("verifying the session's certificate: %w", err)
	}
	return deniedBy(t, "/", host, "", "the captured port 443")
}

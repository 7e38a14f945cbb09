package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/proxy"
	"github.com/egressd/egressd/rules"
)

// enforcement is one version of the policy made ready: what the proxy and the
// DNS stub ask. A reload makes another one.
type enforcement struct {
	policy *policy.Policy
	set    *rules.Set
	proxy  *proxy.Policy
	calls  *calls             // of the broker's own
	broker *credbroker.Broker // set by arm
}

// enforce makes a policy ready; set is compiled from its rules. Whatever it names and cannot be had is an
// error, so that a bad version never comes into force.
func enforce(p *policy.Policy, set *rules.Set, issuer *ca.Issuer, roots func() (*ca.Roots, error)) (*enforcement, error) {
	local, err := netguard.LocalAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the host's addresses: %w", err)
	}
	dialer := &netguard.Dialer{
		Guard:          netguard.New(netguard.Config{Allow: p.Private, Local: local, Refresh: netguard.LocalAddrs}),
		Pin:            p.Upstream.Resolve,
		ConnectTimeout: p.Upstream.Timeouts.Connect,
	}
	if dns := p.Upstream.DNS; dns != (netip.AddrPort{}) {
		resolver, err := netguard.NewResolver(dns.String())
		if err != nil {
			return nil, fmt.Errorf("using upstream.dns: %w", err)
		}
		dialer.Resolver = resolver
	}
	extra, err := ca.SystemRoots(p.Upstream.CAFiles, nil)
	if err != nil {
		return nil, fmt.Errorf("reading upstream.ca_files: %w", err)
	}
	certs, err := clientCertificates(p.Upstream.ClientCertificates)
	if err != nil {
		return nil, err
	}
	page, err := policyPage(p)
	if err != nil {
		return nil, err
	}
	pp := &proxy.Policy{
		Rules: set, Dial: dialer.DialContext, Holds: dialer.Holds,
		Roots:              sync.OnceValue(func() *x509.CertPool { return upstreamRoots(issuer, roots, extra) }),
		ClientCertificates: certs,
		MinUpstreamTLS:     tlsVersion(p.Upstream.MinTLS),
		UpstreamHTTP2:      p.Upstream.HTTP2,
		Timeouts: proxy.Timeouts{TLS: p.Upstream.Timeouts.TLS, ResponseHeader: p.Upstream.Timeouts.ResponseHeader,
			Idle: p.Upstream.Timeouts.Idle},
		MaxRequestBytes: p.Limits.MaxRequestBytes,
		Page:            page,
		Hash:            "sha256:" + p.Hash,
	}
	if p.Upstream.Proxy != nil {
		pp.UpstreamProxy = &proxy.UpstreamProxy{URL: p.Upstream.Proxy, NoProxy: p.Upstream.NoProxy, Check: checkNames(dialer)}
	}
	return &enforcement{policy: p, set: set, proxy: pp, calls: newCalls(p, dialer, pp.Roots, certs)}, nil
}

// checkNames judges what a corporate proxy is asked to connect to. A name that
// cannot be resolved here passes: behind such a proxy there often is no
// resolver, and what the proxy resolves is its word.
func checkNames(d *netguard.Dialer) func(context.Context, string) error {
	return func(ctx context.Context, addr string) error {
		if _, ok := d.Pin[addr]; ok {
			return nil
		}
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return fmt.Errorf("splitting %q: %w", addr, err)
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			return d.Guard.Check(host, ip)
		}
		_, err = d.Lookup(ctx, "ip", host)
		if refusal := (*netguard.Refusal)(nil); errors.As(err, &refusal) {
			return refusal
		}
		return nil
	}
}

func clientCertificates(pairs map[string]policy.KeyPair) (map[string]tls.Certificate, error) {
	certs := map[string]tls.Certificate{}
	for host, pair := range pairs {
		cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for %s: %w", host, err)
		}
		certs[host] = cert
	}
	return certs, nil
}

func tlsVersion(s string) uint16 {
	if s == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

// policyPage is what http://egressd.internal/policy answers inside: the rules
// in force without their notes, which are the operator's, and the ids of
// credentials. Canaries are not told of: who knows them does not touch them.
func policyPage(p *policy.Policy) ([]byte, error) {
	page := struct {
		Policy      string   `json:"policy"`
		Rules       []any    `json:"rules"`
		Credentials []string `json:"credentials"`
	}{Policy: "sha256:" + p.Hash, Rules: []any{}, Credentials: []string{}}
	for _, r := range p.Rules {
		r.Note = ""
		if m := r.Mapping(); len(m) > 1 {
			page.Rules = append(page.Rules, m)
		} else {
			page.Rules = append(page.Rules, r.String())
		}
	}
	for _, c := range p.Credentials {
		if !c.Canary {
			page.Credentials = append(page.Credentials, c.ID)
		}
	}
	data, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the policy page: %w", err)
	}
	return append(data, '\n'), nil
}

// upstreamRoots verify origins. A host whose roots cannot be read starts nothing
// (run and serve look); what is read later, at a reload, is the same.
func upstreamRoots(issuer *ca.Issuer, roots func() (*ca.Roots, error), extra *ca.Roots) *x509.CertPool {
	host, err := roots()
	if err != nil {
		host = nil
	}
	return issuer.UpstreamRoots(host, extra)
}

// hostRoots are the roots that this host trusts, and those that an inherited
// SSL_CERT_FILE or SSL_CERT_DIR names.
func hostRoots() (*ca.Roots, error) {
	files, folders := ca.HostRoots("/")
	if f := os.Getenv("SSL_CERT_FILE"); f != "" {
		files = append(files, f)
	}
	if d := os.Getenv("SSL_CERT_DIR"); d != "" {
		folders = append(folders, d)
	}
	roots, err := ca.SystemRoots(files, folders)
	if err != nil {
		return nil, fmt.Errorf("reading what this host trusts: %w", err)
	}
	return roots, nil
}

// newIssuer makes the authority: the session's own, or the operator's.
func newIssuer(t policy.TLS) (*ca.Issuer, error) {
	c := ca.Config{LeafTTL: t.LeafTTL}
	if t.CA != nil {
		var err error
		if c.Cert, err = os.ReadFile(t.CA.Cert); err != nil {
			return nil, fmt.Errorf("reading tls.ca: %w", err)
		}
		if c.Key, err = os.ReadFile(t.CA.Key); err != nil {
			return nil, fmt.Errorf("reading tls.ca: %w", err)
		}
	}
	return ca.New(c)
}

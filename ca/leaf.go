package ca

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// slot is the place of one name in the cache, taken before the leaf is there,
// so that others who ask meanwhile wait for it.
type slot struct {
	name  string
	renew time.Time // when it is too old to be handed out
	done  chan struct{}
	cert  *tls.Certificate // these two once done is closed
	err   error
}

// Leaf returns the certificate for host, a canonical name or an address without
// brackets, with its key. It is shared: not to be changed. The error says that
// host is neither, or that the authority has expired.
func (i *Issuer) Leaf(host string) (*tls.Certificate, error) {
	name, err := leafName(host)
	if err != nil {
		return nil, fmt.Errorf("minting a certificate for %q: %w", host, err)
	}
	now := i.now()
	s, mine := i.take(name, now)
	if mine {
		s.cert, s.err = i.mint(name, now)
		if s.err != nil {
			i.drop(s)
		}
		close(s.done)
	}
	<-s.done
	if s.err != nil {
		return nil, fmt.Errorf("minting a certificate for %q: %w", host, s.err)
	}
	return s.cert, nil
}

// take finds the slot of a name, or makes one that the caller has to fill.
func (i *Issuer) take(name string, now time.Time) (s *slot, mine bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e, ok := i.slots[name]; ok {
		if s := e.Value.(*slot); now.Before(s.renew) {
			i.order.MoveToFront(e)
			return s, false
		}
		i.order.Remove(e)
	}
	// A quarter of its life is left to a leaf that is still handed out, so that
	// no client meets one that ends under its hands.
	s = &slot{name: name, renew: now.Add(i.ttl - i.ttl/4), done: make(chan struct{})}
	i.slots[name] = i.order.PushFront(s)
	for i.order.Len() > i.size {
		last := i.order.Back()
		i.order.Remove(last)
		delete(i.slots, last.Value.(*slot).name)
	}
	return s, true
}

// drop takes a slot that could not be filled out again, so that the next who
// asks tries anew.
func (i *Issuer) drop(s *slot) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e, ok := i.slots[s.name]; ok && e.Value == s {
		i.order.Remove(e)
		delete(i.slots, s.name)
	}
}

func (i *Issuer) mint(name string, now time.Time) (*tls.Certificate, error) {
	if now.After(i.cert.NotAfter) {
		return nil, fmt.Errorf("the authority expired at %s", i.cert.NotAfter.Format(time.RFC3339))
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		NotBefore:             latest(now.Add(-backdate), i.cert.NotBefore),
		NotAfter:              earliest(now.Add(i.ttl), i.cert.NotAfter),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		SubjectKeyId:          i.keyID,
	}
	// With the subject empty, the subjectAltName is critical (RFC 5280, 4.2.1.6).
	if a, err := netip.ParseAddr(name); err == nil {
		template.IPAddresses = []net.IP{a.AsSlice()}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, &i.key.PublicKey, i.signer)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	i.minted.Add(1)
	cert := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: i.key}
	for _, c := range i.chain {
		if !selfIssued(c) {
			cert.Certificate = append(cert.Certificate, c.Raw)
		}
	}
	return cert, nil
}

// leafName checks that host is a thing that a certificate can name. It is no
// judge of names: labels over 63 characters are used by some buckets.
func leafName(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return "", errors.New("an address with a zone has no certificate")
		}
		return a.Unmap().String(), nil
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "" || len(name) > 253 {
		return "", errors.New("no host name")
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.Contains("."+name+".", "..") {
		return "", errors.New("no host name in its canonical, ASCII form")
	}
	return name, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Package ca makes the certificates with which egressd stands in for an origin,
// and the bundles that make programs in the sandbox trust them.
//
// An [Issuer] is one certificate authority and the leaves it signs. By default
// the authority is made for the session: an ECDSA P-256 key that never leaves
// memory, path length 0, so that nothing it signs can sign. tls.ca brings an
// authority of the operator's instead. Leaves name their host in the
// subjectAltName alone (RFC 9525, 6.3: the common name means nothing, and is at
// most 64 characters long), are minted once however many ask at a time, kept in
// a bounded cache and made anew before they expire.
//
// What programs trust is a matter of files: [SystemRoots] reads what the host
// trusts, [Roots.Bundle] adds the authority to it, [Truststore] makes of it
// what Java reads, [Places] and [JavaStores] say which files to replace, and
// [Variables] names the rest. [Issuer.UpstreamRoots] is the other side, what egressd itself
// trusts in origins: the host's roots, and never its own authority.
package ca

import (
	"container/list"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Config's zero fields.
const (
	DefaultLeafTTL   = 24 * time.Hour
	DefaultCacheSize = 2048
)

// backdate is how far before now a certificate's life begins, for clients whose
// clock is behind.
const backdate = time.Hour

// Config says which authority to use and how its leaves live.
type Config struct {
	// Now tells the time, time.Now if nil.
	Now func() time.Time
	// LeafTTL is how long a leaf is valid, DefaultLeafTTL if 0. The authority's
	// own end bounds it.
	LeafTTL time.Duration
	// CacheSize is how many leaves are kept, DefaultCacheSize if 0. A leaf is
	// some 2 KiB.
	CacheSize int
	// Cert and Key are tls.ca, in PEM: the authority's certificate, with those
	// above it behind, and its private key. Without either an authority is made.
	Cert, Key []byte
}

// Issuer signs leaves. It is safe for concurrent use.
type Issuer struct {
	now    func() time.Time
	ttl    time.Duration
	size   int
	signer crypto.Signer
	cert   *x509.Certificate // parsed: as a parent, a template gives an empty authority key id
	chain  []*x509.Certificate

	key    *ecdsa.PrivateKey // of every leaf
	keyID  []byte
	minted atomic.Uint64

	mu    sync.Mutex
	order *list.List // of *slot, the last used first
	slots map[string]*list.Element
}

// New makes an Issuer. Errors name what is wrong with Cert or Key.
func New(c Config) (*Issuer, error) {
	i := &Issuer{now: c.Now, ttl: c.LeafTTL, size: c.CacheSize, order: list.New(), slots: map[string]*list.Element{}}
	if i.now == nil {
		i.now = time.Now
	}
	if i.ttl <= 0 {
		i.ttl = DefaultLeafTTL
	}
	if i.size <= 0 {
		i.size = DefaultCacheSize
	}
	var err error
	if len(c.Cert) == 0 && len(c.Key) == 0 {
		i.signer, i.chain, err = session(i.now())
	} else {
		i.signer, i.chain, err = load(c.Cert, c.Key, i.now())
	}
	if err != nil {
		return nil, err
	}
	i.cert = i.chain[0]
	if i.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("making the key of leaves: %w", err)
	}
	i.keyID, err = keyID(&i.key.PublicKey)
	return i, err
}

// Certificate is the authority's certificate. Its NotAfter is the end of every
// leaf.
func (i *Issuer) Certificate() *x509.Certificate { return i.cert }

// PEM is the authority's certificate, and those that came with it, for a bundle.
func (i *Issuer) PEM() []byte {
	var out []byte
	for _, c := range i.chain {
		out = append(out, encode(c.Raw)...)
	}
	return out
}

// Minted counts the leaves that were signed.
func (i *Issuer) Minted() uint64 { return i.minted.Load() }

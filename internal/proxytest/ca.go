package proxytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// CA is the authority that the fake internet's servers have certificates of.
// It is never the proxy's own authority.
type CA struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	leaf   *ecdsa.PrivateKey
	mu     sync.Mutex
	leaves map[[2]string]*tls.Certificate
}

// NewCA makes an authority with keys of its own.
func NewCA(t testing.TB) *CA {
	t.Helper()
	key, leaf := newKey(t), newKey(t)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "proxytest authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("making test authority: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("making test authority: %v", err)
	}
	return &CA{cert: cert, key: key, leaf: leaf, leaves: map[[2]string]*tls.Certificate{}}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making test key: %v", err)
	}
	return key
}

// Pool is the pool that holds this authority alone.
func (c *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}

// PEM is the authority's certificate.
func (c *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
}

// File writes the authority's certificate to a file below the test's temporary
// folder and returns its path, for SSL_CERT_FILE and upstream.ca_files.
func (c *CA) File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "proxytest-ca.pem")
	if err := os.WriteFile(path, c.PEM(), 0o644); err != nil {
		t.Fatalf("writing test authority: %v", err)
	}
	return path
}

// Leaf returns a certificate for host, a name or an address. flaw is "" for a
// good one, or selfsigned, wrongname or expired.
func (c *CA) Leaf(host, flaw string) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if leaf := c.leaves[[2]string{host, flaw}]; leaf != nil {
		return leaf, nil
	}
	if flaw == "wrongname" {
		host = "wrong.invalid"
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(c.leaves)) + 2),
		NotBefore:    time.Now().Add(-48 * time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	parent, key := c.cert, c.key
	switch flaw {
	case "expired":
		template.NotAfter = time.Now().Add(-24 * time.Hour)
	case "selfsigned":
		parent, key = template, c.leaf
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &c.leaf.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leaf := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: c.leaf}
	c.leaves[[2]string{host, flaw}] = leaf
	return leaf, nil
}

// ServerConfig is a TLS configuration for a server that has a certificate, with
// the flaw, for whatever name it is asked for; fallback is the name or address
// where a client sends none.
func (c *CA) ServerConfig(fallback, flaw string, protocols ...string) *tls.Config {
	return &tls.Config{
		NextProtos: protocols,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			host := hello.ServerName
			if host == "" {
				host = fallback
			}
			return c.Leaf(host, flaw)
		},
	}
}

package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate for key, signed by parent (itself if nil).
func sign(t *testing.T, key crypto.Signer, parent *x509.Certificate, by crypto.Signer, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "Corp " + time.Now().String()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	if change != nil {
		change(c)
	}
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func keyPEM(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestOwnAuthority(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"ecdsa": ecKey(t), "rsa": rsaKey, "ed25519": edKey} {
		root := sign(t, key, nil, nil, nil)
		i := issuer(t, Config{Cert: encode(root.Raw), Key: keyPEM(t, key)})
		leaf := mustLeaf(t, i, "a.test")
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(i.PEM())
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: "a.test", Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if leaf.NotAfter.After(root.NotAfter) {
			t.Errorf("%s: the leaf outlives its authority", name)
		}
	}
}

// An authority below another sends itself along, since clients may trust only
// the one above.
func TestIntermediateAuthority(t *testing.T) {
	rootKey, key := ecKey(t), ecKey(t)
	root := sign(t, rootKey, nil, nil, nil)
	middle := sign(t, key, root, rootKey, nil)
	i := issuer(t, Config{Cert: append(encode(middle.Raw), encode(root.Raw)...), Key: keyPEM(t, key)})
	cert, err := i.Leaf("a.test")
	if err != nil {
		t.Fatal(err)
	}
	if len(cert.Certificate) != 2 {
		t.Errorf("%d certificates are sent, want the leaf and its issuer", len(cert.Certificate))
	}
	if count(i.PEM()) != 2 {
		t.Errorf("%d certificates for the bundle", count(i.PEM()))
	}
}

func TestUnusableAuthority(t *testing.T) {
	key, other := ecKey(t), ecKey(t)
	good := encode(sign(t, key, nil, nil, nil).Raw)
	changed := func(change func(*x509.Certificate)) []byte { return encode(sign(t, key, nil, nil, change).Raw) }
	weak, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		cert, key []byte
		want      string
	}{
		"a key without a certificate": {nil, keyPEM(t, key), "no CERTIFICATE"},
		"a certificate without a key": {good, nil, "no private key"},
		"another's key":               {good, keyPEM(t, other), "not the certificate's"},
		"no authority":                {changed(func(c *x509.Certificate) { c.IsCA = false; c.KeyUsage = x509.KeyUsageCertSign }), keyPEM(t, key), "basicConstraints"},
		"may not sign":                {changed(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }), keyPEM(t, key), "keyUsage"},
		"for clients only":            {changed(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), keyPEM(t, key), "extKeyUsage"},
		"expired":                     {changed(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), keyPEM(t, key), "expired"},
		"not yet valid":               {changed(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), keyPEM(t, key), "not valid before"},
		"an encrypted key":            {good, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: weak}), "encrypted"},
		"an old encrypted key":        {good, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: weak}), "encrypted"},
		"a broken certificate":        {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), keyPEM(t, key), "reading the certificate"},
		"a broken key":                {good, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), "reading the key"},
	}
	for name, tt := range tests {
		_, err := New(Config{Cert: tt.cert, Key: tt.key})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// sessionLife is the longest that any client takes. The key ends with the
// session, so the date protects nothing, and a session may last weeks.
const sessionLife = 397 * 24 * time.Hour

// session makes an authority whose key lives in this process alone.
func session(now time.Time) (crypto.Signer, []*x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the session's key: %w", err)
	}
	id, err := keyID(&key.PublicKey)
	if err != nil {
		return nil, nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// A name for each session: clients look issuers up by name, and two
		// authorities of one name would be taken for each other.
		Subject:               pkix.Name{Organization: []string{"egressd"}, CommonName: "egressd session " + hex.EncodeToString(id[:4])},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(-backdate).Add(sessionLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		SubjectKeyId:          id,
		AuthorityKeyId:        id,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the session's authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing the session's authority: %w", err)
	}
	return key, []*x509.Certificate{cert}, nil
}

// load reads an authority of the operator's and checks that what it signs can
// be believed: better to stop at the start than to fail in every client.
func load(certPEM, keyPEM []byte, now time.Time) (crypto.Signer, []*x509.Certificate, error) {
	chain, err := parseCertificates(certPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate of tls.ca: %w", err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key of tls.ca: %w", err)
	}
	if err := usable(chain[0], key, now); err != nil {
		return nil, nil, fmt.Errorf("checking tls.ca: %w", err)
	}
	return key, chain, nil
}

func usable(cert *x509.Certificate, key crypto.Signer, now time.Time) error {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(cert.PublicKey):
		return errors.New("the key is not the certificate's")
	case !cert.BasicConstraintsValid || !cert.IsCA:
		return errors.New("the certificate is no authority (basicConstraints)")
	case cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("the certificate may not sign others (keyUsage)")
	case len(cert.SubjectKeyId) == 0:
		return errors.New("the certificate has no subjectKeyIdentifier, which strict clients ask for (RFC 5280, 4.2.1.2)")
	case now.Before(cert.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", cert.NotBefore.Format(time.RFC3339))
	case now.After(cert.NotAfter):
		return fmt.Errorf("the certificate expired at %s", cert.NotAfter.Format(time.RFC3339))
	}
	if len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) > 0 &&
		!slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) && !slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny) {
		return errors.New("the certificate may not sign those of servers (extKeyUsage)")
	}
	if k, ok := key.(*rsa.PrivateKey); ok && k.N.BitLen() < 2048 {
		return fmt.Errorf("the key is RSA of %d bits; clients take 2048 at least", k.N.BitLen())
	}
	return nil
}

func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, errors.New("no CERTIFICATE in PEM form")
	}
	return certs, nil
}

func parseKey(data []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("it is encrypted, and nobody is there to type a password")
		default:
			continue // EC PARAMETERS stand in front of keys that openssl makes
		}
		if block.Headers["DEK-Info"] != "" {
			return nil, errors.New("it is encrypted, and nobody is there to type a password")
		}
		if err != nil {
			return nil, err
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("a %T signs nothing", key)
		}
		return signer, nil
	}
	return nil, errors.New("no private key in PEM form")
}

// keyID is a key identifier by RFC 7093, 2, method 1: 160 bits of the SHA-256
// of the public key.
func keyID(public *ecdsa.PublicKey) ([]byte, error) {
	point, err := public.Bytes()
	if err != nil {
		return nil, fmt.Errorf("writing a public key: %w", err)
	}
	sum := sha256.Sum256(point)
	return sum[:20], nil
}

// serialNumber is positive, not 0, and of 127 random bits (RFC 5280, 4.1.2.2).
func serialNumber() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}

// selfIssued says that a certificate is a root: nobody above it is to be sent.
func selfIssued(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }

package ca_test

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/ca"
)

func ExampleNew() {
	issuer, err := ca.New(ca.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	leaf, err := issuer.Leaf("api.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	cert, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(issuer.PEM())
	_, err = cert.Verify(x509.VerifyOptions{DNSName: "api.example.com", Roots: roots})
	fmt.Println(cert.DNSNames, err)
	// Output: [api.example.com] <nil>
}

func ExampleSystemRoots() {
	dir, err := os.MkdirTemp("", "roots")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	corporate, err := ca.New(ca.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	file := filepath.Join(dir, "corporate.pem")
	if err := os.WriteFile(file, corporate.PEM(), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	roots, err := ca.SystemRoots([]string{file}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := ca.New(ca.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	bundle := roots.Bundle(session.PEM()) // what programs inside are to trust
	fmt.Println(roots.Len(), len(bundle) == len(corporate.PEM())+len(session.PEM()))
	// Output: 1 true
}

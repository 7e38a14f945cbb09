package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// demoOrigin is the hidden command that plays api.example.test in the tour of
// `make run`: HTTPS on a loopback port, with a certificate of its own.
func demoOrigin() *cobra.Command {
	var caOut string
	cmd := &cobra.Command{
		Use: "demo-origin", Hidden: true, Args: cobra.NoArgs,
		Short: "play api.example.test for the tour",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			return serveDemo(ctx, cmd, caOut)
		},
	}
	cmd.Flags().StringVar(&caOut, "ca-out", "", "write the origin's CA certificate, as PEM, to this file")
	return cmd
}

// demoToken is what the tour hides from its sandbox. It opens nothing else.
const demoToken = "demo-token-that-only-egressd-and-the-origin-know"

func serveDemo(ctx context.Context, cmd *cobra.Command, caOut string) error {
	o, err := newOrigin(nil)
	if err != nil {
		return err
	}
	if caOut != "" {
		if err := os.WriteFile(caOut, o.ca, 0o644); err != nil {
			return fmt.Errorf("writing the origin's CA: %w", err)
		}
	}
	stop := context.AfterFunc(ctx, func() { o.close() })
	defer stop()
	if err := json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"listen": o.addr}); err != nil {
		return fmt.Errorf("saying where the origin listens: %w", err)
	}
	if err := o.serve(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving the origin: %w", err)
	}
	return nil
}

// demoHost is the origin's name. RFC 6761 sees to it that nobody has it.
const demoHost = "api.example.test"

// loopbackOrigin plays demoHost on a loopback port.
type loopbackOrigin struct {
	addr  string // host:port
	ca    []byte // its CA certificate, PEM
	serve func() error
	close func()
}

// newOrigin opens the port. seen is told of every request's path; nil: nobody
// is.
func newOrigin(seen func(path string)) (*loopbackOrigin, error) {
	cert, caPEM, err := demoCertificate()
	if err != nil {
		return nil, fmt.Errorf("making the origin's certificate: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the origin's port: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/whoami", func(w http.ResponseWriter, r *http.Request) {
		sent, who := r.Header.Get("Authorization"), "nobody"
		if sent == "Bearer "+demoToken {
			who = "the owner of the token"
		} else {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"you_are": who, "you_sent": sent})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen(r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		// An error here is a client that left: there is nobody to tell.
		_ = json.NewEncoder(w).Encode(map[string]string{"hello": "from " + demoHost, "method": r.Method, "path": r.URL.Path})
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0), // of clients that leave
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}}
	return &loopbackOrigin{addr: l.Addr().String(), ca: caPEM, serve: func() error { return srv.ServeTLS(l, "", "") }, close: func() { srv.Close() }}, nil
}

func demoCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "egressd demo origin"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		DNSNames: []string{demoHost}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

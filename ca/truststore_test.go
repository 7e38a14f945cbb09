package ca

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"software.sslmate.com/src/go-pkcs12"
)

// The truststore is, byte for byte, what go-pkcs12 makes of the same entries,
// for certificates of every length at which a head grows.
func TestTruststoreBytes(t *testing.T) {
	for _, sizes := range [][]int{{1}, {20, 21}, {90, 100, 127, 128, 129}, {200, 255, 256, 257}, {1200, 65535, 65536}, {70000, 300}, {1 << 24}} {
		r := &Roots{}
		var entries []pkcs12.TrustStoreEntry
		for _, n := range sizes {
			cert := make([]byte, n)
			for i := range cert {
				cert[i] = byte(rand.Uint32())
			}
			sum := sha256.Sum256(cert)
			r.texts = append(r.texts, rootText{der: cert})
			entries = append(entries, pkcs12.TrustStoreEntry{Cert: &x509.Certificate{Raw: cert}, FriendlyName: hex.EncodeToString(sum[:])})
		}
		want, err := pkcs12.Passwordless.EncodeTrustStoreEntries(entries, "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Truststore(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("certificates of %v bytes: %d bytes, want %d; they differ at %d: %x, want %x", sizes, len(got), len(want), i, got[max(0, i-4):min(len(got), i+40)], want[max(0, i-4):min(len(want), i+40)])
		}
		if cap(got) != len(got) {
			t.Errorf("certificates of %v bytes: room for %d bytes, %d used", sizes, cap(got), len(got))
		}
	}
}

package ca

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Places lists where hosts keep the bundle of the roots they trust. Inside the
// sandbox each that the host has is replaced.
func Places() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Gentoo, Alpine, NixOS
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
		"/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL: older path
		"/etc/pki/tls/cert.pem",                              // Fedora, RHEL: OpenSSL's default
		"/etc/ssl/ca-bundle.pem",                             // SUSE
		"/var/lib/ca-certificates/ca-bundle.pem",             // SUSE: the file behind it
		"/etc/ca-certificates/extracted/tls-ca-bundle.pem",   // Arch: the file behind it
		"/etc/ca-certificates/extracted/ca-bundle.trust.crt", // Arch: with OpenSSL's trust words
		"/etc/ssl/cert.pem",                                  // Alpine, OpenSSL's default, BSDs
		"/etc/ssl/certs/ca-bundle.crt",                       // NixOS, and Red Hat's compatibility link
		"/usr/share/ssl/certs/ca-bundle.crt",                 // old Red Hat
		"/usr/lib/ssl/cert.pem",                              // Debian: OPENSSLDIR
		"/etc/static/ssl/certs/ca-certificates.crt",          // NixOS: the file behind it
	}
}

// Folders lists where hosts keep roots in files of their own, named by the hash
// of their subject as c_rehash does.
func Folders() []string {
	return []string{"/etc/ssl/certs", "/etc/pki/tls/certs", "/usr/lib/ssl/certs"}
}

// HostRoots finds what the host below the folder root ("/" for this one) trusts:
// the first bundle that is there, and every folder. Both may be empty.
func HostRoots(root string) (files, dirs []string) {
	for _, place := range Places() {
		path := filepath.Join(root, place)
		if s, err := os.Stat(path); err == nil && s.Mode().IsRegular() && s.Size() > 0 {
			files = append(files, path)
			break
		}
	}
	for _, folder := range Folders() {
		path := filepath.Join(root, folder)
		if s, err := os.Stat(path); err == nil && s.IsDir() {
			dirs = append(dirs, path)
		}
	}
	return files, dirs
}

// hashed is how OpenSSL names a certificate in a folder: X509_NAME_hash and a
// running number. Other files there, a server's own certificate among them, are
// not trusted.
var hashed = regexp.MustCompile(`^[0-9a-f]{8}\.[0-9]+$`)

// SystemRoots reads the roots in files, and those in dirs that are named by
// their hash, each once and in that order. What is no certificate, or one that
// Go cannot parse, is left out. A file or folder that cannot be read is an
// error, and so are files without any root.
func SystemRoots(files, dirs []string) ([]byte, error) {
	set := newSet()
	for _, file := range files {
		n, err := set.addFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading roots: %w", err)
		}
		if n == 0 {
			return nil, fmt.Errorf("reading roots: %s holds no certificate", file)
		}
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("reading roots: %w", err)
		}
		for _, e := range entries {
			if !hashed.MatchString(e.Name()) {
				continue
			}
			// A link whose file was removed is common there, and no root.
			if _, err := set.addFile(filepath.Join(dir, e.Name())); err != nil && !os.IsNotExist(err) {
				return nil, fmt.Errorf("reading roots: %w", err)
			}
		}
	}
	return set.pem.Bytes(), nil
}

// Bundle is roots, as SystemRoots gave them, and the authority's PEM in one file,
// for programs in the sandbox. It does not parse them once more: this is on the
// way to the start of every command.
func Bundle(roots, authority []byte) []byte {
	out := bytes.Clone(roots)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n') // two blocks on one line are none
	}
	return append(out, authority...)
}

// UpstreamRoots is the pool that verifies origins: roots without this authority,
// so that nothing it signed is ever taken for an origin, and a certificate that
// leaked out of the sandbox proves nothing.
func (i *Issuer) UpstreamRoots(roots []byte) *x509.CertPool {
	pool := x509.NewCertPool()
	for block, rest := pem.Decode(roots); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && !bytes.Equal(c.RawSubjectPublicKeyInfo, i.cert.RawSubjectPublicKeyInfo) {
			pool.AddCert(c)
		}
	}
	return pool
}

// set collects certificates, each once, as PEM.
type set struct {
	seen map[[sha256.Size]byte]bool
	pem  bytes.Buffer
}

func newSet() *set { return &set{seen: map[[sha256.Size]byte]bool{}} }

func (s *set) addFile(path string) (found int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return s.add(data), nil
}

// add counts the certificates in data, also those that were there before.
func (s *set) add(data []byte) (found int) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		sum := sha256.Sum256(block.Bytes)
		if s.seen[sum] {
			found++
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			continue
		}
		found++
		s.seen[sum] = true
		s.pem.Write(encode(block.Bytes))
	}
	return found
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

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
	"runtime"
	"sync"
	"sync/atomic"
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

// Roots are certificates that are trusted, each once, parsed once: reading them
// is on the way to the start of every command.
type Roots struct {
	certs []*x509.Certificate
	pem   []byte
}

// PEM is the roots as one file.
func (r *Roots) PEM() []byte { return r.pem }

// Len is how many there are.
func (r *Roots) Len() int { return len(r.certs) }

// SystemRoots reads the roots in files, and those in dirs that are named by
// hash, each once and in that order. What is no certificate, or one that
// Go cannot parse, is left out. A file or folder that cannot be read is an
// error, and so are files without any root.
func SystemRoots(files, dirs []string) (*Roots, error) {
	sources, err := sourcesOf(files, dirs)
	if err != nil {
		return nil, err
	}
	// Most of the time goes into opening some hundred files and parsing what
	// is in them, so every core takes part.
	var p parser
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sources)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(sources)); i = next.Add(1) - 1 {
				sources[i].read(&p)
			}
		})
	}
	wg.Wait()
	r := &Roots{}
	seen := map[*x509.Certificate]bool{}
	var out bytes.Buffer
	for i, s := range sources {
		// A link whose file was removed is common in a folder, and no root.
		if s.err != nil && (i < len(files) || !os.IsNotExist(s.err)) {
			return nil, fmt.Errorf("reading roots: %w", s.err)
		}
		if i < len(files) && len(s.certs) == 0 {
			return nil, fmt.Errorf("reading roots: %s holds no certificate", s.path)
		}
		for _, c := range s.certs {
			if !seen[c] {
				seen[c] = true
				r.certs = append(r.certs, c)
				out.Write(encode(c.Raw))
			}
		}
	}
	r.pem = out.Bytes()
	return r, nil
}

// rootSource is one file of roots and what was found in it.
type rootSource struct {
	path  string
	certs []*x509.Certificate
	err   error
}

func sourcesOf(files, dirs []string) ([]rootSource, error) {
	var out []rootSource
	for _, f := range files {
		out = append(out, rootSource{path: f})
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("reading roots: %w", err)
		}
		for _, e := range entries {
			if hashed.MatchString(e.Name()) {
				out = append(out, rootSource{path: filepath.Join(dir, e.Name())})
			}
		}
	}
	return out, nil
}

func (s *rootSource) read(p *parser) {
	var data []byte
	if data, s.err = os.ReadFile(s.path); s.err == nil {
		s.certs = p.parse(data)
	}
}

// parser parses certificates, the same one once.
type parser struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]*x509.Certificate
}

func (p *parser) parse(data []byte) (certs []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		sum := sha256.Sum256(block.Bytes)
		p.mu.Lock()
		c := p.seen[sum]
		p.mu.Unlock()
		if c == nil {
			var err error
			if c, err = x509.ParseCertificate(block.Bytes); err != nil {
				continue
			}
			c = p.keep(sum, c)
		}
		certs = append(certs, c)
	}
	return certs
}

// keep returns the first certificate that was kept under its sum.
func (p *parser) keep(sum [sha256.Size]byte, c *x509.Certificate) *x509.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.seen[sum]; first != nil {
		return first
	}
	if p.seen == nil {
		p.seen = map[[sha256.Size]byte]*x509.Certificate{}
	}
	p.seen[sum] = c
	return c
}

// Bundle is roots and the authority's PEM in one file, for programs in the
// sandbox.
func Bundle(roots, authority []byte) []byte {
	out := bytes.Clone(roots)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n') // two blocks on one line are none
	}
	return append(out, authority...)
}

// UpstreamRoots is the pool that verifies origins: all these roots without this
// authority, so that nothing it signed is ever taken for an origin, and a
// certificate that leaked out of the sandbox proves nothing.
func (i *Issuer) UpstreamRoots(all ...*Roots) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, r := range all {
		if r == nil {
			continue
		}
		for _, c := range r.certs {
			if !bytes.Equal(c.RawSubjectPublicKeyInfo, i.cert.RawSubjectPublicKeyInfo) {
				pool.AddCert(c)
			}
		}
	}
	return pool
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

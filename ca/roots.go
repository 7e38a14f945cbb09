package ca

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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

// Roots are certificates that are trusted, each once. They are read at once and
// parsed when somebody asks for more than their text: reading is on the way to
// the start of every command, and programs inside only need the text.
type Roots struct {
	texts []rootText
	parse sync.Once
	certs []*x509.Certificate
}

// Bundle is the roots and more certificates, each a PEM, in one file for
// programs in the sandbox.
func (r *Roots) Bundle(more ...[]byte) []byte {
	size := 0
	for _, c := range r.texts {
		size += c.encodedLen()
	}
	for _, m := range more {
		size += len(m)
	}
	out := make([]byte, 0, size)
	for _, c := range r.texts {
		out = c.encode(out)
	}
	for _, m := range more {
		out = append(out, m...)
	}
	return out
}

// Len is how many there are.
func (r *Roots) Len() int { return len(r.texts) }

// Certificates are the roots that Go can parse.
func (r *Roots) Certificates() []*x509.Certificate {
	r.parse.Do(func() {
		parsed := make([]*x509.Certificate, len(r.texts))
		spread(len(r.texts), func(i int) {
			if c, err := x509.ParseCertificate(r.texts[i].der); err == nil {
				parsed[i] = c
			}
		})
		for _, c := range parsed {
			if c != nil {
				r.certs = append(r.certs, c)
			}
		}
	})
	return r.certs
}

// SystemRoots reads the roots in files, and those in dirs that are named by
// hash, each once and in that order. What is no certificate, a private key for
// one, is left out. A file or folder that cannot be read is an error, and so are
// files without any root.
func SystemRoots(files, dirs []string) (*Roots, error) {
	sources, err := sourcesOf(files, dirs)
	if err != nil {
		return nil, err
	}
	// Folders mostly hold what the bundle holds: what was seen there as text
	// need not be decoded again.
	named := slices.IndexFunc(sources, func(s rootSource) bool { return !s.whole })
	if named < 0 {
		named = len(sources)
	}
	spread(named, func(i int) { sources[i].read(nil) })
	known := newKnownTexts()
	for _, s := range sources[:named] {
		for _, c := range s.certs {
			known.add(c.text)
		}
	}
	spread(len(sources)-named, func(i int) { sources[named+i].read(known) })
	return join(sources)
}

// join puts together what was found, each certificate once.
func join(sources []rootSource) (*Roots, error) {
	count := 0
	for _, s := range sources {
		count += len(s.certs)
	}
	r := &Roots{texts: make([]rootText, 0, count)}
	seen := make(map[[sha256.Size]byte]bool, count)
	for _, s := range sources {
		// A link whose file was removed is common in a folder, and no root.
		if s.err != nil && (s.whole || !os.IsNotExist(s.err)) {
			return nil, fmt.Errorf("reading roots: %w", s.err)
		}
		if s.whole && len(s.certs) == 0 {
			return nil, fmt.Errorf("reading roots: %s holds no certificate", s.path)
		}
		for _, c := range s.certs {
			if sum := sha256.Sum256(c.der); !seen[sum] {
				seen[sum] = true
				r.texts = append(r.texts, c)
			}
		}
	}
	return r, nil
}

// spread calls f with 0 to n-1 on every core.
func spread(n int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	wg.Wait()
}

// rootSource is one file of roots and what was found in it.
type rootSource struct {
	path  string
	whole bool // named, so that it must be there and hold a root
	certs []rootText
	err   error
}

// sourcesOf lists the files to read, each file and folder once: an inherited
// variable often names what the system's own places are.
func sourcesOf(files, dirs []string) ([]rootSource, error) {
	var out []rootSource
	var seen []os.FileInfo
	again := func(path string) bool {
		info, err := os.Stat(path)
		if err != nil {
			return false // reading it says why
		}
		known := slices.ContainsFunc(seen, func(o os.FileInfo) bool { return os.SameFile(o, info) })
		seen = append(seen, info)
		return known
	}
	for _, f := range files {
		if !again(f) {
			out = append(out, rootSource{path: f, whole: true})
		}
	}
	for _, dir := range dirs {
		if again(dir) {
			continue
		}
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

// UpstreamRoots is the pool that verifies origins: all these roots without this
// authority, so that nothing it signed is ever taken for an origin, and a
// certificate that leaked out of the sandbox proves nothing.
func (i *Issuer) UpstreamRoots(all ...*Roots) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, r := range all {
		if r == nil {
			continue
		}
		for _, c := range r.Certificates() {
			if !bytes.Equal(c.RawSubjectPublicKeyInfo, i.cert.RawSubjectPublicKeyInfo) {
				pool.AddCert(c)
			}
		}
	}
	return pool
}

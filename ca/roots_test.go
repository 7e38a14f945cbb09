package ca

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the certificate, in PEM, of an authority of its own.
func root(t testing.TB) []byte { return issuer(t, Config{}).PEM() }

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func count(bundle []byte) int { return bytes.Count(bundle, []byte("-----BEGIN CERTIFICATE-----")) }

// rootsOf are the roots of one file.
func rootsOf(t *testing.T, bundle []byte) *Roots {
	t.Helper()
	path := t.TempDir() + "/roots.pem"
	put(t, path, bundle)
	roots, err := SystemRoots([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

// A corporate root that lies only in the hashed folder is trusted (T10), and so
// is one that SSL_CERT_FILE or upstream.ca_files names (T11).
func TestSystemRoots(t *testing.T) {
	host := t.TempDir()
	system, corporate, extra, server := root(t), root(t), root(t), root(t)
	put(t, host+"/etc/ssl/certs/ca-certificates.crt", append([]byte("# a comment\n"), system...))
	put(t, host+"/etc/ssl/certs/0a1b2c3d.0", corporate)
	put(t, host+"/etc/ssl/certs/11111111.0", system) // the same again, as it always is there
	put(t, host+"/etc/ssl/certs/ssl-cert-snakeoil.pem", server)
	put(t, host+"/extra.pem", append(extra, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})...))
	if err := os.Symlink("gone", host+"/etc/ssl/certs/22222222.0"); err != nil {
		t.Fatal(err)
	}
	files, dirs := HostRoots(host)
	if !slices.Equal(files, []string{host + "/etc/ssl/certs/ca-certificates.crt"}) || !slices.Equal(dirs, []string{host + "/etc/ssl/certs"}) {
		t.Fatalf("found %v and %v", files, dirs)
	}
	got, err := SystemRoots(append(files, host+"/extra.pem"), dirs)
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Concat(system, extra, corporate); !bytes.Equal(got.Bundle(), want) || got.Len() != 3 {
		t.Errorf("%d roots, want the system's, the extra one and the corporate one:\n%s", got.Len(), got.Bundle())
	}
	for _, bad := range []string{host + "/none.pem", host + "/empty.pem"} {
		put(t, host+"/empty.pem", nil)
		if _, err := SystemRoots([]string{bad}, nil); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if _, err := SystemRoots(nil, []string{host + "/none"}); err == nil {
		t.Error("a folder that is not there: no error")
	}
}

// However a file spells its certificates, and whichever way it is read, the
// bundle has each once, as others read it.
func TestRootsAreReadAlike(t *testing.T) {
	first, second := root(t), root(t)
	long := regexp.MustCompile(`(?m)^(\S{64})\n(\S{64})\n`).ReplaceAll(second, []byte("$1$2\n"))
	for name, file := range map[string][]byte{
		"plain":                         slices.Concat(first, second),
		"the same twice":                slices.Concat(first, second, first),
		"long lines":                    slices.Concat(first, long),
		"CR LF":                         bytes.ReplaceAll(slices.Concat(first, second), []byte("\n"), []byte("\r\n")),
		"no break at the end":           bytes.TrimSuffix(slices.Concat(first, second), []byte("\n")),
		"text before, between, after":   slices.Concat([]byte("CN=a\n"), first, []byte("\n# b\n"), second, []byte("c\n")),
		"a header":                      bytes.Replace(slices.Concat(first, second), []byte("CERTIFICATE-----\n"), []byte("CERTIFICATE-----\nX-Y: z\n\n"), 1),
		"a block of another kind":       slices.Concat(first, []byte("-----BEGIN X-----\nAAAA\n-----END X-----\n"), second),
		"a block that is none":          slices.Concat(first, []byte("-----BEGIN CERTIFICATE-----\nAA!A\n-----END CERTIFICATE-----\n"), second),
		"a block that does not end":     slices.Concat(first, second, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n")),
		"a block that is no sequence":   slices.Concat(first, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), second),
		"an empty block":                slices.Concat(first, []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), second),
		"longer than one read":          slices.Concat(first, second, bytes.Repeat(first, 20)),
		"plain, and more in the folder": first,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir+"/bundle.pem", file)
			put(t, dir+"/hashed/00000000.0", first)
			put(t, dir+"/hashed/00000001.0", second)
			got, err := SystemRoots([]string{dir + "/bundle.pem"}, []string{dir + "/hashed"})
			if err != nil {
				t.Fatal(err)
			}
			if want := slices.Concat(first, second); !bytes.Equal(got.Bundle(), want) || got.Len() != 2 {
				t.Errorf("%d roots:\n%s", got.Len(), got.Bundle())
			}
		})
	}
}

func TestHostRootsOfDistributions(t *testing.T) {
	for distribution, place := range map[string]string{
		"Debian": "/etc/ssl/certs/ca-certificates.crt", "Fedora": "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "Alpine": "/etc/ssl/cert.pem",
		"SUSE": "/etc/ssl/ca-bundle.pem", "Arch": "/etc/ca-certificates/extracted/tls-ca-bundle.pem", "NixOS": "/etc/ssl/certs/ca-bundle.crt",
	} {
		host := t.TempDir()
		put(t, host+place, root(t))
		if files, _ := HostRoots(host); !slices.Equal(files, []string{host + place}) {
			t.Errorf("%s: %v", distribution, files)
		}
	}
	if files, dirs := HostRoots(t.TempDir()); len(files)+len(dirs) != 0 {
		t.Errorf("nothing there: %v %v", files, dirs)
	}
}

func TestBundle(t *testing.T) {
	a, b := root(t), root(t)
	// A file that does not end in a line break must not glue two blocks together.
	roots := rootsOf(t, bytes.TrimSuffix(a, []byte("\n")))
	if got := roots.Bundle(b); !bytes.Equal(got, slices.Concat(a, b)) || cap(got) != len(got) {
		t.Errorf("got %s, with room for %d bytes more", got, cap(got)-len(got))
	}
	if got := (&Roots{}).Bundle(b); !bytes.Equal(got, b) {
		t.Errorf("without roots: %s", got)
	}
}

// The authority never verifies an origin, even where the host trusts it.
func TestUpstreamRootsLeaveTheAuthorityOut(t *testing.T) {
	i, other := issuer(t, Config{}), issuer(t, Config{})
	pool := i.UpstreamRoots(rootsOf(t, slices.Concat(other.PEM(), i.PEM())))
	if _, err := mustLeaf(t, i, "a.test").Verify(x509.VerifyOptions{DNSName: "a.test", Roots: pool}); err == nil {
		t.Error("a leaf of our own passes for an origin's")
	}
	if _, err := mustLeaf(t, other, "a.test").Verify(x509.VerifyOptions{DNSName: "a.test", Roots: pool}); err != nil {
		t.Errorf("another root is left out: %v", err)
	}
}

func TestTruststoreOfNothing(t *testing.T) {
	if _, err := Truststore(&Roots{}, nil); err == nil {
		t.Error("no error")
	}
}

func TestJavaStores(t *testing.T) {
	host := t.TempDir()
	put(t, host+"/etc/ssl/certs/java/cacerts", []byte("store"))
	put(t, host+"/opt/jdk-21/lib/security/cacerts", []byte("store"))
	put(t, host+"/usr/lib/jvm/java-8/jre/lib/security/cacerts", []byte("store"))
	put(t, host+"/home/ann/.sdkman/candidates/java/25/lib/security/cacerts", []byte("store"))
	put(t, host+"/home/ann/own/lib/security/cacerts", []byte("store"))
	link := func(to, at string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(host+at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, host+at); err != nil {
			t.Fatal(err)
		}
	}
	link("/etc/ssl/certs/java/cacerts", "/usr/lib/jvm/java-17/lib/security/cacerts") // absolute: from the host's root
	link("java-17", "/usr/lib/jvm/default-java")
	link("../../../../../../etc/ssl/certs/java/cacerts", "/usr/lib/jvm/java-21/lib/security/cacerts")
	link("loop", "/opt/loop")
	link("/gone", "/opt/broken/lib/security/cacerts")
	want := []string{
		"/etc/ssl/certs/java/cacerts",
		"/home/ann/.sdkman/candidates/java/25/lib/security/cacerts",
		"/home/ann/own/lib/security/cacerts",
		"/opt/jdk-21/lib/security/cacerts",
		"/usr/lib/jvm/java-8/jre/lib/security/cacerts",
	}
	if got := JavaStores(host, "/home/ann", []string{"/home/ann/own"}); !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	if got := JavaStores(t.TempDir(), "", nil); len(got) != 0 {
		t.Errorf("nothing there: %v", got)
	}
}

func TestVariables(t *testing.T) {
	got := Variables("/b.pem", "/certs")
	for _, kv := range []string{"SSL_CERT_FILE=/b.pem", "SSL_CERT_DIR=/certs", "GIT_SSL_CAINFO=/b.pem", "NODE_EXTRA_CA_CERTS=/b.pem", "CARGO_HTTP_CAINFO=/b.pem", "NODE_USE_ENV_PROXY=1", "npm_config_cafile=/b.pem"} {
		if !slices.Contains(got, kv) {
			t.Errorf("%s is missing", kv)
		}
	}
	if len(got) != 19 || !slices.IsSorted(got) {
		t.Errorf("%d variables: %v", len(got), got)
	}
}

func BenchmarkSystemRoots(b *testing.B) {
	files, dirs := HostRoots("/")
	for b.Loop() {
		if _, err := SystemRoots(files, dirs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBundleAndTruststore(b *testing.B) {
	files, dirs := HostRoots("/")
	i, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	authority := i.Certificate()
	for b.Loop() {
		roots, err := SystemRoots(files, dirs)
		if err != nil {
			b.Fatal(err)
		}
		roots.Bundle(i.PEM())
		if _, err := Truststore(roots, authority); err != nil {
			b.Fatal(err)
		}
	}
}

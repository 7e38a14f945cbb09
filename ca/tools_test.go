package ca

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// These tests ask the tools themselves: what Go's own verifier accepts is not
// what they do.

var (
	longHost  = strings.Repeat("b", 63) + ".s3.test" // over 64 characters, which a common name cannot hold
	longLabel = strings.Repeat("b", 70) + ".s3.test"
)

func tool(t *testing.T, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: apt-get install %s", name, install)
	}
	return path
}

// run runs a tool without the trust variables of this machine.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		if !strings.Contains(key, "SSL") && !strings.Contains(key, "_CA_") && key != "JAVA_TOOL_OPTIONS" {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve is a TLS server on loopback whose certificates are the issuer's; a
// client that sends no name gets the one for fallback. It returns the port.
func serve(t *testing.T, i *Issuer, fallback string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if h.ServerName == "" {
			return i.Leaf(fallback)
		}
		return i.Leaf(h.ServerName)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				if n, _ := c.Read(buf); n > 0 { // a request: clients that only shake hands say nothing
					_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
				}
			}()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestOpenSSLStrict(t *testing.T) {
	openssl := tool(t, "openssl", "openssl")
	i := issuer(t, Config{})
	root := write(t, "ca.pem", i.PEM())
	for _, host := range []string{"a.test", longHost, longLabel, "192.0.2.1", "2001:db8::1"} {
		cert, err := i.Leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		flag := "-verify_hostname"
		if strings.Contains(host, ":") || strings.HasPrefix(host, "192.") {
			flag = "-verify_ip"
		}
		leaf := write(t, "leaf.pem", encode(cert.Certificate[0]))
		out := run(t, openssl, "verify", "-x509_strict", "-purpose", "sslserver", flag, host, "-CAfile", root, "-no-CApath", leaf)
		if !strings.Contains(out, ": OK") {
			t.Errorf("%s: %s", host, out)
		}
	}
	// The path length holds: a leaf's key signs no authority.
	if text := run(t, openssl, "x509", "-in", root, "-noout", "-text"); !strings.Contains(text, "pathlen:0") {
		t.Errorf("no path length in\n%s", text)
	}
}

func TestPythonStrict(t *testing.T) {
	python := tool(t, "python3", "python3")
	i := issuer(t, Config{})
	bundle := write(t, "bundle.pem", i.PEM())
	hosts := []string{"a.test", longHost, "127.0.0.1", "::1", "-"}
	for _, host := range hosts {
		// An address is never in SNI (RFC 6066, 3): the server knows it otherwise.
		out := run(t, python, "testdata/get.py", bundle, serve(t, i, strings.Replace(host, "-", "a.test", 1)), host)
		if strings.TrimSpace(out) != "ok "+host {
			t.Errorf("%s: %s", host, out)
		}
	}
}

func TestCurl(t *testing.T) {
	curl := tool(t, "curl", "curl")
	i := issuer(t, Config{})
	bundle := write(t, "bundle.pem", i.PEM())
	for _, host := range []string{"a.test", longHost} {
		port := serve(t, i, host)
		out := run(t, curl, "-sS", "--cacert", bundle, "--noproxy", "*", "--resolve", host+":"+port+":127.0.0.1", "--max-time", "5",
			"-o", os.DevNull, "-w", "%{http_code} %{ssl_verify_result}", "https://"+host+":"+port+"/")
		if out != "204 0" {
			t.Errorf("%s: %s", host, out)
		}
	}
}

func TestJavaTruststore(t *testing.T) {
	java := tool(t, "java", "openjdk-17-jdk-headless")
	javac := tool(t, "javac", "openjdk-17-jdk-headless")
	i := issuer(t, Config{})
	files, dirs := HostRoots("/")
	roots, err := SystemRoots(files, dirs)
	if err != nil {
		t.Fatal(err)
	}
	store, err := Truststore(roots, i.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	path, classes := write(t, "cacerts", store), t.TempDir()
	run(t, javac, "-d", classes, "testdata/Get.java")
	port := serve(t, i, "127.0.0.1")
	out := run(t, java, "-Djavax.net.ssl.trustStore="+path, "-cp", classes, "Get", port, "a.test", longHost, "127.0.0.1")
	if want := "ok a.test\nok " + longHost + "\nok 127.0.0.1\n"; out != want {
		t.Errorf("got %s", out)
	}
}

// Every JDK of this machine, with no option given: the store is bound over those
// that JavaStores finds, as netns does it.
func TestJavaDefaultStores(t *testing.T) {
	bwrap := tool(t, "bwrap", "bubblewrap")
	javac := tool(t, "javac", "openjdk-17-jdk-headless")
	i := issuer(t, Config{})
	store, err := Truststore(&Roots{}, i.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	path, classes := write(t, "cacerts", store), t.TempDir()
	run(t, javac, "--release", "17", "-d", classes, "testdata/Get.java")
	args := []string{"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	stores := JavaStores("/", "", nil)
	for _, s := range stores {
		args = append(args, "--ro-bind", path, s)
	}
	jdks, err := filepath.Glob("/usr/lib/jvm/*/bin/java")
	if err != nil || len(stores) == 0 || len(jdks) == 0 {
		t.Fatalf("stores %v, JDKs %v, %v: apt-get install openjdk-17-jdk-headless", stores, jdks, err)
	}
	seen := map[string]bool{} // most are links to each other
	for _, java := range jdks {
		real, err := filepath.EvalSymlinks(java)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		port := serve(t, i, "a.test")
		out := run(t, bwrap, append(args[:len(args):len(args)], "--", java, "-cp", classes, "Get", port, "a.test")...)
		if out != "ok a.test\n" {
			t.Errorf("%s: %s", java, out)
		}
	}
}

// The variables are enough for tools that bring roots of their own.
func TestVariablesReachTools(t *testing.T) {
	i := issuer(t, Config{})
	bundle := write(t, "bundle.pem", i.PEM())
	variables := Variables(bundle, t.TempDir())
	port := serve(t, i, "a.test")
	byIP := "https://127.0.0.1:" + serve(t, i, "127.0.0.1") + "/"
	tests := []struct {
		name, install string
		args          []string
		want          string // in the output
	}{
		{"python3", "python3", []string{"-c", "import urllib.request as u; print(u.urlopen('" + byIP + "').status)"}, "204"},
		{"node", "nodejs", []string{"-e", "require('https').get({host:'127.0.0.1',port:" + port + ",servername:'a.test'},r=>console.log(r.statusCode))"}, "204"},
		{"curl", "curl", []string{"-sS", "-o", os.DevNull, "-w", "%{http_code}", byIP}, "204"},
		{"openssl", "openssl", []string{"s_client", "-connect", "127.0.0.1:" + port, "-servername", "a.test", "-verify_return_error", "-brief", "-no-CApath", "-CAfile", bundle}, "Verification: OK"},
		{"git", "git", []string{"ls-remote", byIP + "r.git"}, ""}, // 204 is an empty list to it
	}
	for _, tt := range tests {
		path := tool(t, tt.name, tt.install)
		cmd := exec.CommandContext(t.Context(), path, tt.args...)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_PROXY=*"}, variables...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v\n%s", tt.name, err, out)
		}
	}
}

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
	"golang.org/x/net/dns/dnsmessage"
)

// The ordinary user of the cases.
const (
	annUID  = 4242
	annName = "ann"
)

// sandboxHost is the host of the cases, made inside the test's own namespaces:
// homes, temporary folders and /run on fresh file systems, a user, a resolver
// that notes what it is asked, and an origin.
type sandboxHost struct {
	bin    string
	ca     *proxytest.CA
	caFile string
	https  string
	http   string

	mu    sync.Mutex
	asked []string
	body  map[string]string
	got   map[string]int64
}

func newSandboxHost(t *testing.T) *sandboxHost {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("the cases run as root and as an ordinary user: run the tests as root")
	}
	// Terminals of our own: those of the host are read-only here.
	if err := proxytest.Mount("devpts", "/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0666"); err != nil {
		t.Fatalf("mounting /dev/pts: %v", err)
	}
	if err := proxytest.Mount("/dev/pts/ptmx", "/dev/ptmx", "", ""); err != nil {
		t.Fatalf("mounting /dev/ptmx: %v", err)
	}
	data, err := os.ReadFile(os.Getenv(binaryVariable))
	if err != nil {
		t.Fatalf("reading the binary: %v", err)
	}
	for _, dir := range []string{"/home", "/tmp", "/run", "/srv", "/var/tmp", "/dev/shm"} {
		mode := "mode=755"
		if strings.HasSuffix(dir, "tmp") || dir == "/dev/shm" {
			mode = "mode=1777"
		}
		if err := proxytest.Mount("tmpfs", dir, "tmpfs", mode); err != nil {
			t.Fatalf("mounting %s: %v", dir, err)
		}
	}
	// The folder of control sockets stays where it was made, so that nobody else
	// takes its name: here as on any host where egressd has run before.
	control := fmt.Sprintf("/tmp/egressd-%d", annUID)
	if err := errors.Join(os.Mkdir(control, 0o700), os.Chown(control, annUID, annUID)); err != nil {
		t.Fatal(err)
	}
	// The test's own temporary folder lies hidden now; this process is the
	// namespace's alone.
	os.Setenv("TMPDIR", "/srv")
	h := &sandboxHost{bin: "/srv/egressd", caFile: "/srv/origin-ca.pem", body: map[string]string{}, got: map[string]int64{}}
	h.write(t, h.bin, data, 0o755)
	h.over(t, "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"+fmt.Sprintf("%s:x:%d:%d:Ann:/home/%s:/bin/sh\n", annName, annUID, annUID, annName))
	h.over(t, "/etc/group", "root:x:0:\n"+fmt.Sprintf("%s:x:%d:\n", annName, annUID))
	h.over(t, "/etc/resolv.conf", "nameserver 127.0.0.1\n")
	h.resolver(t)
	ca := proxytest.NewCA(t)
	h.ca = ca
	h.write(t, h.caFile, ca.PEM(), 0o644)
	h.https = h.serve(t, &http.Server{Handler: h, TLSConfig: ca.ServerConfig("ok.test", "", "h2", "http/1.1")})
	h.http = h.serve(t, &http.Server{Handler: h})
	return h
}

func (h *sandboxHost) write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// over lays text over a file of the real host, in this namespace alone.
func (h *sandboxHost) over(t *testing.T, path, text string) {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("/srv", strings.ReplaceAll(path, "/", "_"))
	h.write(t, file, []byte(text), 0o644)
	if err := proxytest.Mount(file, real, "", ""); err != nil {
		t.Fatalf("laying %s over %s: %v", file, real, err)
	}
}

// resolver answers every question with NXDOMAIN and notes the name.
func (h *sandboxHost) resolver(t *testing.T) {
	t.Helper()
	answerDNS(t, "127.0.0.1:53", func(m *dnsmessage.Message) {
		h.mu.Lock()
		h.asked = append(h.asked, strings.TrimSuffix(m.Questions[0].Name.String(), "."))
		h.mu.Unlock()
		m.Header.RCode = dnsmessage.RCodeNameError
	})
}

// answerDNS serves DNS at an address, and says where: answer makes a question
// the answer to it.
func answerDNS(t *testing.T, addr string, answer func(*dnsmessage.Message)) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Header.Response, m.Additionals = true, nil
			answer(&m)
			if out, err := m.Pack(); err == nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	}()
	return pc.LocalAddr().String()
}

func (h *sandboxHost) serve(t *testing.T, srv *http.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	if srv.TLSConfig != nil {
		l = tls.NewListener(l, srv.TLSConfig)
	}
	go func() { _ = srv.Serve(l) }()
	return l.Addr().String()
}

// ServeHTTP is every origin of a case: its body by the name that was asked for.
func (h *sandboxHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = r.Host
	}
	h.mu.Lock()
	h.got[name] += n
	body := h.body[name]
	h.mu.Unlock()
	_, _ = io.WriteString(w, body)
}

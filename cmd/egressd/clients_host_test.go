package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// clientsHost is the host of the client tests: that of the sandbox cases, with
// an internet of the services that real clients speak to.
type clientsHost struct {
	*sandboxHost
	table    string // docs/clients.md
	ca       *proxytest.CA
	site     *proxytest.Site
	services string // address of the TLS server for every other name
	db, raw  string // addresses of what only tunnels lead to
	tarball  []byte // of the npm package
	wheel    []byte

	sent    atomic.Int64 // bytes of bodies that git's server was sent
	chunked atomic.Int64 // requests without a length among them
}

// clientRules are in force in every run of a client.
var clientRules = []string{
	"* ok.test/pub/**", "GET ok.test/ws", "PUT ok.test/sink",
	"POST ok.test/proxytest.Echo/Once",
	"* git.test/r.git/**",
	"* npm.test/**", "!* npm.test/forbidden",
	"GET pypi.test/simple/tiny/", "GET pypi.test/simple/locked/", "GET pypi.test/files/tiny-*",
	"GET " + longName + "/pub/**",
	"CONNECT db.test:5432", "CONNECT raw.test:7000",
}

// longName is longer than a common name in a certificate may be (FAULTS.md T4).
const longName = "a-bucket-with-a-name-that-is-long.and-a-region-with-a-longer-one.s3.test"

func newClientsHost(t *testing.T) *clientsHost {
	t.Helper()
	// Both are read before the folders of the host are laid over.
	program, err := os.ReadFile(os.Getenv(clientVariable))
	if err != nil {
		t.Fatalf("reading the client program: %v", err)
	}
	table, err := os.ReadFile(os.Getenv(tableVariable))
	if err != nil {
		t.Fatalf("reading the table of clients: %v", err)
	}
	h := &clientsHost{sandboxHost: newSandboxHost(t), ca: proxytest.NewCA(t), table: string(table)}
	h.write(t, h.caFile, h.ca.PEM(), 0o644)
	h.site = proxytest.NewSite(t, h.ca)
	h.services = h.serve(t, &http.Server{Handler: http.HandlerFunc(h.service), TLSConfig: h.ca.ServerConfig("ok.test", "", "h2", "http/1.1")})
	h.db = h.banner(t, "220 db ready\n", h.ca.ServerConfig("db.test", ""))
	h.raw = h.banner(t, "220 raw ready\n", nil)
	h.tarball, h.wheel = npmTarball(t), pipWheel(t)
	for _, dir := range []string{"/srv/git", "/srv/record"} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range clientUsers {
		dir := filepath.Join("/home", u.name, "proj")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		h.write(t, filepath.Join(dir, "origin-ca.pem"), h.ca.PEM(), 0o644)
		h.write(t, filepath.Join(dir, "client"), program, 0o755)
		for _, p := range []string{filepath.Dir(dir), dir} {
			if err := os.Chown(p, u.uid, u.uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h
}

// policy is the text of the policy of a run, with further keys of the sandbox.
func (h *clientsHost) policy(t *testing.T, sandbox map[string]any) string {
	t.Helper()
	box := map[string]any{"type": "linux_bwrap", "egress_rules": clientRules}
	for k, v := range sandbox {
		box[k] = v
	}
	resolve := map[string]string{"ok.test:443": h.site.TLS, "ok.test:80": h.site.Plain, longName + ":443": h.site.TLS,
		"db.test:5432": h.db, "raw.test:7000": h.raw}
	for _, name := range []string{"git.test", "npm.test", "pypi.test"} {
		resolve[name+":443"] = h.services
	}
	data, err := json.Marshal(map[string]any{"sandbox": box, "upstream": map[string]any{"resolve": resolve, "ca_files": []string{h.caFile}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// clientUser is who runs egressd.
type clientUser struct {
	name string
	uid  int
}

var clientUsers = []clientUser{{annName, annUID}, {"root", 0}}

func (u clientUser) credential() *syscall.Credential {
	if u.uid == 0 {
		return nil
	}
	return &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}
}

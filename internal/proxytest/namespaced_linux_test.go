package proxytest

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// What the test of a sandbox may break is its own folder, and it reaches
// nobody.
func TestNamespaced(t *testing.T) {
	Namespaced(t, func(t *testing.T, dir string) {
		if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
			t.Errorf("writing in the folder: %v", err)
		}
		if f, err := os.CreateTemp("", "x"); err != nil || filepath.Dir(f.Name()) != dir {
			t.Errorf("temporary file: %v", err)
		}
		for _, path := range []string{"/", "/tmp", "/etc", "/usr", "/dev/shm", "/run", "/var/tmp", "/sys/fs/cgroup", "/root"} {
			name := filepath.Join(path, "proxytest-must-not-be")
			if err := os.WriteFile(name, nil, 0o600); err == nil {
				t.Errorf("%s was written", name)
				os.Remove(name)
			}
		}
		if null, err := os.OpenFile("/dev/null", os.O_WRONLY, 0); err != nil {
			t.Errorf("opening /dev/null: %v", err)
		} else {
			null.Close()
		}
		ifaces, err := net.Interfaces()
		if err != nil || len(ifaces) != 1 || ifaces[0].Name != "lo" {
			t.Errorf("interfaces %v, %v", ifaces, err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:80")
		if err != nil {
			t.Fatalf("listening inside: %v", err)
		}
		l.Close()
		pids, err := filepath.Glob("/proc/[0-9]*")
		if err != nil || len(pids) != 1 {
			t.Errorf("processes %v, %v", pids, err)
		}
	})
}

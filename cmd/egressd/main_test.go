package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaryVariable hands the built binary on to copies of the test binary that
// run in namespaces of their own.
const binaryVariable = "EGRESSD_TEST_BINARY"

// TestMain builds the binary as it is shipped, static, once for all tests.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Getenv(binaryVariable) == "" {
		dir, err := os.MkdirTemp("", "egressd-build")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		bin := filepath.Join(dir, "egressd")
		cmd := exec.Command("go", "build", "-o", bin, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building egressd: %v\n%s", err, out)
			return 1
		}
		os.Setenv(binaryVariable, bin)
	}
	return m.Run()
}

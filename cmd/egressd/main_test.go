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

// clientVariable does so with the client program of the client tests.
const clientVariable = "EGRESSD_TEST_CLIENT"

// tableVariable does so with the path of the table of clients.
const tableVariable = "EGRESSD_TEST_TABLE"

// TestMain builds the binary as it is shipped, static, once for all tests, and
// a client program beside it.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Getenv(binaryVariable) == "" {
		root, err := filepath.Abs(docRoot)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Setenv(docsVariable, root)
		dir, err := os.MkdirTemp("", "egressd-build")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		for variable, pkg := range map[string]string{binaryVariable: ".", clientVariable: "./testdata/client"} {
			bin := filepath.Join(dir, filepath.Base(variable))
			cmd := exec.Command("go", "build", "-o", bin, pkg)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "building %s: %v\n%s", pkg, err, out)
				return 1
			}
			os.Setenv(variable, bin)
		}
	}
	if os.Getenv(tableVariable) == "" {
		table, err := filepath.Abs("../../docs/clients.md")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Setenv(tableVariable, table)
	}
	return m.Run()
}

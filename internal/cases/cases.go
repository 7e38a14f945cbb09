// Package cases loads the acceptance cases, one JSON object a line, that every
// package is tested against. They are read from ../shared/cases beside the
// checkout where that folder is present, else from the copy in testdata/cases.
// Only tests import it.
package cases

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the checkout, found from this file's own place.
func root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("finding the checkout: no caller information")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Dir is the folder the cases are read from.
func Dir(t testing.TB) string {
	t.Helper()
	shared := filepath.Join(filepath.Dir(root(t)), "shared", "cases")
	if _, err := os.Stat(shared); err == nil {
		return shared
	}
	return Copy(t)
}

// Copy is the folder of the copy that is kept in the repository.
func Copy(t testing.TB) string {
	t.Helper()
	return filepath.Join(root(t), "testdata", "cases")
}

// Each runs f as a subtest for every line of the file, named by the line's id.
// A member that T does not know is an error, so that no part of a case is
// silently left unlooked at. Lines whose id or group stands in later.txt are
// left out: what they need is built by the issue named there.
func Each[T any](t *testing.T, file string, f func(t *testing.T, c T)) {
	t.Helper()
	for _, c := range Load[T](t, file, "") {
		t.Run(c.ID, func(t *testing.T) { f(t, c.Case) })
	}
}

// Groups are the groups of a file, each once, in the file's order.
func Groups(t testing.TB, file string) []string {
	t.Helper()
	var groups []string
	data, err := os.ReadFile(filepath.Join(Dir(t), file))
	if err != nil {
		t.Fatalf("reading cases: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		var head struct{ ID string }
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if g := group(head.ID); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// Case is a line of a file.
type Case[T any] struct {
	ID   string
	Case T
}

// Load reads the lines of a file, or of one group of it, but for those put off.
// It is for tests that must read before they change what can be read.
func Load[T any](t testing.TB, file, of string) []Case[T] {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Dir(t), file))
	if err != nil {
		t.Fatalf("reading cases: %v", err)
	}
	later := Later(t)
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 1<<20)
	var out []Case[T]
	n := 0
	for scanner.Scan() {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var head struct{ ID string }
		if err := json.Unmarshal(scanner.Bytes(), &head); err != nil || head.ID == "" {
			t.Fatalf("%s: case %d has no id: %v", file, n, err)
		}
		if of != "" && group(head.ID) != of {
			continue
		}
		n++
		if later[head.ID] || later[group(head.ID)] {
			continue
		}
		var c T
		dec := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			t.Fatalf("%s: case %s: %v", file, head.ID, err)
		}
		out = append(out, Case[T]{head.ID, c})
	}
	if err := scanner.Err(); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if n == 0 {
		t.Fatalf("%s: no cases %s", file, of)
	}
	return out
}

// group is an id without its number: "sb-net" of "sb-net-07".
func group(id string) string {
	if i := strings.LastIndexByte(id, '-'); i > 0 {
		return id[:i]
	}
	return id
}

// Later is the set of ids and groups that testdata/cases/later.txt puts off.
func Later(t testing.TB) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Copy(t), "later.txt"))
	if err != nil {
		t.Fatalf("reading later.txt: %v", err)
	}
	later := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			later[f[0]] = true
		}
	}
	return later
}

package proxytest

import "testing"

// Namespaced needs namespaces, which macOS does not have: what is tested in them
// is not tested there.
func Namespaced(t *testing.T, _ func(t *testing.T, dir string)) {
	t.Helper()
	t.Skip("this test runs in namespaces, which Linux alone has")
}

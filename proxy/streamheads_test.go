package proxy_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestStreamHeads: what the HTTP/2 library lets through of a head and HTTP/1
// would read as something else is refused (RFC 9113 section 8.3.1).
func TestStreamHeads(t *testing.T) {
	for name, fields := range map[string][2]string{
		"a space in the method":     {"GET /admin HTTP/1.1 x", "/"},
		"a colon in the method":     {"GE:T", "/"},
		"an address for a path":     {"GET", "https://ok.test/x"},
		"another host in the path":  {"GET", "https://other.test/x"},
		"the asterisk form":         {"OPTIONS", "*"},
		"a name without its slash":  {"GET", "admin"},
		"a backslash for its slash": {"GET", `\admin`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head, err := json.Marshal([][2]string{{":method", fields[0]}, {":scheme", "https"}, {":authority", "ok.test"}, {":path", fields[1]}})
			if err != nil {
				t.Fatal(err)
			}
			var c wireCase
			text := fmt.Sprintf(`{"door":"tunnel","host":"ok.test","port":443,"tls":true,"alpn":"h2","rules":["* ok.test/**","* other.test/**"],
				"h2":[{"headers":%s}],"expect":[{"status":[400,"reset"]}],"seen":[]}`, head)
			if err := json.Unmarshal([]byte(text), &c); err != nil {
				t.Fatal(err)
			}
			runWireCase(t, c)
		})
	}
}

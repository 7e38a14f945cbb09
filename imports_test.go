package egressd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/egressd/egressd"

// house is the table of the design (ARCHITECTURE.md): what each package may
// import of ours and from outside the standard library. A folder below a
// package is on its floor and may use what the package may; a package may use
// the folders below itself.
var house = map[string]struct{ ours, outside []string }{
	"rules":      {nil, []string{"github.com/gobwas/glob", "golang.org/x/net/idna"}},
	"ca":         {nil, nil},
	"credbroker": {nil, []string{"github.com/godbus/dbus", "golang.org/x/sys"}},
	"netguard":   {nil, nil},
	"audit":      {nil, nil},
	"shell":      {nil, nil},
	"safepath":   {nil, nil},
	"netns":      {nil, []string{"github.com/vishvananda/netlink", "golang.org/x/sys", "golang.org/x/net/dns/dnsmessage"}},
	"tools":      {[]string{"shell", "safepath", "audit", "netns"}, []string{"github.com/modelcontextprotocol/go-sdk"}},
	"metrics":    {[]string{"audit"}, []string{"github.com/prometheus/client_golang"}},
	"proxy":      {[]string{"audit"}, []string{"github.com/elazarl/goproxy", "golang.org/x/net"}},
	"policy":     {[]string{"rules", "credbroker", "netguard", "netns"}, []string{"gopkg.in/yaml.v3", "golang.org/x/sys"}},
	"cmd/egressd": {[]string{"rules", "ca", "credbroker", "netguard", "audit", "netns", "proxy", "policy", "shell", "safepath", "tools", "metrics"},
		[]string{"github.com/spf13/cobra", "golang.org/x/sys", "golang.org/x/term"}},
	"internal/cases":     {nil, nil},
	"internal/proxytest": {nil, []string{"golang.org/x/net", "golang.org/x/sys", "google.golang.org/grpc", "github.com/coder/websocket"}},
}

// Floors and neighbours hold: a new edge between packages, or a new module,
// is a decision for the table and not an accident of an edit.
func TestImports(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing packages: %v\n%s", err, stderr.String())
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if name == "" || strings.HasPrefix(name, "examples/") {
			continue
		}
		row := name
		for row != "." {
			if _, ok := house[row]; ok {
				break
			}
			row = filepath.Dir(row)
		}
		allowed, ok := house[row]
		if !ok {
			t.Errorf("%s is not in the table", name)
			continue
		}
		for _, imp := range p.Imports {
			switch of, ours := strings.CutPrefix(imp, module+"/"); {
			case !ours && !strings.Contains(strings.Split(imp, "/")[0], "."):
			case !ours && !under(imp, allowed.outside):
				t.Errorf("%s imports %s", name, imp)
			case ours && !under(of, allowed.ours) && !under(of, []string{row}):
				t.Errorf("%s imports %s", name, of)
			}
		}
	}
}

func under(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}

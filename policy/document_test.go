package policy

import (
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker"
)

var docCall = regexp.MustCompile("(?m)^\\| `([A-Z]+) ([^/` ]+)(/[^` ]*)` \\|")

// docs/issuing.md has every call that check knows, and no other.
func TestIssuingDocument(t *testing.T) {
	data, err := os.ReadFile("../docs/issuing.md")
	if err != nil {
		t.Fatal(err)
	}
	list := slices.Clone(issuingEndpoints)
	for _, x := range issuingOf(entriesOf(t, "{type: gh_basic, target: ghe.test, source: {env: T}}")) {
		x.host = strings.Replace(x.host, "ghe.test", "HOST", 1)
		list = append(list, x)
	}
	documented := docCall.FindAllStringSubmatch(string(data), -1)
	if len(documented) != len(list) {
		t.Errorf("the document has %d calls, and check knows %d", len(documented), len(list))
	}
	for _, row := range documented {
		if !slices.ContainsFunc(list, func(x issuing) bool { return writes(row, x) }) {
			t.Errorf("check does not know %s %s%s", row[1], row[2], row[3])
		}
	}
	for _, x := range list {
		if !slices.ContainsFunc(documented, func(row []string) bool { return writes(row, x) }) {
			t.Errorf("the document lacks %s %s%s", x.method, x.host, x.path)
		}
	}
}

// writes says that a row of the document is a call: in its path a star is one
// segment.
func writes(row []string, x issuing) bool {
	fits, err := path.Match(row[3], x.path)
	return err == nil && fits && row[1] == x.method && row[2] == x.host
}

// docs/credentials.md has every preset, with its hosts and variables.
func TestPresetDocument(t *testing.T) {
	data, err := os.ReadFile("../docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Presets\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) == 4 {
			rows[strings.Trim(cells[0], "| `")] = cells
		}
	}
	if names := slices.Sorted(maps.Keys(rows)); !slices.Equal(names, slices.Sorted(maps.Keys(credentialPresets))) {
		t.Errorf("the document has the presets %v", names)
	}
	for name, p := range credentialPresets {
		entry := "{preset: " + name + "}"
		if len(p.needs) > 0 {
			entry = "{preset: " + name + ", target: a.test, username: u}"
		}
		x := entriesOf(t, entry)[0]
		var hosts, inside []string
		for _, at := range x.Targets {
			hosts = append(hosts, at.Text)
		}
		for _, v := range InsideVariables(x) {
			inside = append(inside, "`"+v+"`")
		}
		cells := rows[name]
		if cells == nil {
			continue // told above
		}
		if want := strings.Join(hosts, ", "); len(p.needs) == 0 && cells[1] != want {
			t.Errorf("the hosts of %s are %s, not %s", name, want, cells[1])
		}
		if cells[2] != "`"+x.Source.Env+"`" {
			t.Errorf("the source of %s is %s, not %s", name, x.Source.Env, cells[2])
		}
		if got := strings.TrimRight(cells[3], " |\n"); got != strings.Join(inside, ", ") {
			t.Errorf("inside, %s shows in %v, not %s", name, inside, got)
		}
	}
}

// entriesOf are those of a policy that has this one.
func entriesOf(t *testing.T, entry string) []credbroker.Entry {
	t.Helper()
	p, problems := Load("egressd.yaml", []byte("sandbox: {egress_rules: [], credential_proxy: ["+entry+"]}\n"), Options{Platform: "linux", NoLint: true})
	if p == nil {
		t.Fatalf("%s: %v", entry, problems)
	}
	return p.Credentials
}

// docs/credentials.md names every key and every type of an entry.
func TestCredentialDocument(t *testing.T) {
	data, err := os.ReadFile("../docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Concat(ofSomeTypes, ofTargets, []string{"id", "env", "shape", "canary", "ttl", "on_leak", "leak_pass", "redact"}, slices.Sorted(maps.Keys(credentialTypes)))
	for _, word := range words {
		if !strings.Contains(string(data), "`"+word+"`") {
			t.Errorf("the document does not name %s", word)
		}
	}
}

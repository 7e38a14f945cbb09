package source_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/source"
)

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// field is a home with a project that a sandbox can write to.
func field(t *testing.T) (root string, unsafe []string) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, root+"/bin/tool", "#!/bin/sh\n", 0o755)
	write(t, root+"/bin/text", "#!/bin/sh\n", 0o644)
	write(t, root+"/more/tool", "#!/bin/sh\n", 0o755)
	write(t, root+"/more/text", "#!/bin/sh\n", 0o755)
	write(t, root+"/proj/bin/tool", "#!/bin/sh\n", 0o755)
	write(t, root+"/proj/bin/evil", "#!/bin/sh\n", 0o755)
	write(t, root+"/project2/tool", "#!/bin/sh\n", 0o755)
	link(t, "../proj/bin/evil", root+"/bin/evil")         // leads into it
	link(t, root+"/proj/hop", root+"/bin/through")        // leads through it
	link(t, root+"/bin/tool", root+"/proj/hop")           //
	link(t, "../more/tool", root+"/bin/alias")            // harmless
	link(t, "bin", root+"/bin2")                          // a folder by another name
	link(t, "proj/bin", root+"/links")                    // leads into it
	link(t, "../bin", root+"/proj/out")                   // lies in it
	link(t, "loop", root+"/bin/loop")                     //
	link(t, "/usr/../usr/bin/env", root+"/bin/dots")      // harmless
	link(t, root+"/proj", root+"/workspace")              // the project by another name
	link(t, root+"/bin/../proj/bin/evil", root+"/bin/up") // leads into it
	return root, []string{root + "/workspace/"}
}

func TestSafePath(t *testing.T) {
	root, unsafe := field(t)
	for _, c := range []struct{ name, path, want string }{
		{"the usual", "/usr/bin:/bin", "/usr/bin:/bin"},
		{"nothing", "", ""},
		{"relative", ".:bin::./bin:/usr/bin:", "/usr/bin"},
		{"not there", root + "/none:/usr/bin", "/usr/bin"},
		{"below the project", root + "/proj/bin:" + root + "/bin", root + "/bin"},
		{"the project", root + "/proj", ""},
		{"the project by another name", root + "/workspace/bin", ""},
		{"with dots", root + "/bin/../proj/bin", ""},
		{"a neighbour of like name", root + "/project2", root + "/project2"},
		{"a link into it", root + "/links", ""},
		{"a link in it that leads out", root + "/proj/out", ""},
		{"a link elsewhere", root + "/bin2", root + "/bin2"},
		{"twice", "/usr/bin:/usr/bin", "/usr/bin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := source.SafePath(c.path, unsafe); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := source.SafePath("/usr/bin", []string{"/"}); got != "" {
		t.Errorf("with the root folder unsafe there is %q", got)
	}
}

func TestFinder(t *testing.T) {
	root, unsafe := field(t)
	look := source.Finder(strings.Join([]string{root + "/proj/bin", "bin", root + "/bin", root + "/more", "/usr/bin"}, ":"), unsafe)
	for _, c := range []struct{ name, want, has string }{
		{"tool", root + "/bin/tool", ""},
		{"text", root + "/more/text", ""}, // the first is no program
		{"alias", root + "/more/tool", ""},
		{"evil", "", "where a sandbox can write"},
		{"up", "", "where a sandbox can write"},
		{"through", "", "where a sandbox can write"},
		{"loop", "", "no such program"},
		{"none", "", "no such program"},
		{"", "", "neither"},
		{"bin/tool", "", "neither"},
		{"./tool", "", "neither"},
		{"~/tool", "", "neither"},
		{root + "/bin/tool", root + "/bin/tool", ""},
		{root + "/bin2/tool", root + "/bin/tool", ""},
		{root + "/bin//./tool", root + "/bin/tool", ""},
		{root + "/proj/bin/tool", "", "where a sandbox can write"},
		{root + "/workspace/bin/tool", "", "where a sandbox can write"},
		{root + "/bin/../proj/bin/tool", "", "where a sandbox can write"},
		{root + "/proj/out/tool", "", "where a sandbox can write"},
		{root + "/links/tool", "", "where a sandbox can write"},
		{root + "/bin/evil", "", "where a sandbox can write"},
		{root + "/bin/through", "", "where a sandbox can write"},
		{root + "/bin/loop", "", "too many"},
		{root + "/bin/none", "", "no such file"},
		{root + "/bin/text", "", "no program"},
		{root + "/bin", "", "no program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := look(c.name)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.has) || !strings.Contains(err.Error(), "looking up "+c.name)) {
				t.Errorf("error %v, want %q", err, c.has)
			}
		})
	}
	if at, err := look("dots"); err != nil || !strings.HasPrefix(at, "/usr/bin/") {
		t.Errorf("got %q, %v", at, err)
	}
	// Looked up once: what changes later changes nothing.
	if err := os.Remove(root + "/bin/alias"); err != nil {
		t.Fatal(err)
	}
	link(t, root+"/proj/bin/evil", root+"/bin/alias")
	if got, err := look("alias"); got != root+"/more/tool" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCheckCommand(t *testing.T) {
	root, unsafe := field(t)
	look := source.Finder(root+"/bin:/usr/bin:/bin", unsafe)
	for _, c := range []struct {
		argv []string
		has  string
	}{
		{[]string{"tool"}, ""},
		{[]string{"none"}, ""},
		{[]string{"~/bin/tool", "a", "b"}, ""},
		{[]string{"sh", root + "/bin/text"}, ""},
		{[]string{"sh", "/no/such/file"}, ""},
		{[]string{"sh", root + "/bin/tool/x"}, ""},
		{[]string{"sh", "-c", "echo " + root + "/proj/bin/evil"}, ""},
		{[]string{"env", "A=" + root + "/proj", "tool"}, ""},
		{nil, "empty"},
		{[]string{"evil"}, "looking up evil: it lies in " + root + "/proj, where"},
		{[]string{"~/proj/bin/tool"}, "looking up " + root + "/proj/bin/tool: it lies"},
		{[]string{"sh", root + "/proj/bin/evil"}, "checking " + root + "/proj/bin/evil: it lies in " + root + "/proj, where"},
		{[]string{"sh", root + "/proj/not-there-yet"}, "not-there-yet: it lies"},
		{[]string{"sh", root + "/bin/evil"}, "checking " + root + "/bin/evil: it lies"},
		{[]string{"sh", "-e", "~/workspace/bin/tool"}, "/workspace/bin/tool: it lies"},
		{[]string{"sh", "~/workspace/new/tool"}, "/workspace/new/tool: it lies"},
	} {
		t.Run(strings.Join(c.argv, " "), func(t *testing.T) {
			err := source.CheckCommand(c.argv, root, look, unsafe)
			if (err == nil) != (c.has == "") || err != nil && !strings.Contains(err.Error(), c.has) {
				t.Errorf("error %v, want %q", err, c.has)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	got := source.Environment([]string{
		"PATH=/evil", "HOME=/h", "USER=u", "LOGNAME=u", "LANG=C", "LC_ALL=C", "LC_X=1", "TZ=UTC", "XDG_RUNTIME_DIR=/r",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/b", "DATABRICKS_CONFIG_FILE=/d", "GH_CONFIG_DIR=/g", "VAULT_ADDR=https://v", "VAULT_TOKEN=t",
		"GH_TOKEN=x", "DATABRICKS_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "LD_PRELOAD=x", "BASH_ENV=x", "ENV=x", "HOMEX=x", "XHOME=x",
		"HOME=/second", "LANGUAGE=x", "SSH_AUTH_SOCK=x", "TERM=x", "novalue", "=x", "VAULTX=x", "lc_x=x", "http_proxy=x",
	}, "/usr/bin:/bin")
	want := []string{
		"PATH=/usr/bin:/bin", "HOME=/h", "USER=u", "LOGNAME=u", "LANG=C", "LC_ALL=C", "LC_X=1", "TZ=UTC", "XDG_RUNTIME_DIR=/r",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/b", "DATABRICKS_CONFIG_FILE=/d", "GH_CONFIG_DIR=/g", "VAULT_ADDR=https://v", "VAULT_TOKEN=t",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A script is run by what its first line names: that lies where no sandbox can
// write, too.
func TestInterpreters(t *testing.T) {
	root, unsafe := field(t)
	for name, line := range map[string]string{
		"venv": "#!" + root + "/proj/bin/evil\n", "venv2": "#! " + root + "/workspace/bin/evil -E\n", "linked": "#!" + root + "/bin/evil\n",
		"nested": "#!" + root + "/bin/venv\n", "word": "#!/usr/bin/env -S " + root + "/proj/bin/evil x\n", "relative": "#!" + root[1:] + "/proj/bin/evil\n",
		"long": "#!" + strings.Repeat(" ", 200) + root + "/proj/bin/evil\n", "good": "#!/usr/bin/env sh\n", "bare": "#!\n", "binary": "\x7fELF", "gone": "#!/none/such\n", "empty": "",
	} {
		write(t, root+"/bin/"+name, line, 0o755)
	}
	find := source.Finder(root+"/bin", unsafe)
	for name, safe := range map[string]bool{"venv": false, "venv2": false, "linked": false, "nested": false, "word": false, "relative": false, "long": false,
		"good": true, "bare": true, "binary": true, "gone": true, "empty": true, "tool": true} {
		for _, as := range []string{name, root + "/bin/" + name} {
			if at, err := find(as); (err == nil) != safe {
				t.Errorf("%s: %s, %v", as, at, err)
			}
		}
	}
}

//go:build linux

package cgroup

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLocate(t *testing.T) {
	const (
		hybrid  = "24 1 0:21 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n25 1 0:22 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
		unified = "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n"
		part    = "25 1 0:22 /user.slice/user-7.slice /mnt/cg rw - cgroup2 cgroup2 rw\n"
	)
	for _, tc := range []struct{ mounts, own, want string }{
		{unified, "0::/user.slice/a b.scope\n", "/sys/fs/cgroup /sys/fs/cgroup/user.slice/a b.scope"},
		{unified, "0::/\n", "/sys/fs/cgroup /sys/fs/cgroup"},
		{hybrid, "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/unified /sys/fs/cgroup/unified/y"},
		{part, "0::/user.slice/user-7.slice/s.scope\n", "/mnt/cg /mnt/cg/s.scope"},
		{part + unified, "0::/user.slice/user-7.slice\n", "/mnt/cg /mnt/cg; /sys/fs/cgroup /sys/fs/cgroup/user.slice/user-7.slice"},
		{part, "0::/user.slice/user-70.slice/s.scope\n", ""},
		{part, "0::/\n", ""},
		{unified, "4:memory:/x\n", ""},
		{unified, "0::/../..\n", ""},
		{unified, "0::\n", ""},
		{"", "0::/\n", ""},
		{"25 1 0:22 / - cgroup2 cgroup2 rw\n", "0::/\n", ""},
	} {
		list, err := locate(bufio.NewScanner(strings.NewReader(tc.mounts)), tc.own)
		var got []string
		for _, h := range list {
			got = append(got, h.mount+" "+h.own)
		}
		if strings.Join(got, "; ") != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%q in %q: %q, %v; want %q", tc.own, tc.mounts, got, err, tc.want)
		}
	}
}

func FuzzLocate(f *testing.F) {
	f.Add("25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		list, _ := locate(bufio.NewScanner(strings.NewReader(mounts)), own)
		for _, h := range list {
			if h.own != h.mount && !strings.HasPrefix(h.own, strings.TrimSuffix(h.mount, "/")+"/") {
				t.Errorf("%q lies outside of %q", h.own, h.mount)
			}
		}
	})
}

// tree makes folders and files as cgroupfs has them. A name with a slash at its
// end is a group, "type" is in every one but the root.
func tree(t *testing.T, groups map[string][2]string) string {
	t.Helper()
	root := t.TempDir()
	for name, lists := range groups {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"cgroup.procs": "", "cgroup.controllers": lists[0], "cgroup.subtree_control": lists[1]}
		if name != "" {
			files["cgroup.type"] = "domain\n"
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestPlace(t *testing.T) {
	const both, all = "memory pids\n", "cpu io memory pids\n"
	both2 := []string{"memory", "pids"}
	for _, tc := range []struct {
		name     string
		groups   map[string][2]string
		own      string
		reserved bool
		marked   string // a group that systemd has marked
		readOnly string // a group that is not ours
		want     string // the folder, "leave FOLDER", or the error
		need     []string
	}{
		{"a slice hands down", map[string][2]string{"": {all, all}, "app": {all, both}, "app/term": {both, ""}}, "app/term", false, "", "", "app", both2},
		{"two above", map[string][2]string{"": {all, all}, "app": {all, both}, "app/term": {both, ""}, "app/term/x": {"", ""}}, "app/term/x", false, "", "", "app", both2},
		{"its own, which hands down", map[string][2]string{"": {all, ""}, "unit": {all, both}}, "unit", false, "", "", "unit", both2},
		{"one controller is missing above", map[string][2]string{"": {all, ""}, "app": {all, "pids\n"}, "app/term": {"pids\n", ""}}, "app/term", false, "", "", "do not hand down memory", both2},
		{"alone in its own", map[string][2]string{"": {all, ""}, "unit": {both, ""}}, "unit", false, "", "", "leave unit", both2},
		{"nothing is needed", map[string][2]string{"": {"", ""}, "unit": {"", ""}}, "unit", false, "", "", "unit", nil},
		{"never the root's controllers", map[string][2]string{"": {all, ""}}, "", false, "", "", "do not hand down memory and pids", both2},
		{"root's, which hands down", map[string][2]string{"": {all, all}}, "", false, "", "", ".", both2},
		{"systemd's", map[string][2]string{"": {all, all}, "user": {all, both}, "user/s": {both, ""}}, "user/s", true, "", "", "no cgroup above this process", both2},
		{"systemd's, marked above", map[string][2]string{"": {all, all}, "user": {all, both}, "user/s": {both, ""}, "user/s/x": {"", ""}}, "user/s/x", true, "user", "", "user", both2},
		{"systemd's, marked beside", map[string][2]string{"": {all, all}, "user": {all, both}, "user/s": {both, ""}, "o": {"", ""}}, "user/s", true, "o", "", "no cgroup above this process", both2},
		{"systemd's unit, marked", map[string][2]string{"": {all, all}, "unit": {both, ""}}, "unit", true, "unit", "", "leave unit", both2},
		{"somebody else's", map[string][2]string{"": {all, ""}, "app": {all, both}, "app/term": {both, ""}}, "app/term", false, "", "app", "leave app/term", both2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := tree(t, tc.groups)
			h := hierarchy{mount: root, own: filepath.Join(root, tc.own), reserved: tc.reserved}
			if tc.marked != "" {
				if err := unix.Setxattr(filepath.Join(root, tc.marked), "user.delegate", []byte("1"), 0); err != nil {
					t.Fatalf("marking a folder: %v", err)
				}
			}
			if tc.readOnly != "" { // to root too
				if err := os.Remove(filepath.Join(root, tc.readOnly, "cgroup.procs")); err != nil {
					t.Fatal(err)
				}
			}
			p, err := h.place(tc.need)
			got, _ := filepath.Rel(root, p.folder)
			if p.leave {
				got = "leave " + got
			}
			if err != nil {
				got = err.Error()
			}
			if got != tc.want && !(err != nil && strings.Contains(got, tc.want)) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

//go:build linux

package census

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const statTail = " S 1 7 7 0 -1 4194304 120 900 0 3 11 22 33 44 20 0 5 0 678 3000000 250 18446744073709551615 1 1\n"

func TestParseStat(t *testing.T) {
	want := process{pid: "7", own: 33, dead: 77, start: 678, tasks: 5}
	for _, name := range []string{"sh", "a) S 1 2 3 (b", "", ") 1 2\n3"} {
		got, err := parseStat("7", []byte("7 ("+name+")"+statTail))
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	got, err := parseStat("7", []byte("7 (x)"+strings.Replace(statTail, " 33 44 ", " -1 -2 ", 1)))
	if err != nil || got.dead != 0 {
		t.Errorf("negative times of children: %+v, %v", got, err)
	}
	for _, text := range []string{"", "7 (x", "7 (x) S 1 2", "7 (x)" + strings.Replace(statTail, " 678 ", " x ", 1)} {
		if got, err := parseStat("7", []byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseKB(t *testing.T) {
	status := "Name:\tRssAnon: 7 kB\nRssAnon:\t    1024 kB\nRssFile:\t    9 kB\nRssShmem:\t       8 kB\nThreads:\t1\n"
	if got, want := parseKB([]byte(status), "RssAnon", "RssShmem"), (memory{1 << 20, 8 << 10}); got != want {
		t.Errorf("%+v", got)
	}
	if got := parseKB([]byte("Name:\tkthreadd\n"), "RssAnon", "RssShmem"); got != (memory{}) {
		t.Errorf("%+v", got)
	}
}

func TestParseSegments(t *testing.T) {
	head := "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n"
	line := "         0          %d   600            1048576   10    10      0     0     0     0     0  0 0 0               %d                     0\n"
	for text, want := range map[string]uint64{
		head: 0, head + fmt.Sprintf(line, 0, 4096) + fmt.Sprintf(line, 1, 8192): 12288, "": 0, "no such column\n1 2 3\n": 0, head + "short\n": 0,
	} {
		if got := parseSegments([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestTmpfsMounts(t *testing.T) {
	text := "30 1 0:40 / /tmp rw,nosuid - tmpfs tmpfs rw\n31 30 0:41 /part /a\\040b\\134c rw shared:1 - tmpfs x rw,mode=1777\n" +
		"32 1 8:1 / /home rw - ext4 /dev/vda rw\n33 1 0:42 / /x rw - tmpfsx tmpfs rw\nnonsense\n"
	want := []tmpfsMount{{"0:40", "/tmp"}, {"0:41", `/a b\c`}}
	if got := tmpfsMounts(text); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("7 (sh)" + statTail))
	f.Add([]byte("RssAnon:\t18014398509481984 kB\n"))
	f.Add([]byte("30 1 0:40 / /tmp rw - tmpfs tmpfs rw\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := parseStat("1", text); err == nil && p.pid != "1" {
			t.Errorf("%+v", p)
		}
		parseKB(text, "RssAnon", "RssShmem")
		parseSegments(text)
		for _, m := range tmpfsMounts(string(text)) {
			if m.device == "" || m.path == "" {
				t.Errorf("%+v", m)
			}
		}
	})
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// The secrets of the search, by the entry that has them.
var searched = map[string]string{
	"var":   "tok-live-7Qm4x9Zr2Lp8-var",
	"file":  "tok-live-Kd03nWq81xYt-file",
	"tool":  "tok-live-Zk31vT0pW5aa-tool",
	"aws":   "madeUpSecretKey/9Kd2x7Qm4x9Zr2Lp8aaBBccDD",
	"dbx":   "dapi4f0a9c1e77b2d3e8a6c5",
	"keyid": "AKIAMADEUPKEY0000001",
}

// spellings are the ways in which a secret would still be one.
func spellings(secret string) [][]byte {
	list := [][]byte{[]byte(secret), []byte(hex.EncodeToString([]byte(secret))), []byte(strings.ToUpper(hex.EncodeToString([]byte(secret))))}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := enc.EncodeToString(append(make([]byte, shift), secret...))
			// The letters at both ends hold bits of what stands beside it.
			list = append(list, []byte(text[4:len(text)-4]))
		}
	}
	return list
}

// found names the secrets that a text holds, in whatever spelling.
func found(text []byte) []string {
	var names []string
	for name, secret := range searched {
		if slices.ContainsFunc(spellings(secret), func(s []byte) bool { return bytes.Contains(text, s) }) {
			names = append(names, name)
		}
	}
	return names
}

const searchPolicy = `sandbox:
  write_paths: [.]
  read_paths: [~/data]
  egress_rules: ["* echo.test/**", "GET other.test/**", "* *.dbx.test/**", "* s3.test/**", "* tool.test/**", "* file.test/**"]
  credential_proxy:
    - {id: var, type: https_bearer, target: echo.test, source: {env: TOK}, env: VAR_TOKEN}
    - {id: file, type: https_basic, username: ann, target: file.test, source: {file: ~/proj/keys/tok}, env: [FILE_TOKEN]}
    - {id: tool, type: https_header, header: x-api-key, target: tool.test, source: {command: [cat, /home/search/tool-secret]}}
    - {id: aws, type: aws_sigv4, target: s3.test, access_key_id: AKIAMADEUPKEY0000001, source: {env: SK}}
    - {id: dbx, type: databricks_cli, profiles: [dev], default: dev}
`

// searchProgram does what clients do, and prints everything that it can read:
// its variables, those and the command lines of all processes, and the files of
// every folder that is not the system's.
const searchProgram = `
for u in https://echo.test/a https://file.test/a https://tool.test/a https://dev.dbx.test/api https://other.test/; do
  curl -sS -m 10 -i "$u"
  curl -sS -m 10 -i -H "Authorization: Bearer $VAR_TOKEN" "$u"
done
curl -sS -m 10 -u "ann:$FILE_TOKEN" https://file.test/b
env
cat "$DATABRICKS_CONFIG_FILE"
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null
find / -xdev \( -path /proc -o -path /sys -o -path /usr -o -path /lib -o -path /lib64 -o -path /opt \) -prune -o -type f -size -512k -print -exec cat {} \; 2>/dev/null
find /home /tmp /run /etc /dev/shm -type f -size -512k -print -exec cat {} \; 2>/dev/null
echo searched; sleep 3
`

// With five credentials at work, the secrets are in nothing that the sandbox
// can read, in no process but egressd itself, on no command line, and in no word
// of egressd's own.
func TestSecretsAreNowhereElse(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		h := newSandboxHost(t)
		var mu sync.Mutex
		got := map[string]string{} // what origins got, by host
		echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var head bytes.Buffer
			_ = r.Header.Write(&head)
			mu.Lock()
			got[r.Host] += head.String()
			mu.Unlock()
			w.Header().Set("X-Echo", r.Header.Get("Authorization"))
			fmt.Fprintf(w, "%s\n%s\n", head.String(), base64.StdEncoding.EncodeToString(head.Bytes()))
		})
		origin := h.serve(t, &http.Server{Handler: echo, TLSConfig: h.ca.ServerConfig("*.dbx.test", "", "http/1.1")})
		home := "/home/search"
		h.searchHome(t, home, origin)
		cmd := exec.CommandContext(t.Context(), h.bin, "run", "-v", "--policy", "/srv/search.yaml", "--", "sh", "-c", searchProgram)
		cmd.Dir = filepath.Join(home, "proj")
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "TOK=" + searched["var"], "SK=" + searched["aws"], "USER=" + annName}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: annUID, Gid: annUID}}
		var out, errs lockedBuffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 400 {
			if strings.Contains(out.String(), "searched\n") {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		searchProcesses(t, cmd.Process.Pid)
		if err := cmd.Wait(); err != nil {
			t.Errorf("egressd: %v: %s", err, errs.String())
		}
		if !strings.Contains(out.String(), "searched\n") || strings.Count(out.String(), "oa_cred_") < 3 {
			t.Errorf("the search inside did not run: %s", cut(out.String()))
		}
		for what, text := range map[string]string{"the sandbox's view": out.String(), "egressd's own words": errs.String(), "the record": records(t, home)} {
			if names := found([]byte(text)); len(names) > 0 {
				t.Errorf("%s holds the secrets %q", what, names)
				for _, name := range names {
					if i := strings.Index(text, searched[name]); i >= 0 {
						t.Logf("%s: …%q…", name, text[max(0, i-200):i])
					}
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for host, secret := range map[string]string{"echo.test": searched["var"], "tool.test": searched["tool"], "dev.dbx.test": searched["dbx"],
			"file.test": base64.StdEncoding.EncodeToString([]byte("ann:" + searched["file"]))} {
			if !strings.Contains(got[host], secret) {
				t.Errorf("%s never got its secret: %s", host, got[host])
			}
		}
		if names := found([]byte(got["other.test"])); len(names) > 0 {
			t.Errorf("a host without an entry got %q", names)
		}
	})
}

// searchHome makes the home, the sources and the policy.
func (h *sandboxHost) searchHome(t *testing.T, home, origin string) {
	t.Helper()
	for path, text := range map[string]string{
		"proj/keys/tok": searched["file"] + "\n", "tool-secret": searched["tool"] + "\n", "data/notes": "notes\n",
		".databrickscfg": "[dev]\nhost = https://dev.dbx.test\ntoken = " + searched["dbx"] + "\n",
	} {
		file := filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		h.write(t, file, []byte(text), 0o600)
	}
	err := filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, annUID, annUID)
	})
	if err != nil {
		t.Fatal(err)
	}
	resolve := map[string]string{}
	for _, name := range []string{"echo.test", "other.test", "dev.dbx.test", "s3.test", "tool.test", "file.test"} {
		resolve[name+":443"] = origin
	}
	data, err := json.Marshal(map[string]any{"resolve": resolve, "ca_files": []string{h.caFile}})
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "/srv/search.yaml", []byte(searchPolicy+"upstream: "+string(data)+"\n"), 0o644)
}

// records are all records below a home.
func records(t *testing.T, home string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(home, ".local/state/egressd/audit/*"))
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	if all.Len() == 0 {
		t.Error("there is no record")
	}
	return all.String()
}

// searchProcesses looks at all processes beside this test from outside: their
// variables, command lines and memory. egressd itself has the secrets; nobody
// may look into it, and it leaves no core.
func searchProcesses(t *testing.T, egressd int) {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	looked := 0
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if pid == 1 {
			continue
		}
		line, _ := os.ReadFile(d + "/cmdline")
		if names := found(line); len(names) > 0 {
			t.Errorf("the command line %q holds %q", line, names)
		}
		if pid == egressd {
			concealed(t, d)
			continue
		}
		env, _ := os.ReadFile(d + "/environ")
		if names := found(env); len(names) > 0 {
			t.Errorf("the variables of %q hold %q", line, names)
		}
		if names := found(memory(t, d)); len(names) > 0 {
			t.Errorf("the memory of %q holds %q", line, names)
		}
		looked++
	}
	if looked < 3 {
		t.Errorf("only %d processes of the sandbox were found", looked)
	}
}

// concealed checks that a process writes no core and is closed to its own user.
func concealed(t *testing.T, dir string) {
	t.Helper()
	limits, err := os.ReadFile(dir + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok && !slices.Equal(strings.Fields(rest)[:2], []string{"0", "0"}) {
			t.Errorf("egressd's core limit is %q", rest)
		}
	}
	st, err := os.Stat(dir + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	if sys, ok := statOf(st); !ok || sys.Uid != 0 {
		t.Error("egressd can be looked into by its user")
	}
}

// memory is what a process can write to: a copy of a secret would be there.
func memory(t *testing.T, dir string) []byte {
	t.Helper()
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return nil // it has ended
	}
	mem, err := os.Open(dir + "/mem")
	if err != nil {
		return nil
	}
	defer mem.Close()
	var all bytes.Buffer
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[1], "rw") || strings.Contains(line, "[v") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseInt(from, 16, 64)
		end, err2 := strconv.ParseInt(to, 16, 64)
		if err1 != nil || err2 != nil || all.Len() > 512<<20 {
			continue
		}
		_, _ = io.Copy(&all, io.NewSectionReader(mem, start, min(end-start, 64<<20))) // pages that are not there
	}
	return all.Bytes()
}

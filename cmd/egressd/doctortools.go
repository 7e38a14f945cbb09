package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	secrets "github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/netns/mount"
)

// toolTime is how long one tool may take, start included, and toolsAtOnce how
// many are tried at a time.
const (
	toolTime    = 30 * time.Second
	toolsAtOnce = 4
)

// probe is how one tool is made to ask for a URL. It has worked when the origin
// has seen the request, whatever the tool then makes of the answer: it went
// through the proxy, and the tool believed the session's certificate.
type probe struct {
	name   string
	needs  string // the program, where it has another name
	script string // for sh; $URL is what is to be asked for
}

// probes are the tools that doctor knows. What they are given is nobody's: a
// package that is not there, a token that opens nothing.
var probes = []probe{
	{name: "curl", script: `curl -sS "$URL"`},
	{name: "wget", script: `wget -q -O - "$URL"`},
	{name: "git", script: `git ls-remote "$URL"`},
	{name: "openssl", script: `printf 'GET %s HTTP/1.1\r\nHost: api.example.test\r\nConnection: close\r\n\r\n' "${URL#https://api.example.test}" |
		openssl s_client -quiet -verify_return_error -proxy 127.0.0.1:3128 -servername api.example.test -connect api.example.test:443`},
	{name: "python3", script: `python3 -c 'import sys,urllib.request; urllib.request.urlopen(sys.argv[1]).read()' "$URL"`},
	{name: "requests", needs: "python3", script: `python3 -c 'import sys
try:
    import requests
except ImportError:
    sys.exit(77)
requests.get(sys.argv[1])' "$URL"`},
	{name: "pip", needs: "pip3", script: `pip3 download -q --disable-pip-version-check --no-cache-dir --retries 0 --no-deps -d "$TMPDIR" -i "$URL" egressd-doctor`},
	{name: "uv", script: `echo egressd-doctor | uv pip compile -q --no-cache --no-config --default-index "$URL" -`},
	{name: "node", script: `node -e 'require("https").get(process.argv[1], r => r.resume())' "$URL"`},
	{name: "npm", script: `npm ping --registry "$URL" --fetch-retries 0 --cache "$TMPDIR/npm"`},
	{name: "java", script: `cd "$TMPDIR" && echo 'class Get { public static void main(String[] a) throws Exception { new java.net.URL(a[0]).openStream().readAllBytes(); } }' >Get.java &&
		java -XX:TieredStopAtLevel=1 Get.java "$URL"`},
	{name: "go", script: `GOPROXY="$URL" GONOSUMDB='*' GOFLAGS= GOTOOLCHAIN=local GO111MODULE=on go list -m egressd.example.test/doctor@latest`},
	{name: "cargo", script: `CARGO_NET_RETRY=0 cargo search --index "sparse+$URL/" egressd-doctor`},
	{name: "gh", script: `GH_ENTERPRISE_TOKEN=none GH_NO_UPDATE_NOTIFIER=1 gh api --hostname api.example.test "${URL#https://api.example.test/}"`},
	{name: "aws", script: `aws --no-sign-request --region us-east-1 --cli-connect-timeout 10 --endpoint-url "$URL" s3api list-buckets`},
}

// notThere is the status of a probe that finds the tool is not installed.
const notThere = 77

// tried are the requests that the origin has seen.
type tried struct {
	mu    sync.Mutex
	paths []string
}

func (t *tried) see(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paths = append(t.paths, path)
}

func (t *tried) saw(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.paths {
		if strings.Contains(p+"/", "/doctor-"+name+"/") {
			return true
		}
	}
	return false
}

// examineTools has each tool that is installed ask an origin on loopback, in a
// sandbox of its own that egressd run makes.
func examineTools(ctx context.Context, d dirs, cwd string, grants []mount.Grant) []finding {
	seen := &tried{}
	origin, err := newOrigin(seen.see)
	if err != nil {
		return []finding{bad("tools", err, "")}
	}
	defer origin.close()
	go func() { _ = origin.serve() }() // ends with the origin
	lab, err := newLab(origin, d, cwd, grants)
	if err != nil {
		return []finding{bad("tools", err, "")}
	}
	defer lab.remove()
	results := make([]*finding, len(probes))
	slots := make(chan struct{}, min(toolsAtOnce, max(2, runtime.NumCPU())))
	var wg sync.WaitGroup
	for i, p := range probes {
		program := p.name
		if p.needs != "" {
			program = p.needs
		}
		at, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = lab.try(ctx, p, at, seen)
		})
	}
	wg.Wait()
	var out []finding
	for _, r := range results {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// lab is a folder with a policy for probes.
type lab struct {
	self, dir string
	env       []string // of each egressd run
}

// newLab makes it. What the policy in force shows, these show too, read-only:
// tools may lie there. These runs have another working folder, so what is not
// to be run on the host in this one is taken out of PATH.
func newLab(o *loopbackOrigin, d dirs, cwd string, grants []mount.Grant) (*lab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding egressd's own file: %w", err)
	}
	dir, err := os.MkdirTemp("", "egressd-doctor-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	path := secrets.SafePath(os.Getenv("PATH"), belowRoot(avoided(cwd, grants)))
	l := &lab{self, dir, append(os.Environ(), "PATH="+path)} // the last of a name counts
	policy, err := json.Marshal(map[string]any{              // which is YAML too
		"sandbox":  map[string]any{"egress_rules": []string{"* " + demoHost + "/**"}, "read_paths": pathsOf(grants)},
		"upstream": map[string]any{"resolve": map[string]string{demoHost + ":443": o.addr}, "ca_files": []string{"ca.pem"}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing a policy: %w", err)
	}
	err = errors.Join(os.WriteFile(filepath.Join(dir, "ca.pem"), o.ca, 0o600), os.WriteFile(filepath.Join(dir, "policy.yaml"), policy, 0o600),
		os.Mkdir(filepath.Join(dir, "work"), 0o700))
	if os.Getuid() == 0 && err == nil {
		err = os.Lchown(filepath.Join(dir, "work"), d.uid, d.gid)
	}
	if err != nil {
		l.remove()
		return nil, fmt.Errorf("filling a folder: %w", err)
	}
	return l, nil
}

func pathsOf(grants []mount.Grant) []string {
	out := []string{}
	for _, g := range grants {
		out = append(out, g.Path)
	}
	return out
}

func (l *lab) remove() { _ = os.RemoveAll(l.dir) } // what is left of it holds no secret

// try runs one probe.
func (l *lab) try(ctx context.Context, p probe, at string, seen *tried) *finding {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	url := "https://" + demoHost + "/doctor-" + p.name
	cmd := exec.CommandContext(ctx, l.self, "run", "-q", "--policy", filepath.Join(l.dir, "policy.yaml"), "--cwd", filepath.Join(l.dir, "work"),
		"--audit", filepath.Join(l.dir, p.name+".jsonl"), "--", "sh", "-c", "URL="+url+"; export URL; "+p.script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = l.dir, l.env, time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	why := lastLine(said.String())
	var f finding
	switch code := cmd.ProcessState; {
	case seen.saw(p.name):
		f = good("tool", p.name+" works through the proxy")
	case ctx.Err() != nil:
		f = odd("tool", fmt.Sprintf("%s did not ask within %s", p.name, toolTime), "try it: egressd run --allow \"GET example.com/**\" -- …")
	case code != nil && code.ExitCode() == notThere:
		return nil
	case code != nil && code.ExitCode() == 127:
		f = odd("tool", fmt.Sprintf("%s is %s on this host, and is not shown inside", p.name, at), fmt.Sprintf("to have it inside: read_paths: [%q]", filepath.Dir(at)))
	default:
		if why == "" && err != nil {
			why = err.Error()
		}
		f = odd("tool", fmt.Sprintf("%s did not get through: %s", p.name, why), "see docs/network.md, certificates")
	}
	return &f
}

// lastLine is the last line of a text that says something, shortened.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if len(last) > 200 {
		last = strings.ToValidUTF8(last[:200], "") + "…"
	}
	return last
}

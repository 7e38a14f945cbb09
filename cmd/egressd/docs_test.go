package main

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
	"github.com/egressd/egressd/policy"
)

// What the documents say is tried. The info string of a fenced block says how:
//
//	yaml              loads, and this version enforces it
//	yaml bad          does not load
//	yaml later        loads, and this version refuses to enforce it
//	yaml file=NAME    as yaml, and is written to NAME for the commands below
//	console run       each "$ " line runs, and the lines below it are in what it
//	                  says, in this order; … stands for anything
//	console           is only shown

// docBlock is a fenced block.
type docBlock struct {
	file, lang, mark, text string
	line                   int
}

func (b docBlock) has(word string) bool { return slices.Contains(strings.Fields(b.mark), word) }

// name is NAME of file=NAME.
func (b docBlock) name() string {
	for _, w := range strings.Fields(b.mark) {
		if name, ok := strings.CutPrefix(w, "file="); ok {
			return name
		}
	}
	return ""
}

const docRoot = "../.."

// docsVariable hands the documents' folder on to copies of the test binary,
// which work elsewhere.
const docsVariable = "EGRESSD_TEST_DOCS"

// documents are the names of all documents, below docRoot.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/recipes/*.md"} {
		found, err := filepath.Glob(filepath.Join(cmp.Or(os.Getenv(docsVariable), docRoot), pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if len(names) < 10 {
		t.Fatalf("only %d documents were found", len(names))
	}
	return names
}

func readDocument(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func blocks(t *testing.T, file, text string) []docBlock {
	t.Helper()
	var all []docBlock
	var open *docBlock
	n := 0
	for line := range strings.Lines(text) {
		n++
		switch fence, isFence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```"); {
		case isFence && open == nil:
			lang, mark, _ := strings.Cut(fence, " ")
			open = &docBlock{file: file, lang: lang, mark: mark, line: n}
		case isFence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block has no end", file, open.line)
	}
	return all
}

func TestDocsPolicies(t *testing.T) {
	seen := 0
	for _, file := range documents(t) {
		for _, b := range blocks(t, file, readDocument(t, file)) {
			if b.lang != "yaml" {
				continue
			}
			seen++
			none := func(string) ([]byte, error) { return nil, os.ErrNotExist }
			p, problems := policy.Load("/home/ann/egressd.yaml", []byte(b.text), policy.Options{Home: "/home/ann", ReadFile: none})
			switch err := problems.Err(); {
			case b.has("bad"):
				if err == nil {
					t.Errorf("%s:%d: the policy loads", b.file, b.line)
				}
			case err != nil:
				t.Errorf("%s:%d: the policy does not load: %v", b.file, b.line, err)
			case (unsupported(p, true) != nil) != b.has("later"):
				t.Errorf("%s:%d: is the policy enforced by this version? %v", b.file, b.line, unsupported(p, true))
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d policies were found", seen)
	}
}

var docLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestDocsLinks(t *testing.T) {
	for _, file := range documents(t) {
		text := readDocument(t, file)
		for _, b := range blocks(t, file, text) {
			text = strings.Replace(text, b.text, "", 1)
		}
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			to := file
			if path != "" {
				to = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", file, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(readDocument(t, to)), anchor) {
				t.Errorf("%s: the link %s: no heading is called so", file, m[1])
			}
		}
	}
}

// anchors are the names of a document's headings, as GitHub makes them.
func anchors(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			}
			return -1
		}, title))
	}
	return names
}

func TestDocsFlags(t *testing.T) {
	text := readDocument(t, docRoot+"/docs/cli.md")
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if !strings.Contains(text, "`"+cmd.CommandPath()) {
			t.Errorf("docs/cli.md does not name %s", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, "`--"+f.Name) {
				t.Errorf("docs/cli.md does not name --%s of %s", f.Name, cmd.CommandPath())
			}
		})
		for _, c := range cmd.Commands() {
			if cmd.Name() != "completion" {
				walk(c)
			}
		}
	}
	walk(root)
}

// The closed set of reasons: those that this version gives, and those that
// come with later parts.
var (
	reasonsGiven = strings.Fields(`rule no_rule port_not_allowed method_not_allowed path_not_allowed query_not_allowed deny_rule
		expired bad_host bad_request ambiguous_path authority_mismatch private_address protocol upgrade_not_allowed body_too_large
		rate_limited revoked credential_leak credential_plaintext credential_unavailable credential_foreign
		overloaded audit_unavailable proxy_auth dns connect upstream_tls upstream_reset timeout client_gone internal
		not_granted approval_denied approval_timeout`)
	reasonsLater  = strings.Fields(`approved learned`)
	reasonHeading = regexp.MustCompile("(?m)^### `([a-z_]+)`$")
)

func TestDocsReasons(t *testing.T) {
	text := readDocument(t, docRoot+"/docs/troubleshooting.md")
	_, after, ok := strings.Cut(text, "\n## Reasons\n")
	section, _, end := strings.Cut(after, "\n## ")
	if !ok || !end {
		t.Fatal("docs/troubleshooting.md has no section Reasons with another behind it")
	}
	if all := slices.Sorted(slices.Values(slices.Concat(reasonsGiven, reasonsLater))); !slices.Equal(all, slices.Sorted(slices.Values(audit.Reasons()))) {
		t.Errorf("the reasons of this test are not the closed set: %v", all)
	}
	var found []string
	for _, m := range reasonHeading.FindAllStringSubmatch(section, -1) {
		found = append(found, m[1])
	}
	for _, reason := range reasonsGiven {
		if !slices.Contains(found, reason) {
			t.Errorf("docs/troubleshooting.md does not explain %s", reason)
		}
	}
	for i, reason := range found {
		if !slices.Contains(reasonsGiven, reason) || slices.Contains(found[:i], reason) {
			t.Errorf("docs/troubleshooting.md explains %s, which is no reason of this version, or twice", reason)
		}
	}
	for _, reason := range reasonsLater {
		if !strings.Contains(text, "`"+reason+"`") {
			t.Errorf("docs/troubleshooting.md does not say that %s comes later", reason)
		}
	}
}

// The host that the commands of documents see: the names of docOrigin have a
// public address that leads to it, with certificates this host trusts.
const exampleAddr = "203.0.112.7" // public, beside the documentation's range

func TestDocsConsole(t *testing.T) {
	proxytest.Namespaced(t, func(t *testing.T, _ string) {
		all := map[string][]docBlock{}
		for _, file := range documents(t) {
			all[file] = blocks(t, file, readDocument(t, file))
		}
		h := newSandboxHost(t)
		h.body["example.com"] = "<title>Example Domain</title>\n"
		h.example(t)
		ran := 0
		for _, user := range clientUsers {
			for file, list := range all {
				t.Run(filepath.Base(file)+"/"+user.name, func(t *testing.T) {
					ran += h.follow(t, user, filepath.Base(file), list)
					_ = syscall.Kill(-1, syscall.SIGKILL) // what the document left running
				})
			}
		}
		if ran < 20 {
			t.Errorf("only %d commands were run", ran)
		}
	})
}

// example makes docOrigin's names real: an address that is routed to this host, but
// is no address of it.
func (h *sandboxHost) example(t *testing.T) {
	t.Helper()
	ca := proxytest.NewCA(t)
	roots, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Fatal(err)
	}
	h.over(t, "/etc/ssl/certs/ca-certificates.crt", string(roots)+string(ca.PEM()))
	h.over(t, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"+exampleAddr+" "+docHosts+"\n")
	if out, err := exec.CommandContext(t.Context(), "ip", "route", "add", "local", exampleAddr, "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("routing the address of example.com: %v: %s", err, out)
	}
	for port, secure := range map[string]*tls.Config{":443": ca.ServerConfig("example.com", "", "h2", "http/1.1"), ":80": nil} {
		l, err := net.Listen("tcp", exampleAddr+port)
		if err != nil {
			t.Fatal(err)
		}
		if secure != nil {
			l = tls.NewListener(l, secure)
		}
		srv := &http.Server{Handler: docOrigin{h}, TLSConfig: secure}
		t.Cleanup(func() { srv.Close() })
		go func() { _ = srv.Serve(l) }()
	}
}

// follow does what a document says, as a reader would who types it, and
// returns the number of commands.
func (h *sandboxHost) follow(t *testing.T, user clientUser, name string, list []docBlock) (ran int) {
	t.Helper()
	home := filepath.Join("/home", user.name+"-"+strings.TrimSuffix(name, ".md"))
	work := filepath.Join(home, "proj")
	bin := "/srv/bin"
	for _, err := range []error{os.MkdirAll(work, 0o755), os.MkdirAll(bin, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(h.bin, bin+"/egressd"); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	own := func(path string) {
		if err := os.Lchown(path, user.uid, user.uid); err != nil {
			t.Fatal(err)
		}
	}
	own(home)
	own(work)
	for _, b := range list {
		if file := b.name(); file != "" {
			path := filepath.Join(work, file)
			h.write(t, path, []byte(b.text), 0o644)
			own(path)
		}
		if b.lang != "console" || !b.has("run") {
			continue
		}
		for _, step := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			ran++
			out := h.enter(t, user, home, work, bin, command)
			for line := range strings.Lines(want) {
				line = strings.TrimRight(line, "\n")
				if line == "" || line == "…" {
					continue
				}
				words := strings.Split(line, "…")
				for i := range words {
					words[i] = regexp.QuoteMeta(words[i])
				}
				at := regexp.MustCompile(`(?m)^` + strings.Join(words, ".*") + `$`).FindStringIndex(out)
				if at == nil {
					t.Errorf("%s:%d: $ %s\nshould say %q, but what is left of its output is:\n%s", b.file, b.line, command, line, cut(out))
					break
				}
				out = out[at[1]:]
			}
		}
	}
	return ran
}

// enter runs a command of a document and returns what it printed. A file takes
// the output, since what goes on in the background would hold a pipe open.
func (h *sandboxHost) enter(t *testing.T, user clientUser, home, work, bin, command string) string {
	t.Helper()
	name := filepath.Join(home, "output")
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, out, out
	cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "TERM=xterm", "SHELL=/bin/sh", "USER=" + user.name, "LOGNAME=" + user.name}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user.credential()}
	_ = cmd.Run() // a status other than 0 is often what is shown
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

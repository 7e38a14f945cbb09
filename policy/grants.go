package policy

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/egressd/egressd/credbroker"
)

// Grant is one thing that accepting a policy means, in words.
type Grant struct {
	// Where is "" for the policy's own environment, else "terminal NAME" or
	// "agent NAME".
	Where string
	// What is one of: backend, network, rule, private, reads, writes, home,
	// variable, credential, runs, pins, record.
	What string
	// Text is printable: what the file says in it is escaped, since whoever
	// wrote the file would otherwise draw on the reader's terminal.
	Text string
}

// Grants tells what the policy opens and which commands it runs, terminals and
// agents included: what `egressd trust` shows before it asks.
func (p *Policy) Grants() []Grant {
	g := &grants{}
	g.environment("", &p.Environment)
	for _, name := range slices.Sorted(maps.Keys(p.Terminals)) {
		t := p.Terminals[name]
		if !t.Inherit {
			g.environment("terminal "+name, &t.Environment)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Upstream.Resolve)) {
		g.add("", "pins", "%s is dialled at %s, whatever that address is", name, p.Upstream.Resolve[name])
	}
	if p.Upstream.Proxy != nil {
		g.add("", "pins", "requests go through the proxy %s", p.Upstream.Proxy.Redacted())
	}
	for _, f := range p.Upstream.CAFiles {
		g.add("", "pins", "origins may be vouched for by %s", f)
	}
	for _, c := range p.Commands() {
		if c.Where == "" || strings.HasPrefix(c.Where, "terminal ") {
			g.add(c.Where, "runs", "%s on the host, for %s", strings.Join(quoteWords(c.Argv), " "), c.For)
		}
	}
	for _, r := range p.records {
		g.add("", "record", "written to %s", r.text)
	}
	if p.Audit.OTLP != "" {
		g.add("", "record", "sent to %s", p.Audit.OTLP)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		for _, x := range p.Agents[name].Grants() {
			g.list = append(g.list, Grant{Where: strings.TrimSpace("agent " + printable(name) + " " + x.Where), What: x.What, Text: x.Text})
		}
	}
	return g.list
}

type grants struct{ list []Grant }

func (g *grants) add(where, what, format string, args ...any) {
	g.list = append(g.list, Grant{Where: printable(where), What: what, Text: printable(fmt.Sprintf(format, args...))})
}

func (g *grants) environment(where string, e *Environment) {
	s := &e.Sandbox
	if s.Type == BackendNone {
		g.add(where, "backend", "none: programs run without a sandbox")
	}
	if e.Cwd != "" {
		g.add(where, "reads", "%s, the working folder", e.Cwd)
	}
	for _, p := range s.ReadPaths {
		g.add(where, "reads", "%s", p)
	}
	for _, p := range slices.Concat(s.WritePaths, s.WriteFiles) {
		g.add(where, "writes", "%s", p)
	}
	if s.Home != "" {
		g.add(where, "home", "%s, kept between runs", s.Home)
	}
	for _, n := range s.AllowHidden {
		switch {
		case n == ".venv":
		case len(s.WritePaths) == 0:
			g.add(where, "reads", "%s, a hidden name", n)
		case n == ".git":
			g.add(where, "writes", "%s, a hidden name, in what may be written, but for its config and hooks", n)
		default:
			g.add(where, "writes", "%s, a hidden name, in what may be written", n)
		}
	}
	switch {
	case e.Unfiltered():
		g.add(where, "network", "NOT filtered: the host's network, its loopback and its abstract sockets")
	case !s.AllowNetwork:
		g.add(where, "network", "none")
	}
	for _, r := range e.Rules {
		g.add(where, "rule", "%s", r.String())
	}
	if e.Private.All {
		g.add(where, "private", "every private address")
	}
	for _, p := range e.PrivateList {
		g.add(where, "private", "%s", p)
	}
	for _, v := range s.EnvPassthrough {
		g.add(where, "variable", "%s", v)
	}
	for _, c := range e.Credentials {
		var hosts []string
		for _, t := range c.Targets {
			hosts = append(hosts, t.Text)
		}
		if c.Type == credbroker.DatabricksCLI {
			hosts = []string{"the workspaces they name"}
		}
		bound := ""
		if len(hosts) > 0 {
			bound = " for " + strings.Join(hosts, ", ")
		}
		g.add(where, "credential", "%s: %s%s", c.ID, sourceText(c), bound)
	}
}

// sourceText says where a secret lies.
func sourceText(c credbroker.Entry) string {
	s := c.Source
	switch {
	case c.Canary:
		return "a canary"
	case s == nil:
		return "the profiles " + strings.Join(c.Profiles, ", ")
	case s.Env != "":
		return "the variable " + s.Env
	case s.File != "":
		return "the file " + s.File
	case s.Keyring != nil:
		return "the keyring's item of service " + s.Keyring.Service + ", user " + s.Keyring.User
	case s.Vault != nil:
		return "the field " + s.Vault.Field + " of the Vault's " + s.Vault.Path
	}
	text := "what " + strings.Join(quoteWords(s.Command), " ") + " prints"
	if i := slices.IndexFunc(s.Command, forShell); i >= 0 && !shells[path.Base(s.Command[0])] {
		text += " (no shell runs: " + s.Command[i] + " is passed on as it is written)"
	}
	return text
}

// shells read words that forShell finds in a program of theirs.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "fish": true}

var shellWord = regexp.MustCompile("^(\\|\\|?|&&?|;|[0-9]*(>>?|<))$|^[0-9]*>|\\$[A-Za-z_{(]|`")

// forShell says that a word looks as if a shell were to read it.
func forShell(word string) bool {
	return !strings.ContainsAny(word, " \t\n") && shellWord.MatchString(word)
}

// Command is a program that egressd runs on the host because of a policy.
type Command struct {
	// Where is as in Grant; For says what it is run for.
	Where, For string
	Argv       []string
}

// Commands are the programs that the policy runs on the host: sources, hooks
// and what types of credentials call, terminals and agents included.
func (p *Policy) Commands() []Command {
	list := p.Environment.commands("")
	for _, name := range slices.Sorted(maps.Keys(p.Terminals)) {
		if t := p.Terminals[name]; !t.Inherit && !t.Environment.inherited {
			list = append(list, t.Environment.commands("terminal "+name)...)
		}
	}
	if p.Approval.Hook != nil {
		list = append(list, Command{For: "approval.hook", Argv: p.Approval.Hook})
	}
	if p.Tools.OnCall != nil {
		list = append(list, Command{For: "tools.on_call", Argv: p.Tools.OnCall})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		for _, c := range p.Agents[name].Commands() {
			c.Where = strings.TrimSpace("agent " + name + " " + c.Where)
			list = append(list, c)
		}
	}
	return list
}

// EnvironmentCommands are those of the environment itself, of sources and of
// what types of credentials call.
func (e *Environment) EnvironmentCommands() []Command { return e.commands("") }

func (e *Environment) commands(where string) []Command {
	var list []Command
	for _, c := range e.Credentials {
		for _, s := range sources(c) {
			if s.Command != nil {
				list = append(list, Command{Where: where, For: c.ID, Argv: s.Command})
			}
		}
		for _, profile := range c.Profiles {
			list = append(list, Command{Where: where, For: c.ID, Argv: []string{"databricks", "auth", "token", "--profile", profile}})
		}
	}
	return list
}

// SecretFiles are the files that the policy names and that hold a secret or
// the record, of every environment: they are masked wherever a grant opens
// them.
func (p *Policy) SecretFiles() []string {
	var list []string
	add := func(paths ...string) {
		for _, f := range paths {
			if f != "" && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	add(p.Audit.File, p.Audit.SQLite)
	if p.TLS.CA != nil {
		add(p.TLS.CA.Key)
	}
	for _, host := range slices.Sorted(maps.Keys(p.Upstream.ClientCertificates)) {
		add(p.Upstream.ClientCertificates[host].Key)
	}
	for _, e := range p.environments() {
		for _, c := range e.Credentials {
			for _, s := range sources(c) {
				add(s.File)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		add(p.Agents[name].SecretFiles()...)
	}
	return list
}

// Pins are the policy's own files, those that it includes and those of its
// agents, there or not: what a sandbox must not be able to change or make.
func (p *Policy) Pins() []string {
	var list []string
	for _, f := range p.Files {
		list = append(list, f.Path)
	}
	return append(list, p.absent...)
}

// quoteWords shows an argv so that its words can be told apart.
func quoteWords(argv []string) []string {
	out := make([]string, len(argv))
	for i, word := range argv {
		out[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\") {
			out[i] = quoted(word)
		}
	}
	return out
}

// sources are all the places an entry is read from.
func sources(c credbroker.Entry) []*credbroker.Source {
	var list []*credbroker.Source
	for _, s := range []*credbroker.Source{c.Source, c.ClientSecret, c.SessionToken} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

package policy

import (
	"slices"
	"strings"
)

// bare is the environment of a file that has none: it denies everything.
func (l *loader) bare() Environment {
	return Environment{Sandbox: l.bareSandbox(), HasRules: true, Rules: nil}
}

func (l *loader) bareSandbox() Sandbox {
	s := Sandbox{AllowHidden: []string{".venv"}, ScanMaxEntries: 50000, ScanOverflow: "warn", AllowNetwork: true, OnLeak: "deny", Redact: "on"}
	switch l.opts.Platform {
	case "linux":
		s.Type = BackendBwrap
	case "darwin":
		s.Type = BackendSeatbelt
	}
	return s
}

// topEnvironment reads a bare sandbox or an os_env.
func (d *doc) topEnvironment(top *mapping, p, parent *Policy) {
	bare, env := top.entry("sandbox"), top.entry("os_env")
	if bare != nil && env != nil {
		later, other := env, "sandbox"
		if bare.key.after(env.key) {
			later, other = bare, "os_env"
		}
		d.fail(later.key, KindConflict, "a policy is a sandbox or an os_env, not both: %s stands above", other)
	}
	var from *Environment
	if parent != nil {
		from = &parent.Environment
	}
	if bare != nil && bare.ok {
		e := d.bare()
		d.sandbox(bare.value, bare.key, &e, from)
		d.crossEnvironment(&e)
		p.Environment = e
	}
	if env != nil && env.ok {
		p.Environment, _ = d.environment(env.value, from)
	}
}

// environment reads an os_env; inherited says that it is its parent's.
func (d *doc) environment(v value, parent *Environment) (e Environment, inherited bool) {
	e = d.bare()
	if isText(v) {
		switch {
		case v.node.Value != "inherit" && parent == nil:
			d.mistyped(v, "a mapping")
		case v.node.Value != "inherit":
			d.fail(v.spot(), KindValue, "%s is neither a mapping nor inherit", quoted(v.node.Value))
		case parent == nil:
			d.fail(v.spot(), KindValue, "there is no parent here to inherit from")
		default:
			e = *parent
			e.inherited = true
			return e, true
		}
		return e, false
	}
	m := d.mapping(v, "os_env")
	if m == nil {
		return e, false
	}
	kind := "caller_process"
	m.word("type", &kind, "caller_process")
	e.Cwd = m.path("cwd")
	m.flag("fork", &e.Fork)
	m.flag("start_in_scratch", &e.StartInScratch)
	e.pos.fork, e.pos.scratch = m.key("fork"), m.key("start_in_scratch")
	if s := m.entry("sandbox"); s != nil && s.ok {
		d.sandbox(s.value, s.key, &e, parent)
	}
	m.done(misplaced)
	d.crossEnvironment(&e)
	return e, false
}

// sandbox reads a sandbox: a mapping, its type alone, or its parent's.
func (d *doc) sandbox(v value, key spot, e *Environment, parent *Environment) {
	e.pos.sandbox = key
	if isText(v) && v.node.Value == "inherit" {
		if parent == nil {
			d.fail(v.spot(), KindValue, "there is no parent here to inherit from")
			return
		}
		own := e.pos
		e.HasSandbox, e.Sandbox, e.HasRules, e.Rules, e.RulePos = parent.HasSandbox, parent.Sandbox, parent.HasRules, parent.Rules, parent.RulePos
		e.Private, e.PrivateList, e.Credentials = parent.Private, parent.PrivateList, parent.Credentials
		e.inherited = true
		e.pos = places{sandbox: key, fork: own.fork, scratch: own.scratch}
		// Relative grants are below this environment's folder now.
		for _, p := range slices.Concat(e.Sandbox.WritePaths, e.Sandbox.WriteFiles, []string{e.Sandbox.Home}) {
			if p != "" {
				e.pos.writable = append(e.pos.writable, grant{d.granted(p, e.Cwd), key})
			}
		}
		return
	}
	e.HasSandbox, e.HasRules = true, false
	s := &e.Sandbox
	if isText(v) {
		d.backend(v, s)
		return
	}
	m := d.mapping(v, "sandbox")
	if m == nil {
		return
	}
	if t, ok := m.get("type"); ok {
		d.backend(t, s)
	}
	d.sandboxPaths(m, e)
	m.flag("allow_network", &s.AllowNetwork)
	e.pos.network = m.key("allow_network")
	passed, at := m.strings("env_passthrough", "names of variables", variableName)
	s.EnvPassthrough = passed
	for i := range at {
		e.pos.passed = append(e.pos.passed, grant{passed[i], at[i]})
	}
	m.word("on_leak", &s.OnLeak, "deny", "kill")
	m.word("redact", &s.Redact, "on", "strict")
	s.LeakPass, _ = m.strings("leak_pass", "hosts", plainHost)
	for i, h := range s.LeakPass {
		s.LeakPass[i] = canonical(h)
	}
	m.duration("timeout", &s.Timeout)
	d.sandboxLimits(m, s)
	d.private(m, e)
	d.rules(m, e)
	d.credentials(m, e)
	m.done(map[string]string{
		"cwd": "it belongs to os_env", "fork": "it belongs to os_env", "start_in_scratch": "it belongs to os_env",
		"credentials": "is credential_proxy meant?",
		"tests":       "it stands at the top of the file", "include": "it stands at the top of the file",
	})
}

// backend reads the word for a backend; "" where it is wrong, so that nothing
// is said of what it goes with.
func (d *doc) backend(v value, into *Sandbox) {
	into.Type, into.TypeGiven = "", true
	s, ok := d.text(v)
	switch {
	case !ok:
	case s == BackendBwrap || s == BackendFirejail || s == BackendSeatbelt || s == BackendNone:
		into.Type = s
	case s == "inherit":
		d.fail(v.spot(), KindValue, "inherit is no backend: write sandbox: inherit")
	default:
		d.fail(v.spot(), KindValue, "%s is no backend: linux_bwrap, darwin_seatbelt, firejail or none", quoted(s))
	}
}

func (d *doc) sandboxPaths(m *mapping, e *Environment) {
	s := &e.Sandbox
	take := func(name string, dst *[]string, into *[]grant) {
		list, at := m.paths(name)
		*dst = list
		for i := range at {
			*into = append(*into, grant{d.granted(list[i], e.Cwd), at[i]})
		}
	}
	take("read_paths", &s.ReadPaths, &e.pos.reads)
	take("write_paths", &s.WritePaths, &e.pos.writable)
	take("write_files", &s.WriteFiles, &e.pos.writable)
	var masks []grant
	take("mask_paths", &s.MaskPaths, &masks)
	for _, g := range masks {
		e.pos.masks = append(e.pos.masks, g.text)
	}
	if v, ok := m.get("home"); ok {
		if home := d.filled(v); home != "" && home != "private" {
			s.Home = home
			e.pos.writable = append(e.pos.writable, grant{d.granted(home, e.Cwd), v.spot()})
		}
	}
	if m.has("cwd_allow_hidden") {
		s.AllowHidden, _ = m.strings("cwd_allow_hidden", "names", func(n string) string {
			if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
				return quoted(n) + " is not one name: no slash, not . or .."
			}
			return ""
		})
	}
	m.flag("cwd_hidden_scan_recursive", &s.ScanRecursive)
	m.number("cwd_hidden_scan_max_entries", &s.ScanMaxEntries, 0)
	m.word("cwd_hidden_scan_overflow", &s.ScanOverflow, "warn", "error", "unlimited")
}

// granted spells a path of a sandbox out as far as the file alone tells: the
// caller's folder, which it does not, is taken for the file's own.
func (d *doc) granted(written, cwd string) string {
	if cwd == "" {
		return d.expand(written)
	}
	return Expand(written, cwd, d.opts.Home)
}

func (d *doc) sandboxLimits(m *mapping, s *Sandbox) {
	v, ok := m.get("limits")
	if !ok {
		return
	}
	lm := d.mapping(v, "sandbox.limits")
	if lm == nil {
		return
	}
	lm.size("memory", &s.Limits.Memory)
	lm.number("processes", &s.Limits.Processes, 1)
	lm.number("open_files", &s.Limits.OpenFiles, 1)
	lm.number("cpu_seconds", &s.Limits.CPUSeconds, 1)
	elsewhere := map[string]string{}
	for _, k := range proxyLimits {
		elsewhere[k] = "it belongs to limits at the top of the file"
	}
	lm.done(elsewhere)
}

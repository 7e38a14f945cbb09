package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"runtime"
	"slices"

	"gopkg.in/yaml.v3"
)

// Options is what Load needs to know beside the file. The zero value loads for
// this system and reads no further file.
type Options struct {
	// Platform is the system to load for, as runtime.GOOS spells it; "" is
	// this one. It decides the default backend.
	Platform string
	// Home is what a leading ~ stands for; "" leaves it as written.
	Home string
	// ReadFile reads the files that the policy includes or names as agents;
	// such as ReadFile. nil reads none: all are missing.
	ReadFile func(path string) ([]byte, error)
	// NoLint leaves warnings out, for a start that does not show them: to
	// compare every rule with every other takes longer than to read them.
	NoLint bool
}

// Load reads a policy. Its problems are all of them, errors and warnings,
// sorted by place; with an error the policy is nil. path is the file's name:
// it stands in problems, its folder is what relative paths are below, and a
// file named config.yaml is an agent's, whose unknown sections are ignored.
func Load(path string, data []byte, o Options) (*Policy, Problems) {
	if o.Platform == "" {
		o.Platform = runtime.GOOS
	}
	l := &loader{opts: o, rank: map[string]int{}}
	p := l.policy(path, data, nil)
	problems := l.problems.sorted(l.rank)
	if p == nil || len(problems.Errors()) > 0 {
		return nil, problems.Errors()
	}
	p.Files, p.Missing, p.Notes, p.absent = l.files, l.missing, l.notes, l.absent
	p.Hash = p.hash()
	return p, problems
}

// loader is one call of Load: what all files of a policy share.
type loader struct {
	opts     Options
	problems Problems
	missing  Problems
	absent   []string
	notes    Problems
	files    []File
	// rank is the order in which files were read.
	rank map[string]int
	// reads counts the files that were read.
	reads int
	// chain are the files being read now, to notice one that includes itself.
	chain []string
}

// maxFiles bounds how many files one policy reads, each counted as often as it
// is named.
const maxFiles = 1000

// enterFile notes that a file is read.
func (l *loader) enterFile(file, role string, data []byte) {
	if _, ok := l.rank[file]; !ok {
		l.rank[file] = len(l.rank)
		l.files = append(l.files, File{Path: file, Role: role, Sum: sha256.Sum256(data)})
	}
	l.chain = append(l.chain, file)
}

func (l *loader) leaveFile() { l.chain = l.chain[:len(l.chain)-1] }

// open parses a file. root is nil where it is empty or no YAML.
func (l *loader) open(file string, data []byte) (d *doc, root *yaml.Node, ok bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d = &doc{loader: l, file: file, src: newSource(data), refused: map[*yaml.Node]bool{}, active: map[*yaml.Node]bool{}, budget: maxAliased}
	root, problem := parse(data)
	if problem != nil {
		problem.File = file
		l.problems = append(l.problems, *problem)
		return d, nil, false
	}
	if root == nil {
		return d, nil, true
	}
	d.checkTags(root)
	if v, ok := d.value(root, spot{1, 1}); !ok || v.empty() {
		return d, nil, ok
	}
	return d, root, true
}

// policy reads a whole file; parent is the environment of the file that names
// this one as an agent's, nil at the top. It is nil where the file is no YAML.
func (l *loader) policy(file string, data []byte, parent *Policy) *Policy {
	role := "policy"
	if parent != nil {
		role = "agent"
	}
	l.enterFile(file, role, data)
	defer l.leaveFile()
	p := &Policy{Path: file, sections: map[string]bool{}}
	p.defaults()
	p.Environment = l.bare()
	d, root, ok := l.open(file, data)
	if !ok {
		return nil
	}
	var top *mapping
	if root != nil {
		v, _ := d.value(root, spot{1, 1})
		if top = d.mapping(v, "a policy"); top == nil {
			return nil
		}
		for _, e := range top.entries {
			p.sections[e.name] = true
		}
	}
	d.topEnvironment(top, p, parent)
	d.includes(top, p)
	d.terminals(top, p)
	d.upstream(top, p)
	d.audit(top, p)
	d.limits(top, p)
	d.tls(top, p)
	d.approval(top, p)
	d.metrics(top, p)
	d.tools(top, p)
	d.tests(top, p)
	d.unknownSections(top)
	d.crossFile(p)
	d.agents(p)
	return p
}

// unknownSections refuses keys that are none; an agent's file is its owner's,
// and holds sections of others beside ours.
func (d *doc) unknownSections(top *mapping) {
	if top == nil {
		return
	}
	if path.Base(d.file) != "config.yaml" {
		top.done(misplaced)
		return
	}
	for _, e := range top.entries {
		if !slices.Contains(top.asked, e.name) {
			text := quoted(e.name) + " is none of egressd's sections"
			if where := misplaced[e.name]; where != "" {
				text += ": " + where
			}
			d.notes = append(d.notes, Problem{File: d.file, Line: e.key.line, Col: e.key.col, Kind: NoteIgnored, Text: text, Warning: true})
		}
	}
}

// misplaced says of keys that are easily written too far up where they belong.
var misplaced = func() map[string]string {
	where := map[string]string{}
	for _, key := range []string{"read_paths", "write_paths", "write_files", "cwd_allow_hidden", "mask_paths",
		"cwd_hidden_scan_recursive", "cwd_hidden_scan_max_entries", "cwd_hidden_scan_overflow", "home", "allow_network",
		"egress_rules", "egress_allow_private_destinations", "env_passthrough", "credential_proxy", "on_leak", "leak_pass",
		"redact", "timeout"} {
		where[key] = "it belongs below sandbox:"
	}
	for _, key := range []string{"cwd", "fork", "start_in_scratch"} {
		where[key] = "it belongs below os_env:"
	}
	return where
}()

// hash is over every file and every added rule, each with its length before
// it, so that no text can pass from one to the other.
func (p *Policy) hash() string {
	h := sha256.New()
	for _, f := range p.Files {
		h.Write([]byte(f.Role))
		h.Write(f.Sum[:])
	}
	for _, rule := range p.added {
		sum := sha256.Sum256([]byte(rule))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

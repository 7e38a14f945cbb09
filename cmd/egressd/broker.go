package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/credbroker"
	secrets "github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/policy"
)

// hostPrograms is how programs are started on the host: looked up where no
// sandbox can write, with a fixed environment.
type hostPrograms struct {
	find   func(name string) (string, error)
	env    []string
	unsafe []string
}

// newHostPrograms knows the folders that the sandbox can write to, or could have
// yesterday, such as the working folder ("" for none). The system's own folders
// as such are none. Under sudo the home is the caller's.
func newHostPrograms(cwd string, grants []mount.Grant, home string) *hostPrograms {
	var writable []string
	if cwd != "" && !mount.InBase(cwd) {
		writable = append(writable, cwd)
	}
	for _, g := range grants {
		if g.Write {
			writable = append(writable, g.Path)
		}
	}
	unsafe := belowRoot(writable)
	environ := slices.Insert(os.Environ(), 0, "HOME="+home) // the first of a name counts
	path := os.Getenv("PATH")
	return &hostPrograms{
		find: secrets.Finder(path, unsafe), env: secrets.Environment(environ, secrets.SafePath(path, unsafe)), unsafe: unsafe,
	}
}

// belowRoot spells the root folder out: granted, it leaves the system's own
// folders as they are.
func belowRoot(folders []string) []string {
	var list []string
	for _, dir := range folders {
		if dir != "/" {
			list = append(list, dir)
			continue
		}
		entries, err := os.ReadDir("/")
		if err != nil {
			return folders // nothing is safe then
		}
		for _, e := range entries {
			if at := "/" + e.Name(); !mount.InBase(at) {
				list = append(list, at)
			}
		}
	}
	return list
}

// arm makes the broker of a version of the policy: every source is read, and
// what cannot be had is an error that names its entry. previous is the broker
// that is followed, nil at a start.
func (s *session) arm(ctx context.Context, e *enforcement, previous *credbroker.Broker) error {
	for _, c := range e.policy.EnvironmentCommands() {
		if err := secrets.CheckCommand(c.Argv, s.dirs.home, s.programs.find, s.programs.unsafe); err != nil {
			return &credbroker.StartError{Entry: c.For, Err: err}
		}
	}
	var onLeak func(string)
	if e.policy.Sandbox.OnLeak == "kill" {
		onLeak = s.onLeak
	}
	b, err := credbroker.New(ctx, credbroker.Config{
		Entries: e.policy.Credentials, LeakPass: e.policy.Sandbox.LeakPass, Strict: e.policy.Sandbox.Redact == "strict", Previous: previous, OnLeak: onLeak,
		Warn: s.warn,
		Sources: secrets.Config{
			Getenv: os.Getenv, Home: s.dirs.home, Env: s.programs.env, LookPath: s.programs.find, Transport: e.calls, Now: time.Now,
		},
	})
	if err != nil {
		return err
	}
	for _, c := range e.policy.Credentials {
		if len(c.Targets) > 0 && !slices.ContainsFunc(c.Targets, func(t credbroker.Target) bool { return policy.Reaches(e.policy.Rules, t) }) {
			s.warn(fmt.Sprintf("credential %s: no rule reaches its host, so it is never attached", c.ID))
		}
	}
	for id, targets := range b.Learned() { // check cannot see these
		for _, t := range targets {
			if !policy.Reaches(e.policy.Rules, t) {
				s.warn(fmt.Sprintf("credential %s: no rule reaches %s, so it is never attached there", id, net.JoinHostPort(t.Host, strconv.Itoa(t.Port))))
			}
		}
	}
	e.broker = b
	e.proxy.Broker = &observed{Broker: b, session: s}
	s.broker.Store(b)
	return nil
}

// mask is text as it may be recorded. Before there is a broker there is no
// secret.
func (s *session) mask(text string) string {
	if b := s.broker.Load(); b != nil {
		return b.Mask(text)
	}
	return text
}

// observed is a broker whose session hears which credentials were used, and which
// could not be had.
type observed struct {
	*credbroker.Broker
	session  *session
	troubles sync.Map // those that were told
}

func (o *observed) RoundTrip(r *http.Request, send func(*http.Request) (*http.Response, error), note func(kind, verdict, credential string)) (*http.Response, error) {
	res, err := o.Broker.RoundTrip(r, send, func(kind, verdict, credential string) {
		note(kind, verdict, credential)
		if kind == string(audit.KindCredential) && verdict == "allow" {
			o.session.used.LoadOrStore(credential, true)
		}
	})
	// Neither the answer nor the record tells what a source failed of.
	if text := credbroker.Trouble(err); text != "" {
		if _, told := o.troubles.LoadOrStore(text, true); !told {
			o.session.warn(text)
		}
	}
	return res, err
}

// warn tells the user what they should know; with -q it does not. Where a
// program has made the terminal raw a line needs its carriage return.
func (s *session) warn(text string) {
	end := "\n"
	if term.IsTerminal(int(os.Stderr.Fd())) {
		end = "\r\n"
	}
	if s.logger.Enabled(context.Background(), slog.LevelWarn) {
		fmt.Fprintf(os.Stderr, "egressd: %s%s", plainText(text), end)
	}
}

// gitVariables hand settings to git, behind those that env hands over already.
func gitVariables(env []string, settings []credbroker.GitSetting) []string {
	if len(settings) == 0 {
		return nil
	}
	n := 0
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "GIT_CONFIG_COUNT="); ok {
			n, _ = strconv.Atoi(v) // what git would refuse is no settings
			n = max(n, 0)
		}
	}
	out := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(n+len(settings))}
	for i, s := range settings {
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n+i, s.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n+i, s.Value))
	}
	return out
}

// sourceVariables are the variables of egressd's own that hold a secret: they
// are not passed on, whatever their names.
func sourceVariables(entries []credbroker.Entry) []string {
	var names []string
	for _, e := range entries {
		for _, s := range sourcesOf(e) {
			if s.Env != "" {
				names = append(names, s.Env)
			}
		}
	}
	return names
}

func sourcesOf(e credbroker.Entry) []*credbroker.Source {
	return slices.DeleteFunc([]*credbroker.Source{e.Source, e.ClientSecret, e.SessionToken}, func(s *credbroker.Source) bool { return s == nil })
}

// exposure refuses policies by which a secret would lie in what a sandbox that
// runs was given: masks are hung at its start, and its variables are set.
func exposure(c netns.Config, home string) func(*policy.Policy) error {
	shown := c.Grants
	if c.HomeSource != "" {
		shown = append(slices.Clone(shown), mount.Grant{Path: c.HomeSource, Write: true})
	}
	shows := func(path string) bool {
		return !slices.Contains(c.Hidden, path) && slices.ContainsFunc(shown, func(g mount.Grant) bool { return within(path, g.Path) })
	}
	return func(p *policy.Policy) error {
		if err := turnable(p, home, shown); err != nil {
			return err
		}
		for _, file := range secretFiles(p, home) {
			if shows(file) {
				return fmt.Errorf("the new policy has a secret in %s, which the sandbox was shown when it started: start it anew", file)
			}
		}
		for _, name := range sourceVariables(p.Credentials) {
			if slices.ContainsFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
				return fmt.Errorf("the new policy has a secret in the variable %s, which the sandbox was given when it started: start it anew", name)
			}
		}
		return nil
	}
}

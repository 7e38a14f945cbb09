package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/egressd/egressd/credbroker"
)

// credentialType says which keys go with a type beside those of every entry,
// and which it needs.
type credentialType struct {
	takes, needs []string
	// targets are filled in where none are written.
	targets []string
	// noSource and noTarget: the type has its own.
	noSource, noTarget bool
}

var githubHosts = []string{"github.com", "gist.github.com", "api.github.com", "uploads.github.com"}

var credentialTypes = map[string]credentialType{
	credbroker.HTTPSBearer:   {},
	credbroker.HTTPSBasic:    {takes: []string{"username"}},
	credbroker.GitHTTPS:      {takes: []string{"username"}},
	credbroker.GHBasic:       {takes: []string{"username"}, targets: githubHosts},
	credbroker.DatabricksCLI: {takes: []string{"profiles", "default"}, needs: []string{"profiles"}, noSource: true, noTarget: true},
	credbroker.HTTPSHeader:   {takes: []string{"header"}, needs: []string{"header"}},
	credbroker.HTTPSQuery:    {takes: []string{"param"}, needs: []string{"param"}},
	credbroker.AWSSigV4:      {takes: []string{"access_key_id", "session_token", "issue"}},
	credbroker.OAuth2: {takes: []string{"token_url", "client_id", "scopes", "grant", "client_secret"},
		needs: []string{"token_url", "client_id"}},
	credbroker.GitHubApp: {takes: []string{"username", "app_id", "installation_id"}, needs: []string{"app_id", "installation_id"}, targets: githubHosts},
}

// ofSomeTypes are the keys that only some types take.
var ofSomeTypes = []string{"username", "header", "param", "profiles", "default", "token_url", "client_id", "scopes",
	"grant", "client_secret", "access_key_id", "session_token", "issue", "app_id", "installation_id"}

// ofTargets are the keys that a canary, which is bound to nothing, does not take.
var ofTargets = []string{"type", "target", "targets", "source", "inject", "own", "ranges", "linger", "preset"}

// credentials reads credential_proxy.
func (d *doc) credentials(m *mapping, e *Environment) {
	entry := m.entry("credential_proxy")
	if entry == nil {
		return
	}
	e.pos.credentials = entry.key
	if !entry.ok {
		return
	}
	items, _ := d.list(entry.value, "a list of entries")
	var ids []spot
	for _, item := range items {
		if isText(item) {
			d.mistyped(item, "a mapping such as {preset: github}")
			continue
		}
		c := &credential{doc: d, at: item.spot()}
		if c.m = d.mapping(item, "a credential"); c.m == nil {
			continue
		}
		c.read(e)
		e.Credentials = append(e.Credentials, c.entry)
		e.pos.entries = append(e.pos.entries, entryPlace{at: c.at, targets: c.spots, secrets: c.secrets, env: c.env})
		ids = append(ids, c.m.valueSpot("id"))
	}
	d.names(e, ids)
}

// credential is an entry that is being read.
type credential struct {
	*doc
	m     *mapping
	at    spot
	entry credbroker.Entry
	// spots are the places of the targets; none for those filled in.
	spots []spot
	// secrets are the variables that sources name; env those of placeholders.
	secrets []string
	env     []grant
}

// valueSpot is the place of a key's value, the zero spot where it is not there.
func (m *mapping) valueSpot(name string) spot {
	if v, ok := m.get(name); ok {
		return v.spot()
	}
	return spot{}
}

func (c *credential) read(e *Environment) {
	m, x := c.m, &c.entry
	x.Inject, x.Own = "missing", "pass"
	m.flag("canary", &x.Canary)
	c.preset()
	if v, ok := m.get("type"); ok {
		c.kind(v)
	}
	c.identity()
	m.word("inject", &x.Inject, "missing", "placeholder")
	m.word("own", &x.Own, "pass", "refuse", "replace")
	m.flag("ranges", &x.Ranges)
	m.duration("linger", &x.Linger)
	c.targets()
	c.typed()
	if m.has("source") {
		x.Source = c.source("source")
	}
	c.needs()
	c.presetGrants(e)
	m.done(map[string]string{"ttl": "it stands in source"})
}

// kind reads the type.
func (c *credential) kind(v value) {
	s, ok := c.text(v)
	if !ok {
		return
	}
	if _, known := credentialTypes[s]; !known {
		c.fail(v.spot(), KindValue, "%s is no type of a credential: %s", quoted(s), strings.Join(slices.Sorted(maps.Keys(credentialTypes)), ", "))
		return
	}
	c.entry.Type = s
}

// identity reads what every entry may have: its name, the variables that hold
// its placeholder, and the placeholder's shape.
func (c *credential) identity() {
	m, x := c.m, &c.entry
	if v, ok := m.get("id"); ok {
		if x.ID = c.filled(v); strings.ContainsFunc(x.ID, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			c.fail(v.spot(), KindValue, "a control character in a name")
		}
	}
	if v, ok := m.get("env"); ok {
		var at []spot
		if isText(v) {
			x.Env, at = []string{v.node.Value}, []spot{v.spot()}
			if why := placeholderName(v.node.Value); why != "" {
				c.fail(v.spot(), KindValue, "%s", why)
			}
		} else if v.node.Kind == sequenceKind {
			x.Env, at = c.strings(v, "names of variables", placeholderName)
		} else {
			c.mistyped(v, "text or a list of names")
		}
		for i := range at {
			c.env = append(c.env, grant{x.Env[i], at[i]})
		}
	}
	if v, ok := m.get("shape"); ok {
		if s, ok := c.text(v); ok {
			if why := shape(s); why != "" {
				c.fail(v.spot(), KindValue, "%s", why)
			}
			x.Shape = s
		}
	}
}

var shapePart = regexp.MustCompile(`\{([0-9]+)\}`)

// shape looks at the form of a placeholder: letters that clients and headers
// take as they are, and {N} for N letters, 20 at least in all.
func shape(s string) string {
	letters := 0
	for _, part := range shapePart.FindAllStringSubmatch(s, -1) {
		n, err := strconv.Atoi(part[1])
		if err != nil || n < 1 || n > 1024 {
			return fmt.Sprintf("%s: {N} is a number of letters from 1 to 1024", quoted(s))
		}
		letters += n
	}
	if strings.Contains(strings.ToLower(s), "oa_cred_") {
		return fmt.Sprintf("%s: oa_cred_ is the mark of usual placeholders, which come without a shape", quoted(s))
	}
	rest := shapePart.ReplaceAllString(s, "")
	if strings.ContainsFunc(rest, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~", r))
	}) {
		return fmt.Sprintf("%s: beside {N} a shape has letters, digits and - . _ ~", quoted(s))
	}
	if letters < 20 || letters > 1024 {
		return fmt.Sprintf("%s has %d letters that are random, and 20 to 1024 are needed", quoted(s), letters)
	}
	return ""
}

// needs looks at what goes together: keys that the type does not take, and
// those that are missing.
func (c *credential) needs() {
	m, x := c.m, &c.entry
	if x.Canary {
		for _, key := range append(slices.Clone(ofTargets), ofSomeTypes...) {
			if m.has(key) {
				c.fail(m.key(key), KindConflict, "a canary is bound to nothing and takes no %s", key)
			}
		}
		m.need("env", "the variable that the canary sits in")
		return
	}
	if x.Type == "" {
		if !m.has("type") && !m.has("preset") {
			m.need("type", "such as https_bearer")
		}
		for _, key := range ofSomeTypes {
			m.has(key)
		}
		return
	}
	c.presetNeeds()
	t := credentialTypes[x.Type]
	for _, key := range ofSomeTypes {
		if m.has(key) && !slices.Contains(t.takes, key) {
			c.fail(m.key(key), KindConflict, "%s does not go with %s", key, x.Type)
		}
	}
	for _, key := range t.needs {
		if !(key == "header" && x.Header != "") { // a preset's
			m.need(key, x.Type+" does not go without it")
		}
	}
	switch {
	case t.noSource && m.has("source"):
		c.fail(m.key("source"), KindConflict, "%s has its secrets from its own configuration", x.Type)
	case !t.noSource && x.Source == nil && !m.has("source"):
		m.need("source", "where the secret lies")
	}
	switch {
	case t.noTarget:
		for _, key := range []string{"target", "targets"} {
			if m.has(key) {
				c.fail(m.key(key), KindConflict, "%s has its hosts from its own configuration", x.Type)
			}
		}
		if m.has("env") {
			c.fail(m.key("env"), KindConflict, "%s shows its placeholders in a file of its own", x.Type)
		}
	case len(x.Targets) == 0 && !m.has("target") && !m.has("targets"):
		m.need("target", "the host that the secret is bound to")
	}
	if x.Type == credbroker.AWSSigV4 {
		c.awsNeeds()
	}
}

// awsNeeds: a key has its id beside it, unless one command tells all.
func (c *credential) awsNeeds() {
	m, x := c.m, &c.entry
	if m.has("access_key_id") {
		return
	}
	if x.Source != nil && x.Source.Command == nil {
		m.need("access_key_id", "only a command that prints credential_process JSON tells it")
	}
	if m.has("session_token") && x.Source != nil && x.Source.Command != nil {
		c.fail(m.key("session_token"), KindConflict, "session_token needs access_key_id beside it: a command that stands for both tells the token too")
	}
}

// names gives every entry its name: the one written, once, else TYPE:TARGET,
// numbered where that repeats.
func (d *doc) names(e *Environment, at []spot) {
	taken, numbers := map[string]bool{}, map[string]int{}
	for i := range e.Credentials {
		id := e.Credentials[i].ID
		if id == "" {
			continue
		}
		if taken[id] {
			d.fail(at[i], KindValue, "%s is another entry's name", quoted(id))
		}
		taken[id] = true
	}
	for i := range e.Credentials {
		x := &e.Credentials[i]
		if x.ID != "" {
			continue
		}
		name := x.Type + ":"
		switch {
		case x.Canary:
			name = "canary:" + strings.Join(x.Env[:min(1, len(x.Env))], "")
		case len(x.Targets) > 0:
			name += x.Targets[0].Text
		case len(x.Profiles) > 0:
			name += x.Profiles[0]
		}
		x.ID = name
		for taken[x.ID] {
			numbers[name] = max(numbers[name]+1, 2)
			x.ID = fmt.Sprintf("%s#%d", name, numbers[name])
		}
		taken[x.ID] = true
	}
}

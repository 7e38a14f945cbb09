package credbroker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/egressd/egressd/credbroker/redact"
	"github.com/egressd/egressd/credbroker/scan"
	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/credbroker/token"
)

// Config is what a Broker is made of. The zero Config makes one that holds
// nothing and still guards.
type Config struct {
	// Entries are those of credential_proxy, in the order of the policy.
	Entries []Entry
	// LeakPass are the hosts where a placeholder in a body passes.
	LeakPass []string
	// Strict also refuses answers of types that cannot be read (`redact: strict`).
	Strict bool
	// Sources is what reading secrets needs of the host.
	Sources source.Config
	// Previous is the broker that this one takes over from; nil at the start.
	// Placeholders of entries with the same id and shape stay, what it knew of
	// secrets is still looked for, and rotated refresh tokens are kept.
	Previous *Broker
	// OnLeak is told the entry of every placeholder and secret that is found where
	// it is not bound, "" for nobody's, after note and before the request is
	// refused; nil tells nobody.
	OnLeak func(entry string)
	// Warn is told what the user should know and the start need not fail for; nil
	// tells nobody.
	Warn func(text string)
}

// StartError is an entry whose secret could not be had.
type StartError struct {
	Entry string // its id
	Err   error
}

// Error names the entry and the place, and holds nothing that a program said.
func (e *StartError) Error() string { return fmt.Sprintf("credential %s: %v", e.Entry, cause(e.Err)) }

// Explain is the text for the user at the start, with what a program wrote to
// stderr: for no log, record or answer.
func (e *StartError) Explain() string {
	return fmt.Sprintf("credential %s: %s", e.Entry, source.Explain(e.Err))
}

func (e *StartError) Unwrap() error { return e.Err }

// cause is what an Unavailable is about.
func cause(err error) error {
	var u *source.Unavailable
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Broker keeps placeholders and secrets apart. All methods are safe for
// concurrent use.
type Broker struct {
	entries  []Entry
	creds    []*credential
	parts    map[string]map[string]*placeholder // by entry and part
	profiles map[string][]token.Profile
	passes   map[string]bool
	strict   bool
	onLeak   func(entry string)
	sites    sites

	// held is what bodies hold in bytes, of all brokers of the run.
	held *atomic.Int64

	// version counts the secrets that were had, by all brokers of the run. What was made of older ones is
	// made anew.
	version *atomic.Uint64
	finders atomic.Pointer[versioned]
	making  sync.Mutex
	// placeholders are all that were ever live in this run.
	placeholders []*placeholder
	// before is the broker before this one, whose requests may still be under way.
	before *Broker
}

// versioned is a finder and the version it knows.
type versioned struct {
	*finder
	version uint64
}

// New reads every source and mints the placeholders. ctx is for as long as the
// broker is used: when it ends, so do the questions to sources. An error is a
// *StartError.
func New(ctx context.Context, cfg Config) (*Broker, error) {
	b := &Broker{
		entries: slices.Clone(cfg.Entries), parts: map[string]map[string]*placeholder{}, profiles: map[string][]token.Profile{},
		passes: map[string]bool{}, strict: cfg.Strict, onLeak: cfg.OnLeak, held: new(atomic.Int64), version: new(atomic.Uint64),
		sites: sites{exact: map[string]*site{}, below: map[string]*site{}},
	}
	for _, host := range cfg.LeakPass {
		b.passes[strings.ToLower(host)] = true
	}
	if p := cfg.Previous; p != nil {
		b.held, b.version, b.before = p.held, p.version, p
	}
	if err := b.build(ctx, cfg); err != nil {
		return nil, err
	}
	if err := b.mint(cfg.Previous); err != nil {
		return nil, err
	}
	b.sites.settle(cfg.Previous)
	b.version.Add(1)
	b.finder()
	if cfg.Warn != nil {
		b.warn(cfg.Warn)
	}
	return b, nil
}

// mint makes the placeholders that the sandbox is to see.
func (b *Broker) mint(previous *Broker) error {
	var taken []string
	if previous != nil {
		b.placeholders = slices.Clone(previous.placeholders)
		for _, p := range b.placeholders {
			taken = append(taken, p.text)
		}
	}
	for _, e := range b.entries {
		parts := map[string]*placeholder{}
		b.parts[e.ID] = parts
		for _, part := range b.shown(e) {
			if previous != nil {
				if p := previous.parts[e.ID][part]; p != nil && p.shape == e.Shape {
					parts[part] = p
					continue
				}
			}
			text, err := mint(e.Shape, taken)
			if err != nil {
				return &StartError{e.ID, err}
			}
			taken = append(taken, text)
			parts[part] = &placeholder{text: text, id: e.ID, part: part, shape: e.Shape}
			b.placeholders = append(b.placeholders, parts[part])
		}
	}
	for _, c := range b.creds {
		c.parts = b.parts[c.entry.ID]
	}
	return nil
}

// shown are the parts of an entry that the sandbox sees a placeholder of.
func (b *Broker) shown(e Entry) []string {
	switch e.Type {
	case AWSSigV4:
		for _, c := range b.creds {
			if c.entry.ID == e.ID && c.hasToken() {
				return []string{"", partAccessKeyID, partSessionToken}
			}
		}
		return []string{"", partAccessKeyID}
	case GHBasic, GitHubApp, DatabricksCLI:
		return []string{""}
	}
	if len(e.Env) == 0 {
		return nil
	}
	return []string{""}
}

// warn tells of secrets that are too short to be looked for.
func (b *Broker) warn(tell func(text string)) {
	told := map[string]bool{}
	for _, c := range b.creds {
		for _, s := range c.secrets() {
			if len(s.Value) < shortest && !told[s.Entry] {
				told[s.Entry] = true
				tell(fmt.Sprintf("credential %s: the secret is shorter than %d bytes, so it is not looked for in answers", s.Entry, shortest))
			}
		}
	}
}

// Placeholder is what stands for a value of an entry inside the sandbox; ""
// where nothing does. part is "", and for an AWS key also "access_key_id" and
// "session_token".
func (b *Broker) Placeholder(id, part string) string {
	if p := b.parts[id][part]; p != nil {
		return p.text
	}
	return ""
}

// Inside is what the sandbox sees of the entries.
func (b *Broker) Inside() Inside {
	return insideOf(b.entries, b.Placeholder, func(id string) []token.Profile { return b.profiles[id] })
}

// secrets are those of all entries and of the brokers before.
func (b *Broker) secrets() []known {
	var out []known
	for _, c := range b.creds {
		out = append(out, c.secrets()...)
	}
	if b.before != nil {
		out = append(out, b.before.secrets()...)
	}
	return out
}

// finder is the one that knows every secret that was had.
func (b *Broker) finder() *finder {
	if f := b.finders.Load(); f != nil && f.version == b.version.Load() {
		return f.finder
	}
	b.making.Lock()
	defer b.making.Unlock()
	version := b.version.Load()
	if f := b.finders.Load(); f != nil && f.version == version {
		return f.finder
	}
	f := newFinder(b.placeholders, b.guarded())
	b.finders.Store(&versioned{f, version})
	return f
}

// guarded are the secrets that must not be in a request.
func (b *Broker) guarded() []secretText {
	var out []secretText
	seen := map[string]bool{}
	for _, s := range b.secrets() {
		if text := string(s.Value); !seen[text] && !s.public {
			seen[text] = true
			out = append(out, secretText{text, s.Entry})
		}
	}
	return out
}

// scanned is what the answers of a host are looked through for.
type scanned struct {
	version    uint64
	secrets    []scan.Secret
	coded      []scan.Secret
	set, names *scan.Set
}

// sought is what answers of a site are looked through for: every secret that was
// had.
func (b *Broker) sought(x *site) *scanned {
	version := b.version.Load()
	if s := x.scanned.Load(); s != nil && s.version == version {
		return s
	}
	var secrets, coded []scan.Secret
	seen := map[string]bool{}
	for _, k := range x.secrets() {
		if text := string(k.Value); !seen[text] {
			seen[text] = true
			secrets = append(secrets, k.Secret)
			if k.login {
				coded = append(coded, scan.Coded(k.Secret)...)
			}
		}
	}
	s := &scanned{version: version, secrets: secrets, coded: coded, set: scan.New(secrets, coded...), names: redact.Names(secrets)}
	x.scanned.Store(s)
	return s
}

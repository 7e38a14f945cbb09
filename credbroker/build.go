package credbroker

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/credbroker/token"
)

// build makes the credentials of all entries, has their secrets, and binds them
// to their hosts. Sources are asked at the same time: several programs may have
// to be run. Of several that fail, the first in the policy is told of.
func (b *Broker) build(ctx context.Context, cfg Config) error {
	faults := make([]error, len(b.entries))
	made := make([][]*credential, len(b.entries))
	var asking sync.WaitGroup
	for i, e := range b.entries {
		asking.Go(func() { made[i], faults[i] = b.credentials(ctx, cfg, e) })
	}
	asking.Wait()
	for i, err := range faults {
		if err != nil {
			return &StartError{b.entries[i].ID, err}
		}
	}
	for i := range b.entries {
		for _, c := range made[i] {
			b.creds = append(b.creds, c)
			if p := c.profile; p != nil {
				b.profiles[c.entry.ID] = append(b.profiles[c.entry.ID], *p)
			}
			for _, t := range c.targets() {
				b.sites.bind(t.Host, binding{cred: c, port: t.Port, path: newPathGlob(t.Path)})
			}
		}
	}
	return b.apart()
}

// apart looks whether two credentials are bound to one host and port because of
// a profile, whose host the policy's loader does not see.
func (b *Broker) apart() error {
	taken := map[string]*credential{}
	for _, profiles := range []bool{false, true} {
		for _, c := range b.creds {
			if (c.profile != nil) != profiles {
				continue
			}
			for _, t := range c.targets() {
				at := net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
				if other := taken[at]; other != nil && profiles {
					return &StartError{c.entry.ID, fmt.Errorf("binding profile %q: %s has the credential %s already", c.profile.Name, at, other.entry.ID)}
				}
				taken[at] = c
			}
		}
	}
	return nil
}

// credentials makes those of one entry.
func (b *Broker) credentials(ctx context.Context, cfg Config, e Entry) ([]*credential, error) {
	if e.Canary {
		return nil, nil
	}
	c := &credential{entry: e, header: headerOf(e)}
	var err error
	switch e.Type {
	case OAuth2:
		err = c.oauth2(ctx, cfg)
	case GitHubApp:
		err = c.githubApp(ctx, cfg)
	case DatabricksCLI:
		return databricks(ctx, cfg, e)
	case AWSSigV4:
		err = c.openAWS(ctx, cfg)
	default:
		c.value, err = keep(ctx, cfg, e.Source, source.Options{})
	}
	return []*credential{c}, err
}

// keep makes the keeper of a source and has its secret.
func keep(ctx context.Context, cfg Config, s *Source, opts source.Options) (keeper, error) {
	k := source.NewKeeper(ctx, cfg.Sources.Fetch(*s, opts), s.TTL, cfg.Sources.Now)
	_, _, err := k.Get(ctx)
	return k, err
}

// reader reads a secret that tokens are fetched with.
func reader(cfg Config, s *Source, opts source.Options) token.Reader {
	if s == nil {
		return nil
	}
	return func(ctx context.Context) (secret.Value, error) { return source.Read(ctx, cfg.Sources, *s, opts) }
}

func (cfg *Config) calls() token.Calls {
	now := cfg.Sources.Now
	if now == nil {
		now = time.Now
	}
	return token.Calls{Transport: cfg.Sources.Transport, Now: now}
}

func (c *credential) oauth2(ctx context.Context, cfg Config) error {
	e := c.entry
	if old := cfg.Previous.same(e); old != nil && e.Grant == "refresh_token" {
		c.value, c.more = old.value, old.more // it may have been rotated
		return nil
	}
	o := &token.OAuth2{Calls: cfg.calls(), URL: e.TokenURL, ClientID: e.ClientID, Scopes: e.Scopes}
	if e.Grant == "refresh_token" {
		o.RefreshToken, o.ClientSecret = reader(cfg, e.Source, source.Options{}), reader(cfg, e.ClientSecret, source.Options{})
	} else {
		o.ClientSecret = reader(cfg, e.Source, source.Options{})
	}
	c.value, c.more = source.NewKeeper(ctx, o.Fetch, e.Source.TTL, cfg.Sources.Now), o.Secrets
	return o.Open(ctx)
}

func (c *credential) githubApp(ctx context.Context, cfg Config) error {
	e := c.entry
	var at Target
	if len(e.Targets) > 0 {
		at = e.Targets[0]
	}
	g := &token.GitHubApp{
		Calls: cfg.calls(), API: token.GitHubAPI(at.Host, cmp.Or(at.Port, 443)),
		AppID: e.AppID, InstallationID: e.InstallationID, Key: reader(cfg, e.Source, source.Options{Multiline: true}),
	}
	c.value, c.more = source.NewKeeper(ctx, g.Fetch, e.Source.TTL, cfg.Sources.Now), g.Secrets
	return g.Open(ctx)
}

// databricks makes a credential for each profile.
func databricks(ctx context.Context, cfg Config, e Entry) ([]*credential, error) {
	getenv := cfg.Sources.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	path, err := token.ProfilesPath(getenv, cfg.Sources.Home)
	if err != nil {
		return nil, err
	}
	list, err := token.ReadProfiles(path, e.Profiles)
	if err != nil {
		return nil, err
	}
	var out []*credential
	for _, p := range list {
		d := &token.Databricks{Calls: cfg.calls(), Run: cfg.Sources.Run, Path: path, Profile: p}
		if err := d.Open(ctx); err != nil {
			return nil, err
		}
		k := source.NewKeeper(ctx, d.Fetch, 0, cfg.Sources.Now)
		if p.HoldsToken() {
			if _, _, err := k.Get(ctx); err != nil {
				return nil, err
			}
		}
		out = append(out, &credential{entry: e, header: headerOf(e), profile: &p, value: k, more: d.Secrets})
	}
	return out, nil
}

// same is the credential of an equal entry that a broker has, nil for none.
func (b *Broker) same(e Entry) *credential {
	if b == nil {
		return nil
	}
	for _, c := range b.creds {
		if reflect.DeepEqual(c.entry, e) {
			return c
		}
	}
	return nil
}

package credbroker

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/egressd/egressd/credbroker/secret"
)

// have gives the credential's value of now. Answers are looked through for it
// from here on.
func (b *Broker) have(ctx context.Context, c *credential) (secret.Value, uint64, error) {
	v, generation, err := c.value.Get(ctx)
	if err != nil {
		return v, 0, &unavailable{c.entry.ID, err}
	}
	if c.seen.Load() != generation {
		b.version.Add(1) // first, so that who sees the generation sees the version
		c.seen.Store(generation)
	}
	return v, generation, nil
}

// attach puts a secret into the type's own place, as the last step on the way
// out: no field of the client can take it off again.
func (x *outgoing) attach(out *http.Request, c *credential, value []byte) {
	h := out.Header
	if c.entry.Type == HTTPSQuery {
		x.attachParam(out, c.entry.Param, string(value))
		return
	}
	folded := foldName(c.header)
	for key := range h { // empty ones, and other spellings of the name
		if foldName(key) == folded {
			delete(h, key)
		}
	}
	h[c.header] = []string{credentials(c, !gitHost(x.host) || strings.HasPrefix(x.path, "/api/"), value)}
}

// credentials is what stands in the field. api says that the request goes to
// GitHub's API: a host of its own on github.com, a folder of a GitHub Enterprise
// host.
func credentials(c *credential, api bool, value []byte) string {
	switch c.entry.Type {
	case HTTPSHeader:
		return string(value)
	case HTTPSBasic, GitHTTPS:
		return basicField(c.entry.Username, value)
	case GHBasic, GitHubApp:
		if api {
			return "token " + string(value)
		}
		return basicField(c.entry.Username, value)
	}
	return "Bearer " + string(value)
}

// attachParam puts a parameter behind the others. Empty ones of the same name
// go, since a server may read the first.
func (x *outgoing) attachParam(out *http.Request, name, value string) {
	list := x.query
	if list == nil {
		list = pairs(x.r.URL.RawQuery)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(p pair) bool { return p.name == name })
	query := joinPairs(list, nil)
	if query != "" {
		query += "&"
	}
	u := *out.URL
	u.RawQuery, u.ForceQuery = query+escapeQuery(name)+"="+escapeQuery(value), false
	out.URL = &u
}

// settleTarget writes the query without what own: replace took out.
func (x *outgoing) settleTarget() {
	if x.query == nil {
		return
	}
	u := *x.r.URL
	u.RawQuery = joinPairs(x.query, func(p *placeholder) string { return url.QueryEscape(p.text) })
	x.r.URL = &u
}

package credbroker

import (
	"context"
	"net/textproto"
	"sync/atomic"

	"github.com/egressd/egressd/credbroker/scan"
	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/token"
)

// keeper is one secret over time; *source.Keeper is one.
type keeper interface {
	// Get gives the value of now and its generation.
	Get(ctx context.Context) (secret.Value, uint64, error)
	// Renew asks the source again after an origin refused the value of a
	// generation, and says whether there is another one now.
	Renew(ctx context.Context, generation uint64) (v secret.Value, now uint64, changed bool, err error)
	// Values are all that there were.
	Values() []secret.Value
}

// credential is one secret that is attached to requests and swapped in. Most
// entries have one; databricks_cli has one for each profile.
type credential struct {
	entry Entry
	// profile is that of databricks_cli, else nil.
	profile *token.Profile
	// value is what travels.
	value keeper
	// more gives the secrets that value is fetched with: never sent to a target,
	// and looked for in its answers all the same. nil where there are none.
	more func() []secret.Value
	// parts are its placeholders, by part. Empty where the sandbox sees none.
	parts map[string]*placeholder
	// header is the field it belongs in, "" for one of a parameter.
	header string
	// seen is the generation of value that answers are looked through for.
	seen atomic.Uint64
}

// headerOf is the field that an entry's secret belongs in.
func headerOf(e Entry) string {
	switch e.Type {
	case HTTPSHeader:
		return textproto.CanonicalMIMEHeaderKey(e.Header)
	case HTTPSQuery:
		return ""
	}
	return "Authorization"
}

// targets are the places that the secret is bound to.
func (c *credential) targets() []Target {
	if c.profile != nil {
		return []Target{{Host: c.profile.Host, Port: c.profile.Port}}
	}
	return c.entry.Targets
}

// owns says that p is one of the credential's placeholders.
func (c *credential) owns(p *placeholder) bool { return c.parts[p.part] == p }

// attaches says that the secret is attached to a request that has none.
func (c *credential) attaches() bool {
	return c.entry.Inject != "placeholder" && c.entry.Type != AWSSigV4
}

// replacement is what takes the place of a value in an answer.
func (c *credential) replacement(part string) string {
	if p := c.parts[part]; p != nil {
		return p.text
	}
	return secret.Redacted
}

// known is a secret that is looked for.
type known struct {
	scan.Secret
	public bool // an AWS key id: to be hidden in answers, and no leak in a request
	login  bool // it may be sent in a login of Basic, as base64
}

// secrets are all values of this run, in the order in which they are looked for.
func (c *credential) secrets() []known {
	if c.entry.Type == AWSSigV4 {
		return c.awsSecrets()
	}
	out := c.known(c.value.Values(), c.replacement(""))
	for i := range out {
		out[i].login = c.header == "Authorization"
	}
	if c.more != nil {
		out = append(out, c.known(c.more(), secret.Redacted)...)
	}
	return out
}

func (c *credential) known(values []secret.Value, replacement string) []known {
	out := make([]known, 0, len(values))
	for _, v := range values {
		if !v.IsZero() {
			out = append(out, known{Secret: scan.Secret{Value: v.Reveal(), Replacement: replacement, Entry: c.entry.ID}})
		}
	}
	return out
}

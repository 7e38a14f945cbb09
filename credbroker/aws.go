package credbroker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/egressd/egressd/credbroker/scan"
	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/sigv4"
	"github.com/egressd/egressd/credbroker/source"
)

// A key of AWS does not travel: what a sandbox signed with the placeholder of
// its id is signed anew. All parts of a key are one secret to the keeper, the
// JSON of a credential_process, so that they change together.

// Parts of a key beside the secret key, as Broker.Placeholder knows them.
const (
	partAccessKeyID  = "access_key_id"
	partSessionToken = "session_token"
)

// openAWS has the key.
func (c *credential) openAWS(ctx context.Context, cfg Config) error {
	e := c.entry
	fetch := func(ctx context.Context) (secret.Value, time.Time, error) {
		v, err := source.Read(ctx, cfg.Sources, *e.Source, source.Options{Multiline: true})
		if err != nil {
			return v, time.Time{}, err
		}
		_, expiry, err := sigv4.ParseProcess(v.Reveal())
		return v, expiry, err
	}
	ttl := e.Source.TTL
	if e.AccessKeyID != "" {
		fetch = func(ctx context.Context) (secret.Value, time.Time, error) {
			k := sigv4.Key{ID: e.AccessKeyID}
			var err error
			if k.Secret, err = source.Read(ctx, cfg.Sources, *e.Source, source.Options{}); err == nil && e.SessionToken != nil {
				k.Token, err = source.Read(ctx, cfg.Sources, *e.SessionToken, source.Options{})
			}
			v := k.Process()
			if err == nil { // its form, now and not at the first request
				_, _, err = sigv4.ParseProcess(v.Reveal())
			}
			return v, time.Time{}, err
		}
		if t := e.SessionToken; t != nil && t.TTL > 0 && (ttl == 0 || t.TTL < ttl) {
			ttl = t.TTL
		}
	}
	k := source.NewKeeper(ctx, fetch, ttl, cfg.Sources.Now)
	c.value = k
	_, _, err := k.Get(ctx)
	return err
}

// keys are all that there were.
func (c *credential) keys() []sigv4.Key {
	var out []sigv4.Key
	for _, v := range c.value.Values() {
		if k, _, err := sigv4.ParseProcess(v.Reveal()); err == nil {
			out = append(out, k)
		}
	}
	return out
}

// awsSecrets are the parts of all keys. The id is no secret, and is hidden in
// answers all the same.
func (c *credential) awsSecrets() []known {
	var out []known
	for _, k := range c.keys() {
		out = append(out, c.known([]secret.Value{k.Secret}, c.replacement(""))...)
		out = append(out, c.known([]secret.Value{k.Token}, c.replacement(partSessionToken))...)
		id := scan.Secret{Value: []byte(k.ID), Replacement: c.replacement(partAccessKeyID), Entry: c.entry.ID}
		out = append(out, known{Secret: id, public: true})
	}
	return out
}

// hasToken says that the key is a temporary one.
func (c *credential) hasToken() bool {
	return slices.ContainsFunc(c.keys(), func(k sigv4.Key) bool { return !k.Token.IsZero() })
}

// awsRequest is what a request to a host with a key says of its signature.
type awsRequest struct {
	seen *sigv4.Request // nil where it bears none, or one that cannot be made anew
	err  error          // why it cannot
	// named is the entry of which such a one names a placeholder.
	named string
	// again is the key that what another signed is signed anew with.
	again *credential
	// made is the signature of this request, by the entry of the key.
	made, by string
	// sought is what the answer is looked through for because of that.
	sought struct {
		mu         sync.Mutex
		of         *scanned
		made       string
		set, names *scan.Set
	}
}

// recognise reads the signature, where a key is bound to where the request goes.
func (x *outgoing) recognise() {
	for b := range x.covered {
		if b.cred.entry.Type == AWSSigV4 {
			x.aws.seen, x.aws.err = sigv4.Recognise(x.r)
			return
		}
	}
}

// takesAWS says that a placeholder of a key stands where a signature has it,
// in a field or with param in a parameter. A session token counts only beside
// the id of the same key: with another's it would travel and sign nothing.
func (x *outgoing) takesAWS(c *credential, p *placeholder, name string, param bool) bool {
	id := c.parts[partAccessKeyID]
	if x.aws.err != nil {
		belongs := p.part != "" && (name == "Authorization" || name == "X-Amz-Security-Token" || name == "X-Amz-Credential")
		if belongs {
			x.aws.named = c.entry.ID
		}
		return belongs
	}
	if p.part == "" || x.aws.seen == nil || id == nil || x.aws.seen.KeyID != id.text {
		return false
	}
	if param {
		return x.aws.seen.Param(name, p.text)
	}
	return x.aws.seen.Field(name, p.text)
}

// foreignAWS does with another's signature what the entry of a key says.
func (x *outgoing) foreignAWS(refuse bool) error {
	owner := false
	for b := range x.owners {
		owner = owner || b.cred.entry.Type == AWSSigV4 && b.cred.entry.Own != "pass" && b.cred.entry.Own != ""
	}
	if !owner || x.swapping() || !sigv4.Foreign(x.r) {
		return nil
	}
	if refuse {
		return errForeign
	}
	if x.aws.seen != nil && !x.echoes {
		for b := range x.covered {
			if b.cred.entry.Type == AWSSigV4 {
				x.aws.again = b.cred
				return nil
			}
		}
	}
	sigv4.Strip(x.r)
	return nil
}

// sign makes the signature of out anew, from the head as it came.
func (x *outgoing) sign(out *http.Request, c *credential, value secret.Value) error {
	key, _, err := sigv4.ParseProcess(value.Reveal())
	if err != nil {
		return &unavailable{c.entry.ID, &source.Unavailable{Err: err}}
	}
	x.aws.by = c.entry.ID
	out.Header, out.URL = x.r.Header.Clone(), x.r.URL
	x.aws.made, err = x.aws.seen.Sign(out, sigv4.Options{Key: key, Issue: c.entry.Issue, Reserve: x.reserve})
	return x.unsigned(err, c.entry.ID)
}

// unsigned records a request that a key was asked to sign and that it does not,
// for what the request is or asks. It ends no sandbox: the key's placeholder
// stands where it belongs.
func (x *outgoing) unsigned(err error, id string) error {
	var reason interface{ Reason() string }
	if errors.As(err, &reason) && reason.Reason() == "credential_leak" {
		x.note("leak", "deny", id)
	}
	return err
}

// reserve charges what is held of a body to be signed.
func (b *Broker) reserve(bytes int64) bool {
	if b.held.Add(bytes) > mostHeld && bytes > 0 {
		b.held.Add(-bytes)
		return false
	}
	return true
}

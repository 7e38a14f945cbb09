package token

import (
	"context"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

// early is how long before its end a token of Databricks is renewed, so that
// none ends on the way. Of a shorter life it is half, since the tool hands out
// what it has kept.
const early = time.Minute

// having is what a Failure of Databricks says it was doing.
const having = "having a token of Databricks"

// Databricks has the token of one profile. It is used by pointer.
type Databricks struct {
	Calls
	// Run starts a program outside the sandbox and returns what it printed
	// (source.Config.Run).
	Run func(ctx context.Context, argv []string) ([]byte, error)
	// Path is the file the profile was read from. It is read again by every
	// Fetch, so that a new token in it is found after the old one was refused.
	Path string
	// Profile is the profile as it was at the start. One that has moved to
	// another host since is refused.
	Profile Profile

	memory
}

// Open takes in the secret that the profile holds; the profile itself was read.
func (d *Databricks) Open(context.Context) error {
	d.add(d.Profile.secret)
	return nil
}

// Fetch has the profile's token, and says when it is to be renewed: shortly
// before it ends, or zero where it has no known end. Every error is a
// *Failure.
func (d *Databricks) Fetch(ctx context.Context) (secret.Value, time.Time, error) {
	list, err := ReadProfiles(d.Path, []string{d.Profile.Name})
	if err != nil {
		return secret.Value{}, time.Time{}, &Failure{Doing: having, cause: err}
	}
	p := list[0]
	if p.URL() != d.Profile.URL() {
		return secret.Value{}, time.Time{}, &Failure{Doing: having, Why: "the profile's host is another one since the start"}
	}
	d.add(p.secret)
	var token secret.Value
	var expires time.Time
	switch p.kind {
	case byToken:
		return p.secret, time.Time{}, nil
	case byMachine:
		o := OAuth2{Calls: d.Calls, URL: p.TokenURL(), ClientID: p.clientID, Scopes: []string{"all-apis"},
			ClientSecret: func(context.Context) (secret.Value, error) { return p.secret, nil }}
		token, expires, err = o.Fetch(ctx)
	default:
		token, expires, err = d.tool(ctx, p.Name)
	}
	if err != nil || expires.IsZero() {
		return token, expires, err
	}
	return token, expires.Add(-min(early, expires.Sub(d.Now())/2)), nil
}

// tool asks the user's own databricks. What it said on failure is Run's to
// show; here it is told apart from an answer that is of no use.
func (d *Databricks) tool(ctx context.Context, name string) (secret.Value, time.Time, error) {
	out, err := d.Run(ctx, []string{"databricks", "auth", "token", "--profile", name})
	if err != nil {
		return secret.Value{}, time.Time{}, &Failure{Doing: having, cause: err}
	}
	token, expires, err := dated(out, "access_token", "expiry", false, d.Now())
	if err != nil {
		return secret.Value{}, time.Time{}, &Failure{Doing: having, Why: "databricks auth token printed " + err.Error()}
	}
	return token, expires, nil
}

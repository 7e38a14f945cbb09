package token

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

// OAuth2 fetches access tokens from a token endpoint (RFC 6749). It is used by
// pointer; its methods may be called at the same time, but two fetches at once
// by one refresh token are the caller's to avoid.
type OAuth2 struct {
	Calls
	// URL is the token endpoint, https.
	URL string
	// ClientID names the client.
	ClientID string
	// Scopes are asked for, in this order; none: the endpoint's own choice.
	Scopes []string
	// ClientSecret reads the client's secret. Nil only with RefreshToken, for a
	// public client.
	ClientSecret Reader
	// RefreshToken reads the refresh token; nil for the grant
	// client_credentials. The endpoint may hand out another with each access
	// token: it is used from then on, until the reader gives something new.
	RefreshToken Reader

	memory
	rotation struct {
		sync.Mutex
		read, next secret.Value
	}
}

// Open reads the secrets.
func (o *OAuth2) Open(ctx context.Context) error {
	_, _, err := o.read(ctx)
	return err
}

// read asks the readers. What a reader says is its own error, in words of its
// own.
func (o *OAuth2) read(ctx context.Context) (client, refresh secret.Value, err error) {
	if o.ClientSecret != nil {
		if client, err = o.ClientSecret(ctx); err != nil {
			return client, refresh, &Failure{Doing: "reading the client secret", cause: err}
		}
	}
	if o.RefreshToken != nil {
		if refresh, err = o.RefreshToken(ctx); err != nil {
			return client, refresh, &Failure{Doing: "reading the refresh token", cause: err}
		}
		o.rotation.Lock()
		if !o.rotation.read.Equal(refresh) {
			o.rotation.read, o.rotation.next = refresh, refresh
		}
		refresh = o.rotation.next
		o.rotation.Unlock()
	}
	if client.IsZero() && refresh.IsZero() {
		return client, refresh, &Failure{Doing: "reading the client secret", Why: "there is none"}
	}
	o.add(client, refresh)
	return client, refresh, nil
}

// Fetch asks the endpoint for an access token and says when that ends (zero: it
// did not say). The client's name and secret go by Basic, and after a 400 or
// 401 once more in the form, for endpoints that know only that. Every error is
// a *Failure.
func (o *OAuth2) Fetch(ctx context.Context) (secret.Value, time.Time, error) {
	doing := "asking for a token"
	if u, err := url.Parse(o.URL); err == nil {
		doing = "asking " + u.Host + " for a token"
	}
	client, refresh, err := o.read(ctx)
	if err != nil {
		return secret.Value{}, time.Time{}, err
	}
	asked := o.Now()
	status, answer, err := o.ask(ctx, doing, client, refresh, !client.IsZero())
	if err == nil && !client.IsZero() && (status == http.StatusBadRequest || status == http.StatusUnauthorized) {
		asked = o.Now()
		status, answer, err = o.ask(ctx, doing, client, refresh, false)
	}
	if err != nil {
		return secret.Value{}, time.Time{}, err
	}
	if f := complaint(doing, status, answer, client, refresh, o.ClientID); f != nil {
		return secret.Value{}, time.Time{}, f
	}
	token, next, expires, err := granted(answer, asked)
	if err != nil {
		return secret.Value{}, time.Time{}, &Failure{Doing: doing, Status: status, Why: err.Error()}
	}
	if o.RefreshToken != nil && !next.IsZero() {
		o.rotation.Lock()
		o.rotation.next = next
		o.rotation.Unlock()
		o.add(next)
	}
	return token, expires, nil
}

// ask sends one request, with the client's secret by Basic or in the form.
func (o *OAuth2) ask(ctx context.Context, doing string, client, refresh secret.Value, basic bool) (int, []byte, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if o.RefreshToken != nil {
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", string(refresh.Reveal()))
	}
	if len(o.Scopes) > 0 {
		form.Set("scope", strings.Join(o.Scopes, " "))
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if basic { // both halves are form-encoded first: RFC 6749, section 2.3.1
		pair := url.QueryEscape(o.ClientID) + ":" + url.QueryEscape(string(client.Reveal()))
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	} else {
		form.Set("client_id", o.ClientID)
		if !client.IsZero() {
			form.Set("client_secret", string(client.Reveal()))
		}
	}
	return o.post(ctx, doing, o.URL, form.Encode(), header)
}

// complaint is the Failure of an answer that is an error: by its status, or, as
// some endpoints have it, by an `error` in a 200.
func complaint(doing string, status int, answer []byte, client, refresh secret.Value, id string) *Failure {
	m, err := object(answer)
	said, _ := text(m, "error")
	if succeeded(status) && (errors.Is(err, errObject) || said == "") {
		return nil
	}
	f := refused(doing, status)
	f.Word = word(said, string(client.Reveal()), string(refresh.Reveal()), id)
	if succeeded(status) && f.Word == "" {
		f.Why = "the answer is an error"
	}
	return f
}

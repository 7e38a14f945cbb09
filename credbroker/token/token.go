// Package token fetches the short-lived tokens that long-lived secrets are good
// for.
//
//   - OAuth2 asks a token endpoint, by client_credentials or by a refresh token.
//   - GitHubApp signs with the app's key and asks for an installation token.
//   - Databricks takes the login of a profile of .databrickscfg: its own token,
//     a machine's client secret, or what `databricks auth token` prints.
//
// The three have the same methods. Open reads what a token is made from, before
// the sandbox starts, so that what is missing stops the start. Fetch makes one
// token, and is called again when that has ended or was refused. Secrets are
// the long-lived secrets read so far: they travel to the token endpoint only,
// but answers of the hosts that get the token are searched for them too.
//
// A token endpoint is believed about the token and nothing else. Its redirects
// are not followed, since the client secret would go along; its answers are
// bounded and never quoted, but for a word as in RFC 6749, section 5.2, that
// shares nothing with what was sent. A Failure says what happened in words of
// ours.
//
// Not done here: keeping a token, one fetch for many that wait, the limit of
// one renewal in 30 seconds (package source).
package token

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/egressd/egressd/credbroker/secret"
)

// Reader reads a long-lived secret: once in Open and again in every Fetch, so
// that a source that gives another one is believed. Its errors hold no secret.
type Reader = func(ctx context.Context) (secret.Value, error)

// Calls is how the broker's own requests go out.
type Calls struct {
	// Transport makes the requests. It is asked for one answer each and
	// follows nothing.
	Transport http.RoundTripper
	// Now is the clock that expiries are counted on.
	Now func() time.Time
}

// remembered is how many secrets of a kind are looked for: as many as of an
// entry's own.
const remembered = 16

// memory holds the long-lived secrets of a run, the last of them.
type memory struct {
	mu   sync.Mutex
	list []secret.Value
}

// add takes in what is not yet there.
func (m *memory) add(list ...secret.Value) {
	m.mu.Lock()
	defer m.mu.Unlock()
next:
	for _, v := range list {
		if v.IsZero() {
			continue
		}
		for _, old := range m.list {
			if old.Equal(v) {
				continue next
			}
		}
		m.list = append(m.list, v)
		if len(m.list) > remembered {
			m.list = m.list[1:]
		}
	}
}

// Secrets are the long-lived secrets read so far, the last 16, oldest first.
func (m *memory) Secrets() []secret.Value {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]secret.Value(nil), m.list...)
}

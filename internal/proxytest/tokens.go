package proxytest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// Tokens is a TLS server on loopback that stands in for token endpoints, under
// whatever name it is called: its answers are a script by URL, and it keeps
// what it was asked.
type Tokens struct {
	address string
	ca      *CA

	mu      sync.Mutex
	answers map[string][]TokenAnswer
	asked   []TokenRequest
}

// TokenAnswer is one answer. The zero Status is 200; the body is JSON unless
// Header says otherwise.
type TokenAnswer struct {
	Status int
	Header http.Header
	Body   string
	// Wait holds the answer until it is closed or the client has gone.
	Wait <-chan struct{}
	// Raw, if not "", is sent instead of an answer, and the connection closed.
	Raw string
}

// TokenRequest is what reached a token endpoint.
type TokenRequest struct {
	URL, Method string
	Header      http.Header
	Body        string
}

// Form is the body as a form; one that is none is empty.
func (r TokenRequest) Form() url.Values {
	form, err := url.ParseQuery(r.Body)
	if err != nil {
		return url.Values{}
	}
	return form
}

// NewTokens starts a server that ends with the test.
func NewTokens(t testing.TB, ca *CA) *Tokens {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for token endpoints: %v", err)
	}
	s := &Tokens{address: l.Addr().String(), ca: ca, answers: map[string][]TokenAnswer{}}
	server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	var wait sync.WaitGroup
	wait.Go(func() { server.Serve(tls.NewListener(l, ca.ServerConfig("127.0.0.1", "", "http/1.1"))) })
	t.Cleanup(func() {
		server.Close()
		wait.Wait()
	})
	return s
}

// On scripts the answers of a URL, in order; the last is given from then on. A
// URL without a script gets 404.
func (s *Tokens) On(url string, answers ...TokenAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[url] = answers
}

// Asked is what reached a URL, in order, or with "" all that came.
func (s *Tokens) Asked(url string) []TokenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(r TokenRequest) bool { return url != "" && r.URL != url })
}

// Transport trusts the server and reaches it whatever host is dialled. It ends
// with the test.
func (s *Tokens) Transport(t testing.TB) *http.Transport {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool()},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, s.address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// ServeHTTP keeps the request and plays the next answer of its URL.
func (s *Tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	at := "https://" + r.Host + r.RequestURI
	s.mu.Lock()
	s.asked = append(s.asked, TokenRequest{at, r.Method, r.Header.Clone(), string(body)})
	answer := TokenAnswer{Status: http.StatusNotFound, Body: "{}"}
	if left := s.answers[at]; len(left) > 0 {
		answer = left[0]
		if len(left) > 1 {
			s.answers[at] = left[1:]
		}
	}
	s.mu.Unlock()
	if answer.Wait != nil {
		select {
		case <-answer.Wait:
		case <-r.Context().Done():
			return
		}
	}
	if answer.Raw != "" {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			io.WriteString(conn, answer.Raw)
			conn.Close()
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	if answer.Status == 0 {
		answer.Status = http.StatusOK
	}
	w.WriteHeader(answer.Status)
	io.WriteString(w, answer.Body)
}

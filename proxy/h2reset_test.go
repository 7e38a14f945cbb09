package proxy_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

// TestOriginResetsStream: an origin that breaks a stream off while the client
// has more to send, but does not send it, breaks it off for the client too, at
// once, and the request is recorded.
func TestOriginResetsStream(t *testing.T) {
	for _, client := range []string{"h2", "http/1.1"} {
		t.Run(client, func(t *testing.T) {
			roots := proxytest.NewCA(t)
			srv := &http.Server{TLSConfig: roots.ServerConfig("ok.test", "", "h2"), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/grpc")
				io.WriteString(w, "\x00\x00\x00\x00\x01x")
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go srv.ServeTLS(l, "", "")
			defer srv.Close()
			h := newHouseWith(t, []any{"POST ok.test/**"}, casePolicy{}, roots)
			h.kernel = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
			}
			policy := h.policy([]any{"POST ok.test/**"})
			policy.UpstreamHTTP2 = "always"
			h.server.SetPolicy(policy)
			protocols := new(http.Protocols)
			protocols.SetHTTP2(client == "h2")
			protocols.SetHTTP1(client != "h2")
			trust := h.explicit()
			transport := &http.Transport{Protocols: protocols, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				raw, err := trust.Dial(ctx, addr)
				if err != nil {
					return nil, err
				}
				c := tls.Client(raw, &tls.Config{RootCAs: trust.Roots, ServerName: "ok.test", NextProtos: []string{client}})
				return c, c.HandshakeContext(ctx)
			}}
			defer transport.CloseIdleConnections()
			body, more := io.Pipe()
			defer more.Close()
			req, err := http.NewRequestWithContext(t.Context(), "POST", "https://ok.test/x", body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/grpc")
			begin := time.Now()
			go io.WriteString(more, "\x00\x00\x00\x00\x01y") // and no end
			resp, err := transport.RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				go resp.Body.Close()
			}
			if err == nil && resp.StatusCode != http.StatusBadGateway { // as when the end overtook the head
				t.Error("the stream looks whole")
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("the client waited %v for the end", took)
			}
			list := h.sink.wait(audit.KindRequest, 1, 3*time.Second)
			if len(list) != 1 || list[0].Reason != "upstream_reset" {
				t.Errorf("records %+v", list)
			}
		})
	}
}

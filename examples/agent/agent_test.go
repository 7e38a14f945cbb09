//go:build linux

// Package agent shows egressd within an agent of somebody else's: its loop asks
// a model what to do, and what the model wants is done in a sandbox whose only
// way out is the proxy.
package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/credbroker/source"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/proxy"
	"github.com/egressd/egressd/rules"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
	"github.com/egressd/egressd/tools"
)

// model stands in for the one of a provider: it has made up its mind, and reads
// what its tools answer.
type model struct{ calls [][2]string }

func (m *model) next() (tool, arguments string, more bool) {
	if len(m.calls) == 0 {
		return "", "", false
	}
	call := m.calls[0]
	m.calls = m.calls[1:]
	return call[0], call[1], true
}

// hands are what a model may do: the tools, and what they stand on.
type hands struct {
	tools *tools.Set
	log   *audit.Log
	shell *shell.Session
	files *safepath.FS
	proxy *proxy.Server
}

// trustAt is where programs inside find the authority's certificate.
const trustAt = "/etc/egressd/ca.pem"

// bounds are what a model is held to.
type bounds struct {
	work, state string // the folder it works in, and where the record is kept
	rules       *rules.Set
	broker      *credbroker.Broker
	// dial reaches origins, and roots verify them: a netguard.Dialer's, and nil
	// for the system's, where it is not a test.
	dial  proxy.DialFunc
	roots func() *x509.CertPool
}

func newHands(b bounds) (*hands, error) {
	issuer, err := ca.New(ca.Config{})
	if err != nil {
		return nil, err
	}
	h := &hands{}
	if h.log, err = audit.Open(audit.Config{State: b.state, Session: audit.NewSession(), Mask: b.broker.Mask}); err != nil {
		return nil, err
	}
	sandbox := netns.Config{
		Cwd: b.work, Grants: []mount.Grant{{Path: b.work, Write: true}}, Home: "/home/agent", Path: os.Getenv("PATH"),
		Network: netns.Captured, Names: b.rules,
		Files: []mount.Entry{{Path: trustAt, Mode: 0o444, Data: issuer.PEM()}},
		Env: append(b.broker.Inside().Env, "PATH=/usr/bin:/bin", "HTTPS_PROXY=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128",
			"CURL_CA_BUNDLE="+trustAt, "SSL_CERT_FILE="+trustAt),
	}
	h.shell = &shell.Session{Executor: &tools.Sandbox{
		Cwd: b.work, Isolator: "linux_bwrap", Network: true,
		Open: func(ctx context.Context, network bool) (*netns.Session, error) {
			c := sandbox
			if !network { // a call that asked for none
				c.Network, c.Names = netns.NoNetwork, nil
				return netns.Start(ctx, c)
			}
			if err := h.shutdown(ctx); err != nil { // of a sandbox that has died
				return nil, err
			}
			box, err := netns.Start(ctx, c)
			if err != nil {
				return nil, err
			}
			server, err := proxy.New(proxy.Config{
				Issuer: issuer, Sink: h.log, Names: box,
				Policy: &proxy.Policy{Rules: b.rules, Broker: b.broker, Dial: b.dial, Roots: b.roots},
			})
			if err != nil {
				return nil, errors.Join(err, box.Close())
			}
			h.proxy = server
			go func() { _ = server.ServeProxy(box.Explicit()) }() // both end with the sandbox
			go func() { _ = server.ServeCaptured(box.Captured()) }()
			return box, nil
		},
	}}
	view, err := netns.Look(sandbox)
	if err != nil {
		return nil, err
	}
	if h.files, err = safepath.Open(tools.Files(view.Plan)); err != nil {
		return nil, err
	}
	h.tools, err = tools.New(tools.Config{
		Grants: tools.Grants{Preset: "full"}, Files: h.files, Shell: h.shell, Record: h.log,
		Isolator: "linux_bwrap", ChooseNetwork: true,
	})
	return h, err
}

func (h *hands) close(ctx context.Context) error {
	return errors.Join(h.shell.Dispose(ctx), h.files.Close(), h.shutdown(ctx), h.log.Close("exit"))
}

func (h *hands) shutdown(ctx context.Context) error {
	if h.proxy == nil {
		return nil
	}
	return h.proxy.Shutdown(ctx)
}

// The agent is told of no secret: its curl has a placeholder, and the origin
// sees who it is.
func Example() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// wrote 102 bytes to ask.sh
	//
	// {"stdout":" 200\n{\"logged_in\":true}","stderr":"","exit_code":0,"truncated":false,"isolator":"linux_bwrap"}
	// {"stdout":" 403\n","stderr":"","exit_code":0,"truncated":false,"isolator":"linux_bwrap"}
	// {"stdout":"0\n","stderr":"","exit_code":1,"truncated":false,"isolator":"linux_bwrap"}
	// {"stdout":" 000\n","stderr":"","exit_code":7,"truncated":false,"isolator":"linux_bwrap"}
	// refused: reading /etc/passwd leaves cwd
	// map[allow:1 deny:1]
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	origin, dial, roots, err := newOrigin()
	if err != nil {
		return err
	}
	defer origin.Close()

	rule, err := rules.Parse("GET api.example.com/v1/**")
	if err != nil {
		return err
	}
	broker, err := credbroker.New(ctx, credbroker.Config{
		Entries: []credbroker.Entry{{ID: "api", Type: credbroker.HTTPSBearer, Targets: []credbroker.Target{{Host: "api.example.com", Port: 443}},
			Source: &source.Source{Env: "API_TOKEN"}, Env: []string{"API_TOKEN"}, Inject: "missing", Own: "pass"}},
		Sources: source.Config{Getenv: func(string) string { return "the-real-secret" }},
	})
	if err != nil {
		return err
	}
	h, err := newHands(bounds{work: work, state: filepath.Join(dir, "state"), rules: rules.New([]rules.Rule{rule}), broker: broker, dial: dial, roots: roots})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()

	m := model{calls: [][2]string{
		{"file_write", `{"path":"ask.sh","content":"curl -s -w ' %{http_code}\\n' -o \"$2\" -H \"Authorization: Bearer $API_TOKEN\" https://api.example.com/$1\n"}`},
		{"shell", `{"script":"sh ask.sh v1/me answer.json && cat answer.json"}`},
		{"shell", `{"script":"sh ask.sh admin denied.json"}`},
		{"shell", `{"script":"echo $API_TOKEN | grep -c secret"}`},
		{"shell", `{"argv":["sh","ask.sh","v1/me","x.json"],"allow_network":false}`},
		{"file_read", `{"path":"/etc/passwd"}`},
	}}
	for {
		tool, arguments, more := m.next()
		if !more {
			break
		}
		result, err := h.tools.Call(ctx, tool, json.RawMessage(arguments))
		if err != nil {
			text, _, _ := strings.Cut(err.Error(), " (")
			fmt.Println("refused:", text) // the model reads all of it
			continue
		}
		fmt.Println(result.Text)
	}
	fmt.Println(h.log.Counts()[audit.KindRequest])
	return nil
}

// newOrigin is api.example.com, on loopback.
func newOrigin() (*httptest.Server, proxy.DialFunc, func() *x509.CertPool, error) {
	authority, err := ca.New(ca.Config{})
	if err != nil {
		return nil, nil, nil, err
	}
	leaf, err := authority.Leaf("api.example.com")
	if err != nil {
		return nil, nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"logged_in":%v}`, r.Header.Get("Authorization") == "Bearer the-real-secret")
	}))
	origin.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	origin.StartTLS()
	return origin, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, origin.Listener.Addr().String())
	}, func() *x509.CertPool { return roots }, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/metrics"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/proxy"
	"github.com/egressd/egressd/rules"
)

// session is what run and serve share: the record, the authority, the proxy
// and the policy in force.
type session struct {
	id     string
	token  string // that the sandbox's explicit proxy asks for; empty: none
	dirs   dirs
	src    *source
	log    *audit.Log
	sink   *gate
	issuer *ca.Issuer
	roots  func() (*ca.Roots, error) // what the host trusts, once read
	set    *rules.Set                // the first one
	proxy  *proxy.Server
	logger *slog.Logger

	counts  *metrics.Counts // of records; nil where nobody asks
	metrics *metrics.Server // that serves them

	// sandboxed says that egressd made the sandbox too (run, not serve).
	sandboxed bool
	// names is told of new rules; nil where there is no DNS stub.
	names func(*rules.Set) error

	// programs are started on the host, for sources of secrets.
	programs *hostPrograms
	// broker is the one in force, for the record; nil until sources are read.
	broker atomic.Pointer[credbroker.Broker]
	// onLeak ends the sandbox where the policy says so; nil where there is none.
	onLeak func(credential string)

	// exposed refuses a new policy whose secrets the sandbox that runs has had
	// before its eyes; nil where there is none.
	exposed func(*policy.Policy) error
	// tell is told what clients are to see whenever it may be another; nil where
	// nobody asks.
	tell func(credbroker.Inside) error
	// used has the ids of credentials that were sent.
	used sync.Map

	// hurry ends the grace of close early; nil for never.
	hurry context.Context

	mu      sync.Mutex // held through a reload
	now     *enforcement
	watcher *policy.Watcher
}

// sessionConfig is what newSession needs beside the policy.
type sessionConfig struct {
	dirs   dirs
	src    *source
	policy *policy.Policy
	audit  string // --audit
	start  audit.Record
	logger *slog.Logger
	// programs are those of the host.
	programs *hostPrograms
}

// newSession opens the record and makes the authority and the policy ready.
// Secrets come with arm; the proxy with serve, once it is known who names
// addresses.
func newSession(c sessionConfig) (*session, error) {
	s := &session{id: audit.NewSession(), token: newToken(), dirs: c.dirs, src: c.src, logger: c.logger, programs: c.programs}
	var err error
	// Some hundred files, read while the rest is made ready.
	s.roots = sync.OnceValues(hostRoots)
	go s.roots()
	if s.issuer, err = newIssuer(c.policy.TLS); err != nil {
		return nil, err
	}
	s.set = rules.New(c.policy.Rules)
	if s.now, err = enforce(c.policy, s.set, s.issuer, s.roots); err != nil {
		return nil, err
	}
	return s, s.openLog(c)
}

// openLog opens the record.
func (s *session) openLog(c sessionConfig) error {
	a := c.policy.Audit
	cfg := audit.Config{
		State: c.dirs.state, File: a.File, Session: s.id, Start: c.start,
		Mask: s.mask, BlockTimeout: a.BlockTimeout, MaxSize: a.MaxSize, MaxTotal: a.MaxTotal, Keep: a.Keep,
		Warn: func(err error) { c.logger.Error("the record cannot be written", "err", err) },
	}
	if c.dirs.uid != os.Getuid() {
		cfg.Owner = &audit.Owner{UID: c.dirs.uid, GID: c.dirs.gid}
	}
	if c.audit != "" {
		cfg.File = c.audit
	}
	if cfg.File != "" {
		cfg.State = ""
	} else if err := c.dirs.own(c.dirs.audit()); err != nil {
		return err
	}
	if a.OnFailure == "warn" {
		cfg.OnFailure = audit.Warn
	}
	switch a.Query {
	case "none":
		cfg.Query = audit.QueryNone
	case "full":
		cfg.Query = audit.QueryFull
	}
	if a.Path == "rule" {
		cfg.Path = audit.PathRule
	}
	cfg.Start.Policy = "sha256:" + c.policy.Hash
	if err := s.openMetrics(c.policy); err != nil {
		return err
	}
	if s.counts != nil {
		cfg.Count = s.counts.Count
	}
	var err error
	if s.log, err = audit.Open(cfg); err != nil {
		return errors.Join(err, s.closeMetrics())
	}
	s.sink = &gate{to: s.log, tell: cfg.Warn}
	return nil
}

// serve makes the proxy. names may be nil.
func (s *session) serve(names proxy.Names, capture, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.now.policy
	var err error
	s.proxy, err = proxy.New(proxy.Config{
		Issuer: s.issuer, Sink: s.sink, Names: names, Session: s.id, Log: s.logger, Policy: s.now.proxy,
		Capture: capture, Token: token, MinTLS: tlsVersion(p.TLS.MinVersion), NoHTTP2: !p.TLS.HTTP2,
		Limits: proxy.Limits{
			MaxConnections: p.Limits.MaxConnections, MaxHeaderBytes: int(p.Limits.MaxHeaderBytes),
			ClientHelloTimeout: p.Limits.ClientHelloTimeout, HeaderTimeout: p.Limits.HeaderTimeout, IdleTimeout: p.Limits.IdleTimeout,
		},
	})
	return err
}

// tellNames has tell told of the rules of each policy that comes.
func (s *session) tellNames(tell func(*rules.Set) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = tell
}

// armed is what clients are to see of the credentials in force. The first time
// it reads their sources.
func (s *session) armed(ctx context.Context) (credbroker.Inside, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.broker == nil {
		if err := s.arm(ctx, s.now, nil); err != nil {
			return credbroker.Inside{}, err
		}
	}
	return s.now.broker.Inside(), nil
}

// close ends the proxy and the record. The reason stands in session_end.
func (s *session) close(reason string) error {
	var shut error
	if s.proxy != nil {
		s.mu.Lock()
		grace := s.now.policy.Limits.ShutdownGrace
		s.mu.Unlock()
		hurry := s.hurry
		if hurry == nil {
			hurry = context.Background()
		}
		ctx, cancel := context.WithTimeout(hurry, grace)
		defer cancel()
		shut = s.proxy.Shutdown(ctx)
		if errors.Is(shut, context.DeadlineExceeded) || errors.Is(shut, context.Canceled) {
			shut = nil // what still ran was broken off, as the grace says
		}
	}
	return errors.Join(shut, s.log.Close(reason), s.closeMetrics())
}

// gate is the sink of the proxy. While it is shut, as during the self-test,
// records are only noted: what egressd asks itself is no request of anybody.
type gate struct {
	tell    func(error) // is told that requests are refused for want of a record
	failing atomic.Bool
	to      audit.Sink
	mu      sync.Mutex
	shut    bool
	held    []audit.Record
}

func (g *gate) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.held = shut, nil
}

func (g *gate) Reserve(ctx context.Context) error {
	if g.closed() {
		return nil
	}
	err := g.to.Reserve(ctx)
	if err == nil {
		g.failing.Store(false)
	} else if ctx.Err() == nil && !g.failing.Swap(true) {
		g.tell(err) // once for each spell: requests are refused until it is over
	}
	return err
}

func (g *gate) Append(records ...*audit.Record) error {
	g.mu.Lock()
	if g.shut {
		for _, r := range records {
			g.held = append(g.held, *r)
		}
		g.mu.Unlock()
		return nil
	}
	g.mu.Unlock()
	return g.to.Append(records...)
}

func (g *gate) Release() {
	if !g.closed() {
		g.to.Release()
	}
}

// summary is the one line about a session that its user wants to see.
func (s *session) summary(took time.Duration) string {
	counts := s.log.Counts()
	requests := counts[audit.KindRequest]
	total := requests["allow"] + requests["deny"] + requests["error"]
	more := ""
	used := 0
	s.used.Range(func(any, any) bool { used++; return true })
	if used > 0 {
		more += ", " + count(used, "credential") + " used"
	}
	if n := counts[audit.KindLeak]["deny"]; n > 0 {
		more += ", " + count(int(n), "leak") + " stopped"
	}
	return fmt.Sprintf("egressd: %s, %d denied, %d failed%s in %s; see egressd audit list --session %s",
		count(int(total), "request"), requests["deny"], requests["error"], more, took.Round(time.Second), s.id)
}

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/netns"
	"github.com/egressd/egressd/netns/mount"
)

// selfTestTime bounds the whole self-test.
const selfTestTime = 10 * time.Second

// early serves the sandbox's doors and tries them, while there is nothing
// inside yet. What the probes find is told by selfTest.
func (r *runner) early(ctx context.Context, box *netns.Session) (err error) {
	r.box = box
	if _, err := r.secrets(); err != nil {
		return err // the doors serve nobody without what guards them
	}
	r.sess.sink.set(true) // selfTest opens it
	if r.doors, err = r.openDoors(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, selfTestTime)
	defer cancel()
	r.tried, r.network = true, all(ctx, r.networkProbes())
	return nil
}

// selfTest proves from inside, before the program starts, that the sandbox
// holds: whatever fails, nothing runs. It is one record, and none of what it
// asks counts as a request.
func (r *runner) selfTest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, selfTestTime)
	defer cancel()
	r.sess.sink.set(true)
	defer r.sess.sink.set(false)
	probes := []func(context.Context) error{r.probeInside}
	if r.policy.HasRules && !r.tried {
		probes = append(probes, r.networkProbes()...)
	}
	err := errors.Join(r.network, all(ctx, probes))
	verdict := "allow"
	if err != nil {
		verdict = "error"
	}
	if e := r.sess.log.Append(&audit.Record{Kind: audit.KindSelfTest, Verdict: verdict}); e != nil {
		return e
	}
	if err != nil {
		return fmt.Errorf("the self-test of the sandbox failed, nothing was run: %w", err)
	}
	return nil
}

// all runs probes side by side.
func all(ctx context.Context, probes []func(context.Context) error) error {
	errs := make([]error, len(probes))
	var wg sync.WaitGroup
	for i, probe := range probes {
		wg.Go(func() { errs[i] = probe(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// probeInside looks at files and devices through the launcher.
func (r *runner) probeInside(ctx context.Context) error {
	checks := []netns.Check{{Kind: netns.CheckReadOnly, Path: "/usr"}}
	for _, path := range []string{shadow, r.src.dirs.state} {
		kind := netns.CheckAbsent
		if slices.ContainsFunc(r.grants, func(g mount.Grant) bool { return within(path, g.Path) }) {
			kind = netns.CheckReadOnly // hidden in a grant, where it shows empty
		}
		checks = append(checks, netns.Check{Kind: kind, Path: path})
	}
	if r.policy.HasRules || !r.policy.Sandbox.AllowNetwork {
		checks = append(checks, networkChecks()...)
	}
	failures, err := r.box.Check(ctx, checks...)
	for _, f := range failures {
		err = errors.Join(err, errors.New(f))
	}
	return err
}

// selfTestHost is a name that no rule can mean.
func selfTestHost() string { return "self-test-" + rand.Text()[:12] + ".egressd.internal" }

// probeDenied asks the explicit proxy for what no rule allows.
func (r *runner) probeDenied(ctx context.Context) error {
	c, err := r.box.Dial(ctx, "tcp", insideLayout.proxy)
	if err != nil {
		return fmt.Errorf("reaching the proxy: %w", err)
	}
	host := selfTestHost()
	return deniedBy(c, "http://"+host+"/", host, tokenField(r.sess.token), "the proxy")
}

// deniedBy sends a request over c, with fields more, and wants egressd's own 403.
func deniedBy(c net.Conn, target, host, more, door string) error {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(selfTestTime)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n", target, host, more); err != nil {
		return fmt.Errorf("asking %s: %w", door, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", door, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden || resp.Header.Get("Proxy-Status") == "" {
		return fmt.Errorf("asking %s: a request that no rule allows was answered %d, not refused", door, resp.StatusCode)
	}
	return nil
}

// probeRefused dials what nothing listens on: each must be refused at once.
func (r *runner) probeRefused(ctx context.Context) error {
	targets := map[string][]string{"tcp": {"203.0.113.7:9"}, "udp": {"203.0.113.7:443"}}
	if r.box.IPv6() {
		targets["tcp"] = append(targets["tcp"], "[2001:db8::7]:9")
		targets["udp"] = append(targets["udp"], "[2001:db8::7]:443")
	}
	var errs []error
	for network, addrs := range targets {
		for _, addr := range addrs {
			errs = append(errs, r.box.Refuses(ctx, network, addr))
		}
	}
	return errors.Join(errs...)
}

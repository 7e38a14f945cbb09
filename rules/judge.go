package rules

import (
	"strings"
	"time"
)

// Judge answers one request that is looked into. host is canonical or as sent.
// Allowed, it gives the canonical text of the deciding rule and the bytes that
// the body may have, -1 for any; with charge the rates that count are charged,
// and refund, nil where none was, takes that back if the request does not
// happen after all. Without charge rates are not asked. Refused, the error is a
// *Denial. A CONNECT is never allowed: tunnels are Connect's matter.
func (s *Set) Judge(at time.Time, charge bool, method, scheme, host string, port int, target string, header map[string][]string, length int64) (rule string, limit int64, refund func(), err error) {
	var a ask
	var o outcome
	if a.host, err = judgedHost(host); err != nil {
		return "", -1, nil, err
	}
	if a.read(at, method, scheme, port, target, header, length, &o) {
		s.judge(&a, charge, &o)
	}
	if o.reason != "rule" {
		return "", -1, nil, s.denial(&a, &o)
	}
	if len(o.charged) > 0 {
		refund = s.refund(o.charged)
	}
	return o.rule.text, o.limit, refund, nil
}

// judgedHost is CanonicalHost that takes its own IPv6 addresses, which are
// without brackets, as well.
func judgedHost(host string) (string, error) {
	if strings.IndexByte(host, ':') >= 0 && host[0] != '[' {
		name, err := CanonicalHost("[" + host + "]")
		if err == nil && name == host {
			return name, nil
		}
	}
	return CanonicalHost(host)
}

// refund takes charges back, once.
func (s *Set) refund(charged []*counter) func() {
	l := s.ledger
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, c := range charged {
			c.refund()
		}
		charged = nil
	}
}

// denial is an outcome as an error.
func (s *Set) denial(a *ask, o *outcome) *Denial {
	d := s.decision(a, o)
	e := &Denial{reason: d.Reason, hint: d.Hint, note: d.Note, status: d.Status, retry: d.retry}
	if d.Rule != nil {
		e.rule = d.Rule.String()
	}
	return e
}

// Connect answers a CONNECT on the explicit door. Where a CONNECT rule allows
// the host and port, rule is its canonical text, a rate is charged (with charge)
// and what follows is a tunnel that nobody looks into. Else inspect says that
// the client gets its 200 and is judged inside, so that it reads the reason of
// a denial in a response: on 443, on 80 where a rule covers http, and on ports
// that an allow rule names. Any other is refused at once, with a *Denial.
func (s *Set) Connect(at time.Time, charge bool, host string, port int) (rule string, inspect bool, err error) {
	var a ask
	var o outcome
	a.tunnel = true
	if a.host, err = judgedHost(host); err != nil {
		return "", false, err
	}
	if !a.read(at, connect, "", port, "", nil, 0, &o) {
		return "", false, s.denial(&a, &o)
	}
	s.judge(&a, charge, &o)
	switch o.reason {
	case "rule":
		return o.rule.text, false, nil
	case "rate_limited":
		return "", false, s.denial(&a, &o)
	}
	if s.inspects(a.host, port) {
		return "", true, nil
	}
	return "", false, s.denial(&a, &o)
}

// Denies says whether a deny rule in force, CONNECT rules among them, speaks of
// this canonical host and port, whatever its methods, path and query: what is
// not looked into could be what it denies.
func (s *Set) Denies(at time.Time, host string, port int) bool {
	if s == nil || s.broken != nil {
		return true
	}
	var buf [8]*bucket
	for _, b := range s.buckets(buf[:0], host) {
		for _, c := range b.closings {
			if c.rule.Port == port && c.live(at) {
				return true
			}
		}
		for _, c := range b.deny {
			if c.live(at) && (c.rule.covers("http", port) || c.rule.covers("https", port)) {
				return true
			}
		}
	}
	return false
}

// inspects says whether requests may be judged inside a CONNECT to this port.
func (s *Set) inspects(host string, port int) bool {
	if port == 443 {
		return true
	}
	if s == nil || s.broken != nil {
		return false
	}
	if port == 80 && s.anyHTTP || s.named[port] {
		return true
	}
	for _, b := range s.buckets(nil, host) {
		for _, c := range b.allow {
			if c.rule.Port == AnyPort {
				return true
			}
		}
	}
	return false
}

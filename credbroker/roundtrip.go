package credbroker

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"

	"github.com/egressd/egressd/credbroker/redact"
	"github.com/egressd/egressd/credbroker/scan"
	"github.com/egressd/egressd/credbroker/secret"
)

// RoundTrip passes on one request that the rules allow. r is what is about to go
// out: the fields of one connection are gone, the raw target is in r.URL, and
// r.Trailer is filled when r.Body has ended. It is changed, its body too, and
// the body closed where r is not sent.
//
// send is called once, not at all where the request is refused, or once more
// after a 401, for a request without a body and with a newer secret. note tells
// what goes into the record: kind is credential, leak or redaction, verdict
// allow or deny, credential the id of an entry or "" for none's. It is called
// from whatever goroutine reads a body.
//
// An error of its own, and one of the bodies, has Reason() string.
func (b *Broker) RoundTrip(r *http.Request, send func(*http.Request) (*http.Response, error), note func(kind, verdict, credential string)) (*http.Response, error) {
	host, at := placeOf(r.URL)
	at.site, at.path = b.sites.host(host), rawPath(r.URL)
	if at.site != nil {
		at.also = overridden(r.Header)
	}
	x := &outgoing{Broker: b, place: at, r: r, note: note, look: b.finder(), host: host, echoes: echoes(r.Method) || slices.ContainsFunc(at.also.methods, echoes)}
	if err := x.judge(); err != nil {
		closeBody(r)
		return nil, err
	}
	if x.site == nil {
		return send(r)
	}
	return x.exchange(send)
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // what is refused is not sent, and nobody is left to tell
	}
}

// judge settles whether the request goes out. Where several reasons apply it is
// the first of these: a leak in the head, a foreign credential, plain http, a
// leak in the body.
func (x *outgoing) judge() error {
	x.inspect()
	if err := x.leaking(); err != nil {
		return err
	}
	if x.aws.named != "" {
		return x.unsigned(x.aws.err, x.aws.named)
	}
	if err := x.foreign(); err != nil {
		return err
	}
	if x.plain && x.site != nil && (x.swapping() || x.aws.again != nil || x.attaching() != nil) {
		return errPlaintext
	}
	return x.take()
}

// leaking records the leaks that were found, and is the error for the client. A
// real secret is the graver of two.
func (x *outgoing) leaking() error {
	for _, id := range x.leaks {
		x.tell("leak", "deny", id)
	}
	switch {
	case len(x.leaks) == 0:
		return nil
	case x.secret:
		return errSecret
	case x.echoes:
		return errLeakMethod
	case len(x.leaks) == 1 && x.leaks[0] == "":
		return errLeakOld
	}
	return errLeak
}

// tell is note, and for what ends a sandbox by `on_leak: kill` the alarm too:
// for every leak that was found, but not for a placeholder that stands where it
// belongs in a request that is refused for what it asks.
func (x *outgoing) tell(kind, verdict, credential string) {
	x.note(kind, verdict, credential)
	if kind == "leak" && verdict == "deny" && x.onLeak != nil {
		x.onLeak(credential)
	}
}

// take puts itself before the body where it, or a trailer, is to be looked
// through, and holds it.
func (x *outgoing) take() error {
	r := x.r
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	scan, form := scannable(r.Header)
	own, unread := x.ownFields()
	if unread {
		return errForeignBody
	}
	if !scan && own == nil && r.Trailer == nil {
		return nil
	}
	held := &body{src: r.Body, ctx: r.Context(), budget: x.held}
	if r.Trailer != nil {
		held.trailer = x.trailer
	}
	r.Body = held
	if !scan && own == nil {
		return nil
	}
	var looks scanners
	if scan {
		looks = append(looks, newBodyScan(x.look, form, x.passes[x.host], x.tell))
	}
	if own != nil {
		looks = append(looks, own)
	}
	held.scan = looks
	return held.hold(r.ContentLength, func() { delete(r.Header, "Expect") })
}

// trailer looks through the trailer that came, in which nothing belongs.
func (x *outgoing) trailer() error {
	t := &outgoing{Broker: x.Broker, look: x.look, note: x.note}
	for key, lines := range x.r.Trailer {
		if !x.look.clean(key) {
			t.leaked(key, true)
		}
		for i, line := range lines {
			t.line(key, i, line)
		}
	}
	for _, name := range x.foreignNames {
		for key := range x.r.Trailer {
			if foldName(key) == name {
				delete(x.r.Trailer, key)
			}
		}
	}
	return t.leaking()
}

// swapping says that placeholders stand where secrets belong.
func (x *outgoing) swapping() bool {
	for _, f := range x.fields {
		for _, v := range f.values {
			if len(v.placeholders) > 0 {
				return true
			}
		}
	}
	for _, p := range x.query {
		if len(p.at) > 0 {
			return true
		}
	}
	return false
}

// attaching is the credential whose secret goes with the request though it
// holds no placeholder; nil for none.
func (x *outgoing) attaching() *credential {
	if x.echoes || x.swapping() {
		return nil
	}
	for b := range x.covered {
		if b.cred.attaches() && !x.present(b.cred) {
			return b.cred
		}
	}
	return nil
}

// exchange sends a request to a host that something is bound to, and makes the
// answer safe.
func (x *outgoing) exchange(send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	cred, attach := x.swaps, false
	if x.aws.again != nil {
		cred = x.aws.again
	} else if !x.swapping() {
		cred = x.attaching()
		attach = cred != nil
	}
	x.settleTarget()
	redact.Request(x.r)
	dropped := x.dropRange()
	out := x.r.WithContext(x.watch())
	var generation uint64
	if cred != nil {
		var err error
		if generation, err = x.equip(out, cred, attach); err != nil {
			closeBody(x.r)
			return nil, err
		}
		x.note("credential", "allow", cred.entry.ID)
	}
	res, err := send(out)
	if err == nil && res.StatusCode == http.StatusUnauthorized && cred != nil {
		res, err = x.again(res, out, cred, attach, generation, send)
	}
	if err != nil {
		return nil, err
	}
	cfg := x.config()
	cfg.RangeDropped, cfg.RangeKept = dropped, x.keepsRange()
	if err := redact.Answer(res, cfg); err != nil {
		return nil, err
	}
	return res, nil
}

// equip puts the secret of now into the request.
func (x *outgoing) equip(out *http.Request, c *credential, attach bool) (generation uint64, err error) {
	value, generation, err := x.have(out.Context(), c)
	if err != nil {
		return 0, err
	}
	if c.entry.Type == AWSSigV4 {
		return generation, x.sign(out, c, value)
	}
	if attach {
		x.attach(out, c, value.Reveal())
		return generation, nil
	}
	text := string(value.Reveal())
	for i := range x.fields {
		x.fields[i].write(out.Header, func(*placeholder) string { return text })
	}
	if x.query != nil {
		u := *out.URL
		u.RawQuery = joinPairs(x.query, func(*placeholder) string { return escapeQuery(text) })
		out.URL = &u
	}
	return generation, nil
}

// again asks for the secret anew after a 401, and sends a request without a
// body once more where there is another one now.
func (x *outgoing) again(res *http.Response, out *http.Request, c *credential, attach bool, sent uint64, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	_, _, changed, err := c.value.Renew(out.Context(), sent)
	if err != nil || !changed || out.Body != nil && out.Body != http.NoBody {
		return res, nil // the origin's own answer says it best
	}
	_ = res.Body.Close() // nothing of it is passed on
	if _, err := x.equip(out, c, attach); err != nil {
		return nil, err
	}
	return send(out)
}

// config is how answers of the host are made safe.
func (x *outgoing) config() redact.Config {
	set, names := x.sets()
	return redact.Config{
		Set: set, Names: names, Renewed: x.sets, Strict: x.strict, Linger: x.site.linger, Method: x.r.Method,
		Note: func(entry string) { x.note("redaction", "allow", entry) },
	}
}

// sets are what the answer is looked through for, as of now: a secret that was
// had since it began is among them.
func (x *outgoing) sets() (set, names *scan.Set) {
	s := x.sought(x.site)
	if x.aws.made == "" {
		return s.set, s.names
	}
	a := &x.aws.sought
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of != s || a.made != x.aws.made {
		list := append(slices.Clone(s.secrets), scan.Secret{Value: []byte(x.aws.made), Replacement: secret.Redacted, Entry: x.aws.by})
		a.of, a.made, a.set, a.names = s, x.aws.made, scan.New(list, s.coded...), redact.Names(list)
	}
	return a.set, a.names
}

// watch is the request's context with interim answers made safe before anyone
// sees them.
func (x *outgoing) watch() context.Context {
	return httptrace.WithClientTrace(x.r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			redact.Interim(h, x.config())
			return nil
		},
	})
}

// keepsRange says whether clients may ask the host for parts.
func (x *outgoing) keepsRange() bool { return !x.site.clear || x.site.keepsRange }

// dropRange takes Range off where a secret travels in clear, since slices of one
// are no find, and says whether a slice is none that was asked for: servers know
// other fields and parameters that ask for one, such as Request-Range.
func (x *outgoing) dropRange() bool {
	if x.keepsRange() {
		return false
	}
	delete(x.r.Header, "Range")
	delete(x.r.Header, "If-Range")
	return true
}

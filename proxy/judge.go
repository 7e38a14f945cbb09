package proxy

import (
	"net/http"
	"strings"
	"time"
)

// head is what the client asked for, as it sent it, whatever the protocol.
type head struct {
	method string
	target string // request-target, or :path
	host   string // Host, or :authority
	second string // a Host field beside :authority
	proto  string
	expect string
	length int64 // of the body, -1 where it is not known
}

// inForce is a policy with what was built from it: the one thing that changes
// at a reload. A request takes it once.
type inForce struct {
	*Policy
	up *upstream
}

func (f *inForce) canonical(host string) (string, error) {
	if f.Rules == nil {
		return "", &denial{reason: "no_rule"}
	}
	return f.Rules.Canonical(host)
}

// ask puts a request to the rules. Under learn what no rule knows is let
// through; what a deny rule hits is not.
func (f *inForce) ask(charge bool, at time.Time, q *question) (rule string, limit int64, refund func(), learned bool, err error) {
	if f.Rules == nil {
		return "", -1, nil, false, &denial{reason: "no_rule"}
	}
	rule, limit, refund, err = f.Rules.Judge(at, charge, q.method, q.scheme, bracketed(q.host), q.port, q.target, q.header, q.length)
	if err != nil && f.Learn && learnable(refusalOf(err).reason) {
		return "", -1, nil, true, nil
	}
	return rule, limit, refund, false, err
}

// question is what the rules are asked of a request.
type question struct {
	method, scheme, host string
	port                 int
	target               string
	header               http.Header
	length               int64
}

// learnable are the reasons for which a rule is missing, not against it.
func learnable(reason string) bool {
	switch reason {
	case "no_rule", "port_not_allowed", "method_not_allowed", "path_not_allowed", "query_not_allowed", "expired":
		return true
	}
	return false
}

// bracketed is a canonical host as an authority writes it.
func bracketed(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		return "[" + host + "]"
	}
	return host
}

// ownHost is the name of the proxy itself, inside. No rule speaks of it and it
// is never looked up.
const ownHost = "egressd.internal"

func isOwnHost(host string) bool {
	return host == ownHost || strings.HasSuffix(host, "."+ownHost)
}

// serve judges one request that is not a CONNECT, and answers or forwards it.
func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
	scheme, target, path, err := x.readTarget()
	t := &x.client.target
	x.describe(x.head.method, t.scheme(), t.host, t.port, path)
	if err != nil {
		x.refuse(refusalOf(err))
		return
	}
	host, err := x.agree(target)
	if err != nil {
		if t.host == "" && host.host != "" {
			x.rec.Host, x.rec.Port = host.host, host.port
		}
		x.refuse(refusalOf(err))
		return
	}
	x.rec.Host, x.rec.Port = host.host, host.port
	if scheme != "" && scheme != t.scheme() {
		x.refuse(badRequest("The target names another scheme than the one that is spoken."))
		return
	}
	switch {
	case host.shared, host.unnamed, t.unnamed:
		x.refuse(&denial{reason: "no_rule"})
		return
	case isOwnHost(host.host):
		x.ownPage(host, path)
		return
	}
	x.forward.host = host
	x.forward.path = path
	if err := x.judge(r); err != nil {
		x.refuse(refusalOf(err))
		return
	}
	if x.answersHere(r) {
		return
	}
	if err := x.reserve(); err != nil {
		x.refuse(refusalOf(err))
		return
	}
	if !x.server.live.add(x) {
		x.refuse(&denial{reason: "no_rule"})
		return
	}
	x.run(w, r)
}

// readTarget parts a request-target (RFC 9112 section 3.2): the scheme and
// authority of an absolute form, empty for the origin form, and the path with
// its query byte for byte.
func (x *exchange) readTarget() (scheme, auth, path string, err error) {
	s := x.head.target
	inside := x.client.target.tunnel
	switch {
	case strings.HasPrefix(s, "/"):
		if !inside {
			return "", "", s, badRequest("On the proxy port a target is a whole http address.")
		}
		return "", "", s, nil
	case s == "*":
		return "", "", "", badRequest("No rule can speak of the asterisk form.")
	}
	scheme, rest, ok := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && !(inside && scheme == "https") {
		return "", "", "", badRequest("The target is neither a path nor an address that is spoken here.")
	}
	auth, path = rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		auth, path = rest[:i], rest[i:]
		if path[0] != '/' {
			path = "/" + path
		}
	}
	if auth == "" {
		return scheme, "", path, badRequest("The address has no host.")
	}
	return scheme, auth, path, nil
}

// judge asks the rules, then looks at what no rule speaks of. What it refuses
// after the rules were charged gives the rate back.
func (x *exchange) judge(r *http.Request) error {
	f := &x.forward
	upgradeErr := x.readUpgrade()
	q := x.question()
	rule, limit, refund, learned, err := x.force.ask(true, x.start, &q)
	if err != nil {
		return err
	}
	x.refund, x.learned = refund, learned
	x.allow(rule)
	if upgradeErr != nil {
		return upgradeErr
	}
	if most := x.force.MaxRequestBytes; most > 0 && (limit < 0 || most < limit) {
		limit = most
	}
	if limit >= 0 && x.head.length > limit {
		return &denial{reason: "body_too_large"}
	}
	f.field = x.client.fieldOf(f.host)
	if !f.setURL(x.client.target.scheme()) {
		return &denial{reason: "ambiguous_path", detail: "A path that begins with two slashes and holds unescaped marks cannot be sent on as it is."}
	}
	x.body.limit = limit
	return nil
}

func (x *exchange) question() question {
	f := &x.forward
	return question{
		method: x.head.method, scheme: x.client.target.scheme(), host: f.host.host, port: f.host.port,
		target: f.path, header: x.header, length: x.head.length,
	}
}

// forbidden asks whether the policy of now still allows what is running. A rate
// used up meanwhile ends nothing.
func (x *exchange) forbidden(f *inForce, now time.Time) bool {
	if x.rec.Tunnel {
		return x.tunnelForbidden(f, now)
	}
	q := x.question()
	q.length = -1
	_, _, _, _, err := f.ask(false, now, &q)
	if err == nil {
		return false
	}
	switch refusalOf(err).reason {
	case "rate_limited", "body_too_large":
		return false
	}
	return true
}

// ownPage answers for egressd.internal.
func (x *exchange) ownPage(host authority, path string) {
	only, _, _ := strings.Cut(path, "?")
	switch {
	case host.host != ownHost || only != "/policy":
		x.refuse(&denial{reason: "no_rule", detail: "Only /policy is here."})
	case x.head.method != http.MethodGet && x.head.method != http.MethodHead:
		x.refuse(&denial{reason: "method_not_allowed"})
	default:
		x.allow("")
		x.answerOwn("application/json", x.force.Page)
	}
}

// answerOwn sends a whole answer of ours, recorded before it goes; one that
// cannot be recorded is not given.
func (x *exchange) answerOwn(contentType string, body []byte) {
	if err := x.reserve(); err != nil {
		x.refuse(refusalOf(err))
		return
	}
	h := x.answer.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	x.answer.status = http.StatusOK
	x.finish()
	x.answer.WriteHeader(http.StatusOK)
	if x.head.method != http.MethodHead {
		_, _ = x.answer.Write(body)
	}
}

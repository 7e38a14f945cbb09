package proxy

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// denial is why a request gets an answer of ours. As an error it is a refusal
// like any other: Reason, and what else is known of it.
type denial struct {
	reason string
	status int    // 0: the reason's own
	title  string // "": the reason's own
	detail string // "": the reason's own; quotes nothing of client or origin
	hint   string
	note   string
	retry  time.Duration
	close  bool // the connection cannot go on
}

func (d *denial) Error() string  { return "refusing the request: " + d.reason }
func (d *denial) Reason() string { return d.reason }

// badRequest is a refusal after which the connection is closed, since client
// and proxy do not agree about what was said.
func badRequest(detail string) *denial {
	return &denial{reason: "bad_request", detail: detail, close: true}
}

// refusalOf reads a refusal of another package by its methods. An error that
// gives no reason is a fault of ours.
func refusalOf(err error) *denial {
	var d *denial
	if errors.As(err, &d) {
		return d
	}
	d = &denial{reason: "internal"}
	var reason interface{ Reason() string }
	if errors.As(err, &reason) {
		d.reason = reason.Reason()
	}
	var hint interface{ Hint() string }
	if errors.As(err, &hint) {
		d.hint = hint.Hint()
	}
	var title interface{ Title() string }
	if errors.As(err, &title) {
		d.title = title.Title()
	}
	var detail interface{ Detail() string }
	if errors.As(err, &detail) {
		d.detail = detail.Detail()
	}
	var note interface{ Note() string }
	if errors.As(err, &note) {
		d.note = note.Note()
	}
	var status interface{ Status() int }
	if errors.As(err, &status) {
		d.status = status.Status()
	}
	var after interface{ RetryAfter() time.Duration }
	if errors.As(err, &after) {
		d.retry = after.RetryAfter()
	}
	return d
}

// answers is every reason that can be answered: its status, a title that says
// what happened, and what it means.
var answers = map[string]struct {
	status        int
	title, detail string
}{
	"no_rule":                {403, "Host not allowed", "No rule of the policy allows this host."},
	"port_not_allowed":       {403, "Port not allowed", "Rules know this host, but none allows this scheme and port."},
	"method_not_allowed":     {403, "Method not allowed", "Rules know this host, but none allows this method."},
	"path_not_allowed":       {403, "Path not allowed", "Rules know this host, but none allows every reading of this path."},
	"query_not_allowed":      {403, "Query not allowed", "A rule fits but for its query clause."},
	"deny_rule":              {403, "Denied by a rule", "A deny rule of the policy fits this request."},
	"expired":                {403, "Rule expired", "The rule that would allow this request has ended."},
	"private_address":        {403, "Private address", "The host resolves to an address that is not public. The policy opens one by egress_allow_private_destinations, and a service of the host by upstream.resolve."},
	"upgrade_not_allowed":    {403, "Upgrade not allowed", "Only a switch to WebSocket is let through."},
	"credential_leak":        {403, "Credential where it does not belong", "The request holds a placeholder or a secret that is not bound to this place."},
	"credential_plaintext":   {403, "Secret on a cleartext request", "A secret is never sent over plain http."},
	"credential_foreign":     {403, "Foreign credential", "The request brings a credential of its own to a host that has one bound."},
	"approval_denied":        {403, "Not approved", "The request was put to a person or a hook, and refused."},
	"approval_timeout":       {403, "Approval timed out", "The request was put to a person or a hook, and nobody answered in time."},
	"bad_host":               {400, "Bad host", "The host is not a name or an address in its plain spelling."},
	"ambiguous_path":         {400, "Ambiguous path", "Servers would disagree about what this path means."},
	"bad_request":            {400, "Bad request", "The request is malformed."},
	"protocol":               {400, "Protocol not spoken here", "This is a protocol or a use of one that the proxy does not pass on."},
	"proxy_auth":             {407, "Proxy authentication required", "The proxy wants its token, as Basic or Bearer."},
	"body_too_large":         {413, "Body too large", "The body is larger than the policy allows."},
	"authority_mismatch":     {421, "Authorities disagree", "Connection, server name, target and Host do not all name the same host and port."},
	"rate_limited":           {429, "Rate limited", "The rule that allows this request has no room left for now."},
	"internal":               {500, "Internal error", "The proxy failed at this request."},
	"dns":                    {502, "Name not resolved", "The name of the origin could not be resolved."},
	"connect":                {502, "Origin not reached", "No connection to the origin could be made."},
	"upstream_tls":           {502, "Origin not trusted", "The TLS handshake with the origin failed."},
	"upstream_reset":         {502, "Origin broke off", "The origin closed the connection or answered in malformed HTTP."},
	"credential_unavailable": {502, "Credential not available", "The secret for this host could not be had."},
	"overloaded":             {503, "Too many connections", "The proxy serves as many connections as it may."},
	"audit_unavailable":      {503, "Record not available", "The request could not be recorded, so it was not sent."},
	"timeout":                {504, "Origin too slow", "The origin did not answer in time."},
}

// retryReasons are those that another try may not meet.
func retryable(reason string) bool {
	switch reason {
	case "rate_limited", "overloaded", "audit_unavailable", "approval_timeout":
		return true
	}
	return false
}

// problem is the document of a refusal (RFC 9457 with members of our own).
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	RuleHint  string `json:"rule_hint,omitempty"`
	RequestID string `json:"request_id"`
	Retry     bool   `json:"retry"`
}

// refuse answers the request with d and records it, at once.
func (x *exchange) refuse(d *denial) {
	known, ok := answers[d.reason]
	if !ok {
		d.reason = "internal"
		known = answers[d.reason]
	}
	if x.refund != nil && verdictOf(d.reason) == "deny" {
		x.refund()
		x.refund = nil
	}
	p := problem{
		Type: "tag:egressd.internal,2026:" + d.reason, Title: known.title, Status: known.status, Detail: known.detail,
		Code: d.reason, RuleHint: d.hint, RequestID: x.rec.RequestID, Retry: retryable(d.reason),
	}
	if d.reason == "credential_leak" && d.status == http.StatusBadGateway {
		p.Title, p.Detail = answerLeakTitle, answerLeakDetail
	}
	if d.status != 0 {
		p.Status = d.status
	}
	if d.title != "" {
		p.Title = d.title
	}
	if d.detail != "" {
		p.Detail = d.detail
	}
	if d.note != "" {
		p.Detail += " (" + d.note + ")"
	}
	doc, err := json.Marshal(p)
	if err != nil { // strings and numbers always marshal
		doc = []byte("{}")
	}
	doc = append(doc, '\n') // a terminal's prompt begins a line of its own
	h := x.answer.Header()
	clear(h)
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(doc)))
	h.Set("Cache-Control", "no-store")
	h.Set("Proxy-Status", `egressd; error=http_request_denied; details="`+d.reason+`"`)
	if p.Retry {
		h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(d.retry.Seconds())))))
	}
	if d.reason == "proxy_auth" {
		h.Set("Proxy-Authenticate", `Basic realm="egressd"`)
	}
	if d.close {
		x.answer.hangUp()
	}
	x.mu.Lock()
	x.rec.Verdict, x.rec.Reason, x.rec.Hint = verdictOf(d.reason), d.reason, d.hint
	x.mu.Unlock()
	x.answer.status = p.Status
	x.finish()
	x.answer.WriteHeader(p.Status)
	if x.head.method != http.MethodHead {
		_, _ = x.answer.Write(doc)
	}
}

// Package metrics counts records, in the form of Prometheus.
//
// A [Counts] is told of each record as it takes its place in the chain
// ([audit.Config.Count]), so what is not recorded is not counted, and the
// numbers are those of the record. [Counts.Handler] serves them, [Serve] on a
// listener of their own.
//
// Every label is of a closed set: verdicts, reasons, methods that are known or
// "other", ids of credentials or "unknown", and rules as the first eight hex
// digits of the SHA-256 of their canonical text, 200 of them and then "other".
// Hosts and paths are in no label: whoever makes the requests would choose how
// many series there are.
package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/egressd/egressd/audit"
)

// ruleMost is how many rules have a label of their own.
const ruleMost = 200

// durations are the buckets of times, in seconds: from what a denial takes to
// the ten minutes that an origin may take for its head.
var durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600}

// Counts are the metrics of one process. Their registry is their own.
type Counts struct {
	registry *prometheus.Registry

	requests, bytes, upstream, dns, uses, leaks, redactions, records *prometheus.CounterVec
	duration, ttfb                                                   prometheus.Histogram
	generation, stale                                                prometheus.Gauge

	kinds   map[audit.Kind]prometheus.Counter
	in, out prometheus.Counter

	mu     sync.Mutex
	rules  map[string]string // canonical text → label
	series map[judged]prometheus.Counter
	shown  time.Time // when a request last left its id
}

// judged is what a series of egressd_requests_total is found by: its labels,
// with the rule's text in the place of its hash.
type judged struct{ verdict, reason, rule, method string }

// New makes counts that are all zero. The version stands in egressd_build_info.
func New(version string) *Counts {
	c := &Counts{registry: prometheus.NewRegistry(), rules: map[string]string{},
		series: map[judged]prometheus.Counter{}, kinds: map[audit.Kind]prometheus.Counter{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "egressd_" + name, Help: help}, labels)
		c.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "egressd_" + name, Help: help, Buckets: durations})
		c.registry.MustRegister(h)
		return h
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "egressd_" + name, Help: help})
		c.registry.MustRegister(g)
		return g
	}
	c.requests = counter("requests_total", "Requests, by how they were judged.", "verdict", "reason", "rule", "method")
	c.bytes = counter("request_bytes_total", "Bytes of bodies: out to origins, in from them.", "direction")
	c.upstream = counter("upstream_errors_total", "Requests that an origin, or the way to it, failed.", "reason")
	c.dns = counter("dns_questions_total", "Questions to the DNS stub, once for each name and type.", "verdict")
	c.uses = counter("credential_uses_total", "Requests that a credential was sent with.", "credential")
	c.leaks = counter("credential_leaks_total", "Placeholders where they are not bound, and secrets where none belongs.", "credential")
	c.redactions = counter("redactions_total", "Answers that a secret was taken out of.", "credential")
	c.records = counter("audit_records_total", "Records of any kind.", "kind")
	c.duration = histogram("request_duration_seconds", "From the head of a request to the end of its answer.")
	c.ttfb = histogram("ttfb_seconds", "From the head of a request to the first byte of the origin's answer.")
	c.generation = gauge("policy_generation", "How many policies were in force, this one included.")
	c.stale = gauge("policy_stale", "1 where the newest policy did not load, so that the one before is in force.")
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "egressd_build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	c.registry.MustRegister(build)
	c.generation.Set(1)
	// A series that begins with its first event cannot be alerted on.
	for _, k := range audit.Kinds() {
		c.kinds[k] = c.records.WithLabelValues(string(k))
	}
	c.in, c.out = c.bytes.WithLabelValues("in"), c.bytes.WithLabelValues("out")
	return c
}

// Know makes the series of credentials before anything happens to them.
func (c *Counts) Know(credentials ...string) {
	for _, id := range append(credentials, unknown) {
		c.uses.WithLabelValues(id)
		c.leaks.WithLabelValues(id)
		c.redactions.WithLabelValues(id)
	}
}

// unknown is the label of a leak that no credential of the policy explains.
const unknown = "unknown"

// Count counts one record. It is quick, and safe for concurrent calls.
func (c *Counts) Count(r *audit.Record) {
	c.kinds[r.Kind].Inc() // the log takes no other
	credential := r.Credential
	if credential == "" {
		credential = unknown
	}
	switch r.Kind {
	case audit.KindRequest:
		c.request(r)
	case audit.KindDNS:
		c.dns.WithLabelValues(r.Verdict).Inc()
	case audit.KindCredential:
		c.uses.WithLabelValues(credential).Inc()
	case audit.KindLeak:
		exemplar(c.leaks.WithLabelValues(credential), r)
	case audit.KindRedaction:
		exemplar(c.redactions.WithLabelValues(credential), r)
	case audit.KindReload:
		if r.Verdict == "allow" {
			c.generation.Inc()
			c.stale.Set(0)
		} else {
			c.stale.Set(1)
		}
	}
}

func (c *Counts) request(r *audit.Record) {
	m, shown := c.judged(r)
	if shown {
		exemplar(m, r)
		observe(c.duration, r.Duration.Seconds(), r)
	} else {
		m.Inc()
		c.duration.Observe(r.Duration.Seconds())
	}
	c.out.Add(float64(r.BytesOut))
	c.in.Add(float64(r.BytesIn))
	if r.TTFB > 0 {
		c.ttfb.Observe(r.TTFB.Seconds())
	}
	switch r.Reason {
	case "dns", "connect", "upstream_tls", "upstream_reset", "timeout":
		if r.Verdict == "error" { // a client can be late too, and is denied then
			c.upstream.WithLabelValues(r.Reason).Inc()
		}
	}
}

// showTime is how often a request leaves its id: more would say no more, and
// cost each some microseconds.
const showTime = 100 * time.Millisecond

// judged is the series of a request, and whether it is to leave its id there.
func (c *Counts) judged(r *audit.Record) (m prometheus.Counter, shown bool) {
	key := judged{r.Verdict, r.Reason, r.Rule, method(r.Method)}
	c.mu.Lock()
	defer c.mu.Unlock()
	m = c.series[key]
	if m == nil {
		label := c.rule(r.Rule)
		m = c.requests.WithLabelValues(key.verdict, key.reason, label, key.method)
		if label != "other" { // as many as there are rules in a policy
			c.series[key] = m
		}
	}
	if since := r.Time.Sub(c.shown); since >= showTime || since < 0 {
		c.shown, shown = r.Time, true
	}
	return m, shown
}

// exemplar adds one with the id of the request, by which its record is found.
func exemplar(m prometheus.Counter, r *audit.Record) {
	if a, ok := m.(prometheus.ExemplarAdder); ok && r.RequestID != "" {
		a.AddWithExemplar(1, prometheus.Labels{"request_id": r.RequestID})
		return
	}
	m.Inc()
}

func observe(h prometheus.Histogram, v float64, r *audit.Record) {
	if o, ok := h.(prometheus.ExemplarObserver); ok && r.RequestID != "" {
		o.ObserveWithExemplar(v, prometheus.Labels{"request_id": r.RequestID})
		return
	}
	h.Observe(v)
}

// rule is the label of a rule's canonical text; empty for none. c.mu is held.
func (c *Counts) rule(text string) string {
	if text == "" {
		return ""
	}
	label, ok := c.rules[text]
	switch {
	case ok:
	case len(c.rules) < ruleMost:
		sum := sha256.Sum256([]byte(text))
		label = hex.EncodeToString(sum[:4])
		c.rules[text] = label
	default:
		label = "other"
	}
	return label
}

// method is a label for what a client may write as it likes.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return "other"
}

// Handler serves /metrics, in the form of OpenMetrics where it is asked for.
func (c *Counts) Handler() http.Handler {
	page := promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/metrics":
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "GET or HEAD", http.StatusMethodNotAllowed)
		default:
			page.ServeHTTP(w, r)
		}
	})
}

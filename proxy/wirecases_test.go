package proxy_test

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/internal/proxytest"
)

// wireCase is one line of http_wire.jsonl.
type wireCase struct {
	ID, Why string
	Q       int
	Door    string
	Host    string
	Port    uint16
	TLS     bool
	SNI     *string
	ALPN    string
	Hello   string
	Idle    int

	Rules    []any
	Policy   casePolicy
	Resolve  map[string][][]string
	Origin   string
	Upstream []proxytest.Script

	Send []piece
	H2   []proxytest.Stream

	Expect       []wireAnswer
	Closed       *bool
	Seen         *[]wireSeen
	PartialOK    bool `json:"partial_ok"`
	Raw          *proxytest.Bytes
	Never        []proxytest.Bytes
	NoLookup     []string `json:"no_lookup"`
	NeverDialled []string `json:"never_dialled"`
}

// piece is one write of the client, or a wait.
type piece struct {
	text   proxytest.Bytes
	await  int
	waitMS int
}

func (p *piece) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &p.text) == nil {
		return nil
	}
	var o struct {
		Repeat proxytest.Bytes
		Times  int
		Await  int
		WaitMS int `json:"wait_ms"`
	}
	if err := strictJSON(data, &o); err != nil {
		return err
	}
	p.text = proxytest.Bytes(strings.Repeat(string(o.Repeat), o.Times))
	p.await, p.waitMS = o.Await, o.WaitMS
	return nil
}

// wireAnswer is one member of expect, or of its interim.
type wireAnswer struct {
	Status   anyOf
	Reason   anyOf
	Headers  map[string]values
	Lacks    []string
	Body     *proxytest.Bytes
	BodyHas  []proxytest.Bytes `json:"body_has"`
	BodyLack []proxytest.Bytes `json:"body_lacks"`
	Trailers map[string]values
	Interim  []wireAnswer
	Then     *proxytest.Bytes
	Problem  map[string]any
	Broken   bool
}

// wireSeen is one request that the origin must have got.
type wireSeen struct {
	Line     proxytest.Bytes
	Headers  map[string]values
	Lacks    []string
	Body     *proxytest.Bytes
	Trailers map[string]values
}

// TestWireCases runs every line of http_wire.jsonl against a real Server. All
// traffic is loopback: the guard judges made-up addresses, and the dial hook
// behind it leads to an origin of raw bytes.
func TestWireCases(t *testing.T) {
	cases.Each(t, "http_wire.jsonl", func(t *testing.T, c wireCase) {
		t.Parallel()
		runWireCase(t, c)
	})
}

func runWireCase(t *testing.T, c wireCase) {
	h := newHouse(t, c.Rules, c.Policy)
	h.origin.Scripts, h.resolver.Answers = c.Upstream, c.Resolve
	h.origin.Raw = strings.HasPrefix(firstRule(c.Rules), "CONNECT ")
	switch c.Origin {
	case "unresolved":
		h.resolver.Unresolved = true
	default:
		h.origin.Flaw = c.Origin
	}
	host := h.fill(c.Host)
	listener := h.proxyAddr
	if c.Door == "direct" {
		addr := h.table.Addr(host)
		listener = h.capture(netip.AddrPortFrom(addr, c.Port))
	}
	h.open(c.Idle, listener)

	got := talk(t, h, c, host, listener)
	checkAnswers(t, c, got)
	settle(h, c)
	checkSeen(t, h, c)
	checkRecords(t, h, c, got)
}

// talked is all that a client got.
type talked struct {
	answers  []proxytest.Answer
	then     []byte // behind a switch of protocols
	closed   bool
	methods  []string
	h2       bool
	inTunnel bool // the test's own CONNECT came before
}

// talk plays the client of the case.
func talk(t *testing.T, h *house, c wireCase, host, listener string) talked {
	conn := h.dial(listener)
	if c.Door == "tunnel" || c.TLS {
		conn = enter(t, h, c, conn, host)
	}
	if c.ALPN == "h2" {
		return talkFrames(t, c, conn)
	}
	p := proxytest.NewPeer(conn)
	defer p.Close()
	got := talked{inTunnel: c.Door == "tunnel"}
	var sent []byte
	for _, s := range c.Send {
		switch {
		case s.await != 0:
			p.Wait(time.Second, func(b []byte, end bool) bool { return awaited(b, methodsOf(sent), end, s.await) })
		case s.waitMS != 0:
			time.Sleep(time.Duration(s.waitMS) * time.Millisecond)
		default:
			text := []byte(h.fill(string(s.text)))
			sent = append(sent, text...)
			p.Send(text)
		}
	}
	got.methods = methodsOf(sent)
	then := 0
	for _, e := range c.Expect {
		if e.Then != nil {
			then = len(*e.Then)
		}
	}
	p.Wait(10*time.Second, func(b []byte, end bool) bool {
		answers, _, rest, err := proxytest.ParseAnswers(b, got.methods, end)
		return err != nil || len(answers) >= len(c.Expect) && len(rest) >= then &&
			(len(answers) == 0 || answers[len(answers)-1].Whole)
	})
	if c.Closed != nil && *c.Closed {
		got.closed = p.Closed(5 * time.Second)
	} else {
		// What should not come gets a moment to come all the same.
		limit := 20 * time.Millisecond
		if c.Closed != nil {
			limit = 300 * time.Millisecond
		}
		got.closed = p.Closed(limit)
	}
	all, end := p.Got()
	answers, pending, rest, err := proxytest.ParseAnswers(all, got.methods, end != nil)
	if err != nil {
		t.Errorf("client got what is no HTTP: %v\n%q", err, all)
	}
	if len(pending) > 0 {
		t.Errorf("client got interim answers and no final one: %v", pending)
	}
	got.answers, got.then = answers, rest
	return got
}

func talkFrames(t *testing.T, c wireCase, conn netConn) talked {
	f, err := proxytest.NewFrames(conn)
	if err != nil {
		t.Fatalf("beginning HTTP/2: %v", err)
	}
	defer f.Close()
	got := talked{h2: true, inTunnel: true}
	for _, s := range c.H2 {
		f.Open(s)
		method := "GET"
		for _, kv := range s.Headers {
			if kv[0] == ":method" {
				method = string(kv[1])
			}
		}
		got.methods = append(got.methods, method)
	}
	got.answers = f.Wait(10 * time.Second)
	return got
}

// awaited tells whether the n-th answer is there, or from 100 up an interim
// answer or switch of that status.
func awaited(b []byte, methods []string, end bool, n int) bool {
	answers, pending, _, err := proxytest.ParseAnswers(b, methods, end)
	if err != nil {
		return true
	}
	if n < 100 {
		return len(answers) > n || len(answers) == n && (answers[n-1].Whole || end)
	}
	for _, a := range answers {
		pending = append(pending, a)
		pending = append(pending, a.Interim...)
	}
	for _, a := range pending {
		if a.Status == n {
			return true
		}
	}
	return false
}

// methodsOf reads the methods of the requests a client sent, as far as they are
// well formed; of the last the first word counts.
func methodsOf(sent []byte) []string {
	var methods []string
	for len(sent) > 0 {
		word, _, _ := strings.Cut(string(sent), " ")
		methods = append(methods, word)
		m, n, err := proxytest.ParseHead(sent)
		if err != nil || n == 0 {
			return methods
		}
		f, err := proxytest.RequestFraming(m)
		if err != nil || word == "CONNECT" {
			return methods
		}
		k, whole, err := proxytest.ParseBody(&m, f, sent[n:], false)
		if err != nil || !whole {
			return methods
		}
		sent = sent[n+k:]
	}
	return methods
}

var stubAddr = regexp.MustCompile(`\$\{addr:([^}]*)\}`)

// fill puts the addresses that the stub gives out in the place of ${addr:NAME}.
func (h *house) fill(s string) string {
	return stubAddr.ReplaceAllStringFunc(s, func(m string) string {
		return h.table.Addr(stubAddr.FindStringSubmatch(m)[1]).String()
	})
}

func firstRule(rules []any) string {
	if len(rules) > 0 {
		s, _ := rules[0].(string)
		return s
	}
	return ""
}

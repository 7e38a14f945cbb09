package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxText is where a path, a name and every other text is cut, in bytes
	// as sent.
	maxText = 2 << 10
	// maxNames is how many query names, or arguments, are written.
	maxNames = 64
	// lean is where texts are cut in a record that must fit its reserved room.
	lean = 64

	// recordRoom is what Reserve holds. A lean record is shorter: about 16
	// texts of 64 bytes, each at most six times as long when escaped.
	recordRoom = 8 << 10
	// headRoom is more than what frame adds to a body.
	headRoom = 192
)

const timeLayout = "2006-01-02T15:04:05.000000Z"

// encoder writes the body of a line: what stands between seq and prev. That
// needs no lock, since it depends on nothing but the record.
type encoder struct {
	buf   []byte
	limit int // of each text
	names int // of each list
	cut   bool
	mode  *Config
}

var encoders = sync.Pool{New: func() any { return &encoder{buf: make([]byte, 0, 1024)} }}

// encode writes the body of r as c asks, texts cut to limit bytes.
func (e *encoder) encode(c *Config, r *Record, isLean bool) []byte {
	e.mode, e.buf, e.cut = c, e.buf[:0], false
	e.limit, e.names = maxText, maxNames
	if isLean {
		e.limit, e.names = lean, 0
	}
	e.raw(`,"session":`)
	e.buf = appendString(e.buf, c.Session)
	e.text("kind", string(r.Kind))
	switch {
	case r.Kind.wide():
		e.request(r)
	default:
		e.other(r)
	}
	return e.buf
}

// request writes every member of a request, empty ones too.
func (e *encoder) request(r *Record) {
	e.text("verdict", r.Verdict)
	e.text("reason", r.Reason)
	e.text("rule", r.Rule)
	hint := r.Hint
	if e.mode.Path == PathRule {
		hint = "" // it holds the path
	}
	e.text("hint", e.masked(hint)) // it may hold host and path of the request
	e.text("method", r.Method)
	e.text("scheme", r.Scheme)
	e.text("host", e.masked(r.Host))
	e.number("port", int64(r.Port))
	path, query := splitPath(r.Path, r.Query)
	whole := path
	switch {
	case e.mode.Path == PathRule:
		whole = ""
		e.text("path", r.Pattern)
	default:
		whole = e.masked(path)
		e.text("path", whole)
	}
	e.query(query, r)
	e.number("status", int64(r.Status))
	e.number("bytes_out", r.BytesOut)
	e.number("bytes_in", r.BytesIn)
	e.millis("duration_ms", r.Duration)
	e.millis("ttfb_ms", r.TTFB)
	e.text("upstream", r.Upstream)
	e.text("proto", r.Proto)
	e.text("upstream_proto", r.UpstreamProto)
	e.text("credential", r.Credential)
	e.text("capture", r.Capture)
	e.text("policy", r.Policy)
	e.text("request_id", r.RequestID)
	if r.Tunnel {
		e.raw(`,"tunnel":true`)
	}
	e.end(whole)
}

// other writes the members that any kind may have where they apply, and those
// of its own kind.
func (e *encoder) other(r *Record) {
	e.some("verdict", r.Verdict)
	e.some("reason", r.Reason)
	e.some("host", e.masked(r.Host))
	var whole string
	switch r.Kind {
	case KindConnection:
		e.number("port", int64(r.Port))
		e.text("capture", r.Capture)
	case KindDNS:
		e.text("qtype", r.Qtype)
	case KindSessionStart, KindReload:
		e.text("policy", r.Policy)
		e.some("isolator", r.Isolator)
	case KindExec, KindFile, KindLeftBehind:
		if len(r.Argv) > 0 {
			e.list("argv", r.Argv)
		} else {
			whole = e.masked(r.Path)
			e.text("path", whole)
		}
		if r.Kind == KindExec {
			e.text("isolator", r.Isolator)
			if r.ExitCode != nil {
				e.number("exit_code", int64(*r.ExitCode))
			}
		}
	case KindSessionEnd:
		e.counts(r.Counts)
	}
	e.some("credential", r.Credential)
	e.some("request_id", r.RequestID)
	e.end(whole)
}

// end marks a record in which something was cut.
func (e *encoder) end(whole string) {
	if !e.cut {
		return
	}
	e.raw(`,"cut":true,"path_sha256":"`)
	sum := sha256.Sum256([]byte(whole))
	e.buf = hex.AppendEncode(e.buf, sum[:])
	e.buf = append(e.buf, '"')
}

// query writes the names of the query, and its values if they are wanted. The
// query is split at "&" alone, and nothing is decoded.
func (e *encoder) query(q string, r *Record) {
	if q == "" {
		names, values := r.QueryNames, r.QueryValues
		if e.mode.Query == QueryNone {
			names = nil
		}
		e.list("query_names", names)
		if e.mode.Query == QueryFull {
			e.list("query_values", values)
		}
		return
	}
	e.pairs("query_names", q, e.mode.Query != QueryNone, func(pair string) string {
		name, _, _ := strings.Cut(pair, "=")
		return name
	})
	if e.mode.Query == QueryFull {
		e.pairs("query_values", q, true, func(pair string) string {
			_, value, _ := strings.Cut(pair, "=")
			return value
		})
	}
}

func (e *encoder) pairs(member, q string, write bool, part func(string) string) {
	e.member(member)
	e.buf = append(e.buf, '[')
	for n := 0; write && q != ""; {
		var pair string
		pair, q, _ = strings.Cut(q, "&")
		if pair == "" {
			continue
		}
		if n == e.names {
			e.cut = true
			break
		}
		e.item(n, part(pair))
		n++
	}
	e.buf = append(e.buf, ']')
}

func (e *encoder) list(member string, items []string) {
	e.member(member)
	e.buf = append(e.buf, '[')
	for n, s := range items {
		if n == e.names {
			e.cut = true
			break
		}
		e.item(n, s)
	}
	e.buf = append(e.buf, ']')
}

func (e *encoder) item(n int, s string) {
	if n > 0 {
		e.buf = append(e.buf, ',')
	}
	e.value(e.masked(s))
}

func (e *encoder) counts(c Counts) {
	e.member("counts")
	e.buf = append(e.buf, '{')
	for i, k := range sortedKeys(c) {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.value(string(k))
		e.raw(":{")
		for j, v := range sortedKeys(c[k]) {
			if j > 0 {
				e.buf = append(e.buf, ',')
			}
			e.value(v)
			e.buf = append(e.buf, ':')
			e.buf = strconv.AppendInt(e.buf, c[k][v], 10)
		}
		e.buf = append(e.buf, '}')
	}
	e.buf = append(e.buf, '}')
}

func (e *encoder) masked(s string) string {
	if e.mode.Mask == nil || s == "" {
		return s
	}
	return e.mode.Mask(s)
}

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }

func (e *encoder) member(name string) {
	e.buf = append(e.buf, ',', '"')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '"', ':')
}

func (e *encoder) value(s string) {
	s, cut := cutText(s, e.limit)
	e.cut = e.cut || cut
	e.buf = appendString(e.buf, s)
}

func (e *encoder) text(name, s string) {
	e.member(name)
	e.value(s)
}

func (e *encoder) some(name, s string) {
	if s != "" {
		e.text(name, s)
	}
}

func (e *encoder) number(name string, n int64) {
	e.member(name)
	e.buf = strconv.AppendInt(e.buf, n, 10)
}

// millis writes d in milliseconds, to the microsecond.
func (e *encoder) millis(name string, d time.Duration) {
	e.member(name)
	us := max(d.Microseconds(), 0)
	e.buf = strconv.AppendInt(e.buf, us/1000, 10)
	if us %= 1000; us == 0 {
		return
	}
	digits := [4]byte{'.', byte('0' + us/100), byte('0' + us/10%10), byte('0' + us%10)}
	n := len(digits)
	for digits[n-1] == '0' {
		n--
	}
	e.buf = append(e.buf, digits[:n]...)
}

// frame writes a whole line: body between what only its place in the chain
// gives. It returns the hash of the line.
func frame(dst []byte, at time.Time, seq uint64, body, prev []byte) ([]byte, [sha256.Size]byte) {
	from := len(dst)
	dst = append(dst, `{"v":1,"time":"`...)
	dst = at.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, `","seq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, body...)
	dst = append(dst, `,"prev":"`...)
	dst = append(dst, prev...)
	dst = append(dst, '"', '}')
	sum := sha256.Sum256(dst[from:])
	return append(dst, '\n'), sum
}

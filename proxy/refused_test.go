package proxy_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/internal/proxytest"
)

// TestStreamsThatNobodyGets: a stream that the HTTP/2 library answers or resets
// by itself has a record, beside those of streams that went well.
func TestStreamsThatNobodyGets(t *testing.T) {
	good := [][2]proxytest.Bytes{{":method", "GET"}, {":scheme", "https"}, {":authority", "ok.test"}, {":path", "/"}}
	with := func(name, value string) [][2]proxytest.Bytes {
		return append(good[:4:4], [2]proxytest.Bytes{proxytest.Bytes(name), proxytest.Bytes(value)})
	}
	for name, fields := range map[string][][2]proxytest.Bytes{
		"a field of the connection":   with("connection", "close"),
		"an upgrade":                  with("upgrade", "websocket"),
		"a transfer coding":           with("transfer-encoding", "chunked"),
		"a wrong TE":                  with("te", "gzip"),
		"a control byte":              with("x", "a\x01b"),
		"a name in capitals":          with("X-Up", "a"),
		"no path":                     good[:3],
		"a user in its authority":     {good[0], good[1], {":authority", "u@ok.test"}, good[3]},
		"an extended CONNECT":         {{":method", "CONNECT"}, {":protocol", "websocket"}, good[1], good[2], good[3]},
		"a path with a broken escape": {good[0], good[1], good[2], {":path", "/%zz"}},
	} {
		for _, first := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{})
				f, err := proxytest.NewFrames(h.tunnelTLS("ok.test:443", "h2"))
				if err != nil {
					t.Fatal(err)
				}
				if first {
					f.Open(proxytest.Stream{Headers: good})
					f.Wait(3 * time.Second)
				}
				f.Open(proxytest.Stream{Headers: fields})
				f.Open(proxytest.Stream{Headers: fields})
				f.Wait(3 * time.Second)
				f.Close()
				h.sink.wait(audit.KindConnection, 2, 3*time.Second)
				time.Sleep(20 * time.Millisecond)
				list := h.sink.of(audit.KindConnection)
				if len(list) != 2 {
					t.Errorf("%d records of connections", len(list))
				}
				for _, r := range list {
					if r.Verdict != "deny" || r.Reason != "protocol" || r.Host != "ok.test" || r.Port != 443 {
						t.Errorf("record %+v", r)
					}
				}
				if n := len(h.sink.of(audit.KindRequest)); (n == 1) != first {
					t.Errorf("%d records of requests", n)
				}
				if n := len(h.origin.Seen().Requests); (n == 1) != first {
					t.Errorf("the origin got %d requests", n)
				}
			})
		}
	}
}

// TestHeadThatBlowsUp: a head that is small in bytes and large once it is
// unpacked (RFC 7541 section 7.3) takes no memory and has a record.
func TestHeadThatBlowsUp(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{})
	c := h.tunnelTLS("ok.test:443", "h2")
	var block bytes.Buffer
	coder := hpack.NewEncoder(&block)
	for _, kv := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "ok.test"}, {":path", "/"}, {"x", strings.Repeat("a", 4000)}} {
		coder.WriteField(hpack.HeaderField{Name: kv[0], Value: kv[1]})
	}
	block.Write(bytes.Repeat([]byte{0x80 | 62}, 10_000)) // the newest entry, again and again
	f, err := proxytest.NewFrames(c)
	if err != nil {
		t.Fatal(err)
	}
	f.OpenBlock(block.Bytes())
	f.Wait(3 * time.Second)
	f.Close()
	list := h.sink.wait(audit.KindConnection, 1, 3*time.Second)
	if len(list) != 1 || list[0].Reason != "protocol" {
		t.Errorf("records %+v", list)
	}
}

// TestNoPreface: what is agreed on as HTTP/2 and is none has a record.
func TestNoPreface(t *testing.T) {
	h := newHouse(t, []any{"GET ok.test/**"}, casePolicy{})
	p := proxytest.NewPeer(h.tunnelTLS("ok.test:443", "h2"))
	defer p.Close()
	p.Send([]byte("GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"))
	if !p.Closed(3 * time.Second) {
		t.Error("the connection stays open")
	}
	if r := onlyConnection(t, h); r.Reason != "protocol" {
		t.Errorf("record %+v", r)
	}
}

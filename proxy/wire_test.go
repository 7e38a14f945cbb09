package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A head is a fault, answered and followed by a close, whatever piece it comes
// in, or exactly the request that was sent.
func TestWireHeads(t *testing.T) {
	const ok = "Host: ok.test\r\n"
	tests := []struct {
		name, send string
		want       string // a fault, or the line that describe gives
	}{
		{"plain", "GET /x HTTP/1.1\r\n" + ok + "\r\n", `GET /x HTTP/1.1 host="ok.test" expect="" [ ] [ ]`},
		{"empty line before", "\r\nGET /x HTTP/1.1\r\n" + ok + "\r\n", `GET /x HTTP/1.1 host="ok.test" expect="" [ ] [ ]`},
		{"two empty lines before", "\r\n\r\nGET /x HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"odd bytes in the target", "GET /a|b^c`d{e}\\\"<x>#\xc3?q=[\xff] HTTP/1.1\r\n" + ok + "\r\n", "GET /a|b^c`d{e}\\\"<x>#\xc3?q=[\xff] HTTP/1.1 host=\"ok.test\" expect=\"\" [ ] [ ]"},
		{"absolute form", "GET http://ok.test/x HTTP/1.1\r\n" + ok + "\r\n", `GET http://ok.test/x HTTP/1.1 host="ok.test" expect="" [ ] [ ]`},
		{"two slashes", "GET //o.test/x HTTP/1.1\r\n" + ok + "\r\n", `GET //o.test/x HTTP/1.1 host="ok.test" expect="" [ ] [ ]`},
		{"a method of its own", "get-it! /x HTTP/1.1\r\n" + ok + "\r\n", `get-it! /x HTTP/1.1 host="ok.test" expect="" [ ] [ ]`},
		{"connect", "CONNECT ok.test:443 HTTP/1.1\r\n" + ok + "\r\n", `CONNECT ok.test:443 HTTP/1.1 host="ok.test" expect="" [ ] [ ]`},
		{"fields", "GET / HTTP/1.1\r\n" + ok + "X-A:\t 1 2 \t\r\nx-a:caf\xe9\r\nX-E:\r\n\r\n", `GET / HTTP/1.1 host="ok.test" expect="" [ X-A=["1 2" "caf\xe9"] X-E=[""] ] [ ]`},
		{"pragma makes no cache-control", "GET / HTTP/1.1\r\n" + ok + "Pragma: no-cache\r\n\r\n", `GET / HTTP/1.1 host="ok.test" expect="" [ Pragma=["no-cache"] ] [ ]`},
		{"pragma beside cache-control", "GET / HTTP/1.1\r\n" + ok + "Pragma: no-cache\r\nCache-Control: x\r\n\r\n", `GET / HTTP/1.1 host="ok.test" expect="" [ Cache-Control=["x"] Pragma=["no-cache"] ] [ ]`},
		{"old without host", "GET http://o.test/ HTTP/1.0\r\n\r\n", `GET http://o.test/ HTTP/1.0 host="" expect="" [ ] [ ]`},
		{"expect", "GET / HTTP/1.1\r\n" + ok + "Expect: 100-Continue\r\n\r\n", `GET / HTTP/1.1 host="ok.test" expect="100-Continue" [ ] [ ]`},
		{"expect of HTTP/1.0", "GET / HTTP/1.0\r\n" + ok + "Expect: 100-continue\r\n\r\n", `GET / HTTP/1.0 host="ok.test" expect="" [ ] [ ]`},
		{"length", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 003\r\n\r\nabc", `POST / HTTP/1.1 host="ok.test" expect="" [ Content-Length=["003"] ] "abc" [ ]`},
		{"connection names the length", "POST / HTTP/1.1\r\n" + ok + "Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc", `POST / HTTP/1.1 host="ok.test" expect="" [ Connection=["Content-Length"] Content-Length=["3"] ] "abc" [ ]`},
		{"chunks", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: Chunked\r\n\r\n000A;x=\"a;\\\"b\" ;y\r\n0123456789\r\n1 \r\nx\r\n00\r\n\r\n", `POST / HTTP/1.1 host="ok.test" expect="" [ ] "0123456789x" [ ]`},
		{"trailers", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\nHost: evil.test\r\nContent-Length: 9\r\nX_HTTP_Method_Override: PUT\r\n\r\n", `POST / HTTP/1.1 host="ok.test" expect="" [ ] [ X-Sum=["1"] ]`},

		{"another expectation", "GET / HTTP/1.1\r\n" + ok + "Expect: 200-ok\r\n\r\n", "fault 417 bad_request"},
		{"preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "fault 400 protocol"},
		{"pri", "PRI / HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"banner", "SSH-2.0-OpenSSH_9.6\r\n", "fault 400 bad_request"},
		{"handshake", "\x16\x03\x01", "fault 400 bad_request"},
		{"no host", "GET / HTTP/1.1\r\nX-A: 1\r\n\r\n", "fault 400 bad_request"},
		{"empty host", "GET / HTTP/1.1\r\nHost: \r\n\r\n", "fault 400 bad_request"},
		{"two hosts", "GET / HTTP/1.1\r\n" + ok + ok + "\r\n", "fault 400 bad_request"},
		{"asterisk", "OPTIONS * HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"authority of a GET", "GET ok.test:80 HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"connect to a path", "CONNECT /x HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"connect with a body", "CONNECT o.test:1 HTTP/1.1\r\n" + ok + "Content-Length: 1\r\n\r\nx", "fault 400 bad_request"},
		{"two spaces", "GET  / HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"space at the end", "GET / HTTP/1.1 \r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"tabs", "GET\t/\tHTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"no version", "GET /\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"no target", "GET HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"lower case version", "GET / http/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"version 1.10", "GET / HTTP/1.10\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"version 1.2", "GET / HTTP/1.2\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"NUL in target", "GET /\x00 HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"DEL in target", "GET /\x7f HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"bare return in target", "GET /a\rb HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"space first", " GET / HTTP/1.1\r\n" + ok + "\r\n", "fault 400 bad_request"},
		{"bare newline", "GET / HTTP/1.1\n" + ok + "\r\n", "fault 400 bad_request"},
		{"bare newline in fields", "GET / HTTP/1.1\r\n" + ok + "X-A: 1\nX-B: 2\r\n\r\n", "fault 400 bad_request"},
		{"bare return in fields", "GET / HTTP/1.1\r\n" + ok + "X-A: 1\rX-B: 2\r\n\r\n", "fault 400 bad_request"},
		{"no colon", "GET / HTTP/1.1\r\n" + ok + "Nocolon\r\n\r\n", "fault 400 bad_request"},
		{"no name", "GET / HTTP/1.1\r\n" + ok + ": x\r\n\r\n", "fault 400 bad_request"},
		{"space before the colon", "GET / HTTP/1.1\r\n" + ok + "X-A : 1\r\n\r\n", "fault 400 bad_request"},
		{"fold", "GET / HTTP/1.1\r\n" + ok + "X-A: 1\r\n more\r\n\r\n", "fault 400 bad_request"},
		{"control in value", "GET / HTTP/1.1\r\n" + ok + "X-A: a\x01\r\n\r\n", "fault 400 bad_request"},
		{"DEL in value", "GET / HTTP/1.1\r\n" + ok + "X-A: a\x7f\r\n\r\n", "fault 400 bad_request"},
		{"bracket in name", "GET / HTTP/1.1\r\n" + ok + "X(A): 1\r\n\r\n", "fault 400 bad_request"},
		{"byte over 127 in name", "GET / HTTP/1.1\r\n" + ok + "X\xe9: 1\r\n\r\n", "fault 400 bad_request"},
		{"length and chunks", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "fault 400 bad_request"},
		{"two lengths", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "fault 400 bad_request"},
		{"list of lengths", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 3, 3\r\n\r\nabc", "fault 400 bad_request"},
		{"plus", "POST / HTTP/1.1\r\n" + ok + "Content-Length: +3\r\n\r\nabc", "fault 400 bad_request"},
		{"empty length", "POST / HTTP/1.1\r\n" + ok + "Content-Length:\r\n\r\n", "fault 400 bad_request"},
		{"length of 64 bits", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 9223372036854775808\r\n\r\n", "fault 400 bad_request"},
		{"xchunked", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "fault 400 bad_request"},
		{"gzip, chunked", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "fault 400 bad_request"},
		{"chunked twice", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "fault 400 bad_request"},
		{"chunks of HTTP/1.0", "POST / HTTP/1.0\r\n" + ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "fault 400 bad_request"},
		{"trailer names the length", "POST / HTTP/1.1\r\n" + ok + "Trailer: x, content-length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "fault 400 bad_request"},
	}
	for _, bad := range []string{"3\nabc\r\n0\r\n\r\n", "3;x\nabc\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n", "1_0\r\n", "xyz\r\n", "3\r\nabcd\r\n0\r\n\r\n",
		"3\r\nabc0\r\n\r\n", "3\r\nabc\r\n\r\nGET /secret HTTP/1.1\r\n" + ok + "\r\n", "0x3\r\nabc\r\n", " 3\r\nabc\r\n", "\r\n", "3 3\r\nabc\r\n",
		"8000000000000000\r\n", "3;\x01\r\n", "3;\"\r\nabc\r\n0\r\n\r\n", "0\r\nBad Name: 7\r\n\r\n", "0\r\nX: 1\r\n fold\r\n\r\n", "0\n\r\n", "0\r\n\n",
		"1;" + strings.Repeat("x", 4096) + "\r\nx\r\n0\r\n\r\n", strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\nx\r\n", 20)} {
		tests = append(tests, struct{ name, send, want string }{fmt.Sprintf("chunks %.20q", bad),
			"POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: chunked\r\n\r\n" + bad, "body fault 400 bad_request"})
	}
	s := startWire(t, wireConfig{maxHeader: 8 << 10, headerTimeout: 5 * time.Second}, nil)
	for _, tt := range tests {
		for _, piece := range []int{len(tt.send), 1, 7} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, piece), func(t *testing.T) {
				before := len(s.lines())
				c := s.dial(t)
				go func() {
					for rest := tt.send; rest != ""; {
						n := min(piece, len(rest))
						if _, err := c.Write([]byte(rest[:n])); err != nil {
							return
						}
						rest = rest[n:]
					}
				}()
				answer := c.answer()
				fault := strings.Contains(tt.want, "fault")
				if want := "200 ok"; !fault && answer != want {
					t.Errorf("answer %q, want %q", answer, want)
				}
				if _, want, _ := strings.Cut(tt.want, "fault "); fault && answer != want {
					t.Errorf("answer %q, want %q", answer, want)
				}
				if fault {
					c.closed()
				}
				if got := strings.Join(s.lines()[before:], "\n"); got != tt.want {
					t.Errorf("saw  %s\nwant %s", got, tt.want)
				}
			})
		}
	}
}

// The limit of a head is exact, its last byte included.
func TestWireHeadLimit(t *testing.T) {
	const limit = 300
	s := startWire(t, wireConfig{maxHeader: limit}, nil)
	for _, tt := range []struct {
		name, first, last string
		want              string
	}{
		{"field", "GET / HTTP/1.1\r\nHost: ok.test\r\nX-A: ", "\r\n\r\n", "431 bad_request"},
		{"target", "GET /", " HTTP/1.1\r\nHost: ok.test\r\n\r\n", "414 bad_request"},
		{"trailer", "POST / HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ", "\r\n\r\n", "400 bad_request"},
	} {
		start := strings.Index(tt.first, "0\r\nX-A") + 3
		if tt.name != "trailer" {
			start = 0
		}
		fill := limit - len(tt.first) - len(tt.last) + start
		for _, over := range []int{0, 1, 5000} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, over), func(t *testing.T) {
				c := s.dial(t)
				c.send(tt.first + strings.Repeat("a", fill+over) + tt.last)
				want := "200 ok"
				if over > 0 {
					want = tt.want
				}
				if over > 0 && over < 100 && tt.name == "target" {
					want = "431 bad_request" // the request line itself is within the limit
				}
				if got := c.answer(); got != want {
					t.Errorf("answer %q, want %q", got, want)
				}
			})
		}
	}
}

package proxytest

import (
	"slices"
	"strings"
	"testing"
)

// The parser must see what a lenient one hides, or a case that smuggles would
// pass.
func TestStrictParser(t *testing.T) {
	for _, bad := range []string{
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
		"GET /\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nnone\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
	} {
		if _, err := parseRequest(bad); err == nil {
			t.Errorf("parsed %q", bad)
		}
	}
	m, err := parseRequest("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n")
	if err != nil || m.Body != "abc" || !slices.Equal(m.Trailers, []Field{{"X-Sum", "1"}}) {
		t.Errorf("parsed %+v, %v", m, err)
	}
}

func parseRequest(s string) (Message, error) {
	m, n, err := ParseHead([]byte(s))
	if err != nil {
		return m, err
	}
	f, err := RequestFraming(m)
	if err != nil {
		return m, err
	}
	_, _, err = ParseBody(&m, f, []byte(s[n:]), false)
	return m, err
}

// Pipelined answers, interim ones and what follows a switch are kept apart.
func TestParseAnswers(t *testing.T) {
	got := []byte("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" +
		"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nbytes")
	answers, pending, rest, err := ParseAnswers(got, []string{"HEAD", "GET", "GET"}, false)
	if err != nil || len(answers) != 3 || len(pending) != 0 || string(rest) != "bytes" {
		t.Fatalf("%d answers, %d pending, rest %q, %v", len(answers), len(pending), rest, err)
	}
	if a := answers[0]; a.Status != 200 || len(a.Interim) != 1 || a.Body != "" || !a.Whole {
		t.Errorf("first answer %+v", a)
	}
	answers, _, _, err = ParseAnswers([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), nil, true)
	if err != nil || len(answers) != 1 || answers[0].Whole || !strings.HasPrefix(answers[0].Body, "hel") {
		t.Errorf("cut answer %+v, %v", answers, err)
	}
}

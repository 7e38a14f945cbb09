package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var answerSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
	"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\ntill the end",
	"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 5, 5\r\n\r\n",
	"HTTP/1.1 204\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
}

// readAnswer reads one final answer as the transport does: its status and
// body, and how it ended.
func readAnswer(o *originConn, method string) string {
	r := bufio.NewReader(o)
	for {
		q, err := http.ReadResponse(r, &http.Request{Method: method})
		if err == nil && q.StatusCode >= 100 && q.StatusCode < 200 && q.StatusCode != 101 {
			continue
		}
		if err != nil {
			var bad *originError
			if errors.As(err, &bad) {
				return "malformed"
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return "no answer"
			}
			return "error of net/http: " + err.Error()
		}
		body, err := io.ReadAll(q.Body)
		return fmt.Sprintf("%d %q %s", q.StatusCode, body, ending(err))
	}
}

func ending(err error) string {
	var bad *originError
	switch {
	case err == nil:
		return "whole"
	case errors.As(err, &bad):
		return "malformed"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "broken"
	}
	return err.Error()
}

// plainAnswer is what readAnswer is compared with. early is another outcome
// that is right too, where what came is wrong whatever would follow.
func plainAnswer(b, method string, limit int) (want, early string) {
	for {
		i := strings.Index(b, "\r\n\r\n")
		switch {
		case b == "":
			return "no answer", ""
		case i < 0 || i+4 > limit:
			return "malformed", ""
		}
		head := strings.Split(b[:i], "\r\n")
		b = b[i+4:]
		m := match(plainStatus, head[0])
		if m == nil {
			return "malformed", ""
		}
		status, _ := strconv.Atoi(m[2])
		var lengths, codings []string
		for _, line := range head[1:] {
			f := match(plainField, line)
			switch {
			case f == nil:
				return "malformed", ""
			case strings.EqualFold(f[1], "Content-Length"):
				for _, v := range strings.Split(f[2], ",") {
					lengths = append(lengths, strings.Trim(v, " \t"))
				}
			case strings.EqualFold(f[1], "Transfer-Encoding"):
				codings = append(codings, strings.ToLower(f[2]))
			}
		}
		var length uint64
		for j, v := range lengths {
			n, err := strconv.ParseUint(v, 10, 63)
			if err != nil || j > 0 && n != length {
				return "malformed", ""
			}
			length = n
		}
		chunked := slices.Equal(codings, []string{"chunked"})
		if len(codings) > 0 && (!chunked || m[1] == "0" || len(lengths) > 0) || status == 101 {
			return "malformed", ""
		}
		switch {
		case status < 200:
			continue
		case method == "HEAD" || status == 204 || status == 304:
			return fmt.Sprintf("%d %q whole", status, ""), ""
		case chunked:
			body, _, _, end := plainChunks(b, limit)
			switch end {
			case "":
				return fmt.Sprintf("%d %q whole", status, body), ""
			case "fault":
				return fmt.Sprintf("%d ... malformed", status), ""
			}
			return fmt.Sprintf("%d ... broken", status), fmt.Sprintf("%d ... malformed", status)
		case len(lengths) == 0:
			return fmt.Sprintf("%d %q whole", status, b), ""
		case uint64(len(b)) < length:
			return fmt.Sprintf("%d %q broken", status, b), ""
		}
		return fmt.Sprintf("%d %q whole", status, b[:length]), ""
	}
}

func checkAnswer(t *testing.T, b string, seed uint64) {
	t.Helper()
	method := []string{"GET", "HEAD"}[seed%2]
	c := &fuzzConn{rest: b, dice: rand.New(rand.NewPCG(seed, 1)), end: make(chan struct{})}
	o := checkOrigin(c, originWireConfig{maxHeader: fuzzLimit})
	o.expect(method, false)
	got := readAnswer(o, method)
	want, early := plainAnswer(b, method, fuzzLimit)
	for _, w := range []string{want, early} {
		if before, after, ok := strings.Cut(w, " ... "); ok && strings.HasPrefix(got, before) && strings.HasSuffix(got, " "+after) || w == got {
			return
		}
	}
	t.Errorf("%s answered %q, seed %d\ngot  %s\nwant %s\nor   %s", method, b, seed, got, want, early)
}

// FuzzOrigin sends answers in pieces: the transport sees what the plain reader
// sees.
func FuzzOrigin(f *testing.F) {
	for i, seed := range answerSeeds {
		f.Add(seed+answerSeeds[(i+3)%len(answerSeeds)], uint64(i))
	}
	f.Fuzz(checkAnswer)
}

// The same with answers that are slightly wrong.
func TestOriginMutations(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 7))
	for range 10000 {
		checkAnswer(t, mutate(dice, answerSeeds), dice.Uint64())
		if t.Failed() {
			return
		}
	}
}

package redact

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/scan"
)

func secrets() []scan.Secret {
	return []scan.Secret{{Value: []byte(secret), Replacement: "[redacted]", Entry: "api"}}
}

// config looks for the one secret; found lists the entries that were noted.
func config() (cfg Config, found *[]string) {
	found = new([]string)
	return Config{
		Set: scan.New(secrets()), Names: Names(secrets()), Method: http.MethodGet,
		Note: func(entry string) { *found = append(*found, entry) },
	}, found
}

// closing is a body that knows whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// answerOf is an answer as the Transport gives one.
func answerOf(status int, length int64, body string, fields ...string) (*http.Response, *closing) {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	c := &closing{Reader: strings.NewReader(body)}
	return &http.Response{StatusCode: status, Status: "200 Hello " + secret, Header: h, Body: c, ContentLength: length}, c
}

func zip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFields(t *testing.T) {
	cfg, found := config()
	res, _ := answerOf(302, 0, "",
		"Location", "/cb?t="+secret+"&x=1", "Set-Cookie", "a=1", "Set-Cookie", "b="+secret, "Www-Authenticate", `Bearer error="`+secret+`"`,
		"X-"+secret, "1", "Content-Length", "0", "X-Kept", "plain")
	res.Trailer = http.Header{"X-Sum": nil, textproto.CanonicalMIMEHeaderKey(secret): nil}
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Location": {"/cb?t=[redacted]&x=1"}, "Set-Cookie": {"a=1", "b=[redacted]"},
		"Www-Authenticate": {`Bearer error="[redacted]"`}, "Content-Length": {"0"}, "X-Kept": {"plain"},
	}
	if !maps.EqualFunc(res.Header, want, slices.Equal) {
		t.Errorf("got %q, want %q", res.Header, want)
	}
	if len(res.Trailer) != 1 {
		t.Errorf("announced: %q", res.Trailer)
	}
	if res.Status != "302 Found" {
		t.Errorf("reason phrase: %q", res.Status)
	}
	if !slices.Equal(*found, []string{"api"}) {
		t.Errorf("noted: %q", *found)
	}
}

func TestInterim(t *testing.T) {
	cfg, found := config()
	h := textproto.MIMEHeader{"Link": {"</a?t=" + secret + ">; rel=preload", "</b>"}}
	Interim(h, cfg)
	if got := h["Link"]; !slices.Equal(got, []string{"</a?t=[redacted]>; rel=preload", "</b>"}) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(*found, []string{"api"}) {
		t.Errorf("noted: %q", *found)
	}
}

// chunked is the length of an answer that has none.
const chunked = -1

func TestAnswer(t *testing.T) {
	sums := []string{"Content-MD5", "1B2M", "Digest", "sha-256=47", "Content-Digest", "sha-256=:47:", "Repr-Digest", "sha-256=:47:"}
	sumNames := []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest"}
	long := strings.Repeat("z", mostWhole)
	echo, blank := "a "+secret+" b", "a [redacted] b"
	const itself = -2 // the length of body
	for _, c := range []struct {
		name, method string
		status       int
		length       int64
		fields       []string
		body         string
		strict       bool
		ranges       bool

		want       string
		wantLength int64
		lacks      []string
		has        []string
		err        error
	}{
		{name: "short", length: itself, body: echo, want: blank, wantLength: int64(len(blank))},
		{name: "short and clean", length: itself, body: "\x00\xffplain", want: "\x00\xffplain", wantLength: 7, fields: append([]string{"ETag", `"v1"`}, sums...), has: append(sumNames, "Etag")},
		{name: "short and changed", length: itself, body: echo, fields: append([]string{"ETag", `"v1"`}, sums...), want: blank, wantLength: int64(len(blank)), lacks: append(sumNames, "Etag")},
		{name: "in chunks", length: chunked, body: echo, fields: append([]string{"ETag", `"v1"`}, sums...), want: blank, wantLength: chunked, lacks: sumNames, has: []string{"Etag"}},
		{name: "64 KiB", length: itself, body: long, want: long, wantLength: mostWhole},
		{name: "more than 64 KiB", length: itself, body: long + secret, fields: append([]string{"ETag", `"v1"`, "Content-Length", "1"}, sums...), want: long + "[redacted]", wantLength: chunked, lacks: append(sumNames, "Content-Length"), has: []string{"Etag"}},
		{name: "nothing", length: 0, wantLength: 0},
		{name: "HEAD", method: "HEAD", length: 300, fields: []string{"Content-Length", "300", "Content-Encoding", "br", "ETag", "x"}, wantLength: chunked, lacks: []string{"Content-Length"}, has: []string{"Etag"}},
		{name: "HEAD of a gzip", method: "HEAD", length: 300, fields: append([]string{"Content-Length", "300", "Content-Encoding", "gzip"}, sums...), wantLength: chunked, lacks: append(sumNames, "Content-Length", "Content-Encoding")},
		{name: "204", status: 204, length: 0, wantLength: 0},
		{name: "304", status: 304, length: chunked, fields: append([]string{"Content-Length", "300", "ETag", "x"}, sums...), wantLength: chunked, lacks: append(sumNames, "Content-Length"), has: []string{"Etag"}},

		{name: "gzip", length: itself, body: zip(t, echo), fields: append([]string{"Content-Encoding", "gzip"}, sums...), want: blank, wantLength: int64(len(blank)), lacks: append(sumNames, "Content-Encoding")},
		{name: "gzip by its old name", length: itself, body: zip(t, echo), fields: []string{"Content-Encoding", "identity, X-Gzip"}, want: blank, wantLength: int64(len(blank)), lacks: []string{"Content-Encoding"}},
		{name: "gzip in chunks", length: chunked, body: zip(t, echo), fields: []string{"Content-Encoding", "gzip", "ETag", "x"}, want: blank, wantLength: chunked, lacks: []string{"Content-Encoding"}, has: []string{"Etag"}},
		{name: "gzip that grows", length: itself, body: zip(t, long+echo), fields: []string{"Content-Encoding", "gzip"}, want: long + blank, wantLength: chunked, lacks: []string{"Content-Encoding", "Content-Length"}},
		{name: "gzip of 64 KiB", length: itself, body: zip(t, long), fields: []string{"Content-Encoding", "gzip"}, want: long, wantLength: mostWhole},
		{name: "gzip in two members", length: itself, body: zip(t, "a "+secret[:9]) + zip(t, secret[9:]+" b"), fields: []string{"Content-Encoding", "gzip"}, want: blank, wantLength: int64(len(blank))},
		{name: "empty gzip", length: itself, body: zip(t, ""), fields: []string{"Content-Encoding", "gzip"}, wantLength: 0},
		{name: "gzip of no length", length: 0, fields: []string{"Content-Encoding", "gzip"}, wantLength: 0, lacks: []string{"Content-Encoding"}},
		{name: "gzip without a byte", length: chunked, fields: []string{"Content-Encoding", "gzip"}, wantLength: chunked},
		{name: "identity", length: itself, body: echo, fields: []string{"Content-Encoding", "identity"}, want: blank, wantLength: int64(len(blank))},
		{name: "no gzip", length: itself, body: echo, fields: []string{"Content-Encoding", "gzip"}, err: errGzip},
		{name: "gzip with something behind it", length: itself, body: zip(t, "a") + echo, fields: []string{"Content-Encoding", "gzip"}, err: errGzip},
		{name: "gzip broken off", length: itself, body: zip(t, echo)[:20], fields: []string{"Content-Encoding", "gzip"}, err: io.ErrUnexpectedEOF},
		{name: "gzip with a wrong sum", length: itself, body: spoil(zip(t, echo)), fields: []string{"Content-Encoding", "gzip"}, err: errGzip},
		{name: "gzip twice", length: itself, body: zip(t, zip(t, echo)), fields: []string{"Content-Encoding", "gzip", "Content-Encoding", "gzip"}, err: errCoding},
		{name: "br", length: itself, body: "\x0b\x02\x80ok\x03", fields: []string{"Content-Encoding", "br"}, err: errCoding},
		{name: "br in chunks", length: chunked, body: "\x0b\x02\x80ok\x03", fields: []string{"Content-Encoding", "gzip, br"}, err: errCoding},

		{name: "a slice that was asked for", status: 206, length: itself, body: "tok-live", want: "tok-live", wantLength: 8},
		{name: "a slice of its own", status: 206, length: itself, body: "tok-live", ranges: true, err: errSlice},

		{name: "gRPC", length: chunked, body: message(0, secret), fields: []string{"Content-Type", "application/grpc"}, want: message(0, stars), wantLength: chunked},
		{name: "gRPC of a length", length: itself, body: message(0, secret), fields: []string{"Content-Type", "Application/gRPC+proto; x=y"}, want: message(0, stars), wantLength: 26},
		{name: "gRPC-Web", length: chunked, body: message(0x80, secret), fields: []string{"Content-Type", "application/grpc-web+proto"}, want: message(0x80, stars), wantLength: chunked},
		{name: "Connect", length: itself, body: message(2, secret), fields: []string{"Content-Type", "application/connect+json"}, want: message(2, stars), wantLength: 26},
		{name: "Connect zipped as a whole", length: chunked, body: zip(t, message(0, secret)), fields: []string{"Content-Type", "application/connect+json", "Content-Encoding", "gzip"}, want: message(0, stars), wantLength: chunked},
		{name: "gRPC compressed", length: itself, body: message(1, "z"), fields: []string{"Content-Type", "application/grpc"}, err: errCompressed},
		{name: "gRPC-Web as text", length: chunked, body: "AAAAAAE=", fields: []string{"Content-Type", "application/grpc-web-text+proto"}, err: errWebText},
		{name: "gRPC-Web as text of two types", length: chunked, body: "AAAAAAE=", fields: []string{"Content-Type", "text/plain", "Content-Type", "application/grpc-web-text"}, err: errWebText},
		{name: "two types are text", length: itself, body: message(0, secret), fields: []string{"Content-Type", "application/grpc", "Content-Type", "text/plain"}, want: message(0, secret)[:5] + "[redacted]", wantLength: 15},

		{name: "strict text", strict: true, length: itself, body: echo, fields: []string{"Content-Type", "text/html; charset=utf-8"}, want: blank, wantLength: int64(len(blank))},
		{name: "strict JSON", strict: true, length: itself, body: "{}", fields: []string{"Content-Type", "application/vnd.github+json"}, want: "{}", wantLength: 2},
		{name: "strict image", strict: true, length: itself, body: echo, fields: []string{"Content-Type", "image/png"}, err: errStrict},
		{name: "strict and no type", strict: true, length: itself, body: echo, err: errStrict},
		{name: "strict and two types", strict: true, length: itself, body: echo, fields: []string{"Content-Type", "text/plain", "Content-Type", "application/zip"}, err: errStrict},
		{name: "strict and no body", strict: true, length: 0, wantLength: 0},
		{name: "strict HEAD", strict: true, method: "HEAD", length: 7, fields: []string{"Content-Type", "image/png"}, wantLength: chunked},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, found := config()
			cfg.Strict, cfg.RangeDropped = c.strict, c.ranges
			if c.method != "" {
				cfg.Method = c.method
			}
			if c.status == 0 {
				c.status = 200
			}
			if c.length == itself {
				c.length = int64(len(c.body))
			}
			res, origin := answerOf(c.status, c.length, c.body, c.fields...)
			err := Answer(res, cfg)
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if err != nil {
				if !origin.closed {
					t.Error("the origin's body was left open")
				}
				return
			}
			got, err := io.ReadAll(res.Body)
			if err != nil || string(got) != c.want {
				t.Errorf("got %.100q, %v; want %.100q", got, err, c.want)
			}
			if res.ContentLength != c.wantLength {
				t.Errorf("length %d, want %d", res.ContentLength, c.wantLength)
			}
			for _, name := range c.lacks {
				if v, ok := res.Header[name]; ok {
					t.Errorf("%s is there: %q", name, v)
				}
			}
			for _, name := range c.has {
				if len(res.Header[name]) != 1 {
					t.Errorf("%s is gone", name)
				}
			}
			if changed := c.want != c.body && strings.Contains(c.want, "[redacted]"); changed != (len(*found) == 1) && !strings.Contains(c.want, stars) {
				t.Errorf("noted: %q", *found)
			}
			if err := res.Body.Close(); err != nil || !origin.closed {
				t.Errorf("closing: %v, closed %v", err, origin.closed)
			}
		})
	}
}

// spoil changes the sum at the end of a gzip.
func spoil(zip string) string {
	return zip[:len(zip)-8] + "\x00" + zip[len(zip)-7:]
}

// A refusal says what the record and the document need, and quotes nothing.
func TestRefusal(t *testing.T) {
	cfg, _ := config()
	res, _ := answerOf(200, chunked, "", "Content-Encoding", secret)
	err := Answer(res, cfg)
	var refused interface {
		Reason() string
		Status() int
		Detail() string
	}
	if !errors.As(err, &refused) || refused.Reason() != "credential_leak" || refused.Status() != 502 || refused.Detail() == "" {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error()+refused.Detail(), secret) {
		t.Errorf("quotes the origin: %v", err)
	}
}

func TestNoteOnce(t *testing.T) {
	cfg, found := config()
	res, _ := answerOf(200, chunked, strings.Repeat(secret+"\n", 1000), "X-Echo", secret)
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*found, []string{"api"}) {
		t.Errorf("noted %d times", len(*found))
	}
}

// What came before an origin broke off is scanned to its end and passed on; what
// cannot be scanned ends the answer with a reason.
func TestBreaksOff(t *testing.T) {
	broken := errors.New("connection reset")
	cfg, _ := config()
	res, _ := answerOf(200, chunked, "")
	res.Body = io.NopCloser(io.MultiReader(strings.NewReader("a "+secret), failing{broken}))
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	if string(got) != "a [redacted]" || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", got, err)
	}

	res, _ = answerOf(200, chunked, message(0, "fine")+message(1, "zzz"), "Content-Type", "application/grpc")
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	got, err = io.ReadAll(res.Body)
	if string(got) != message(0, "fine") || !errors.Is(err, errCompressed) {
		t.Errorf("got %q, %v", got, err)
	}

	res, _ = answerOf(200, chunked, "no gzip at all", "Content-Encoding", "gzip")
	if err := Answer(res, cfg); err != nil {
		t.Fatal(err)
	}
	if got, err = io.ReadAll(res.Body); len(got) != 0 || !errors.Is(err, errGzip) {
		t.Errorf("got %q, %v", got, err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

package redact

import (
	"cmp"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/egressd/egressd/credbroker/scan"
)

const newer = "tok-next-4Lp0x9Ww2Ke7Rb"

// A secret that is had while an answer comes is found in the rest of it, in
// what is held too, and in the trailer, whatever the answer is framed in.
func TestRenewed(t *testing.T) {
	list := append(secrets(), scan.Secret{Value: []byte(newer), Replacement: "[newer]", Entry: "api"})
	blank := strings.Repeat("*", len(newer))
	for _, c := range []struct {
		name    string
		fields  []string
		status  int
		before  string
		after   string
		want    string
		trailer bool
	}{
		{name: "a text", before: "one\nheld tok-", after: "next-4Lp0x9Ww2Ke7Rb, " + secret + "\n", want: "one\nheld [newer], [redacted]\n", trailer: true},
		{name: "messages", fields: []string{"Content-Type", "application/grpc"}, before: message(0, "a"), after: message(0, newer), want: message(0, "a") + message(0, blank)},
		{name: "frames", status: 101, fields: []string{"Upgrade", "websocket"}, before: frame(0x81, "a"), after: frame(0x81, newer) + frame(0x89, newer), want: frame(0x81, "a") + frame(0x81, blank) + frame(0x89, blank)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var now atomic.Pointer[scan.Set]
			cfg, found := config()
			now.Store(cfg.Set)
			cfg.Renewed = func() (set, names *scan.Set) { return now.Load(), nil }
			res, _ := answerOf(cmp.Or(c.status, 200), -1, "", c.fields...)
			from, to := io.Pipe()
			defer from.Close()
			res.Body = struct {
				io.ReadCloser
				io.Writer
			}{from, io.Discard}
			if err := Answer(res, cfg); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = io.WriteString(to, c.before)
				now.Store(scan.New(list))
				_, _ = io.WriteString(to, c.after)
				res.Trailer = http.Header{"X-T": {newer}}
				to.Close()
			}()
			got, err := io.ReadAll(res.Body)
			if err != nil || string(got) != c.want || len(*found) != 1 {
				t.Errorf("%q, %v, finds of %q; want %q", got, err, *found, c.want)
			}
			if c.trailer && res.Trailer.Get("X-T") != "[newer]" {
				t.Errorf("the trailer: %q", res.Trailer)
			}
		})
	}
}

// A find in what says that it is a length frames nothing and is dropped.
func TestLengthsThatAreNone(t *testing.T) {
	cfg, found := config()
	for _, status := range []int{200, 204, 304} {
		res, _ := answerOf(status, 0, "", "Content-Length", secret, "Content-Length", "0")
		if err := Answer(res, cfg); err != nil || len(res.Header["Content-Length"]) > 0 {
			t.Errorf("%d: %q, %v", status, res.Header, err)
		}
	}
	early := textproto.MIMEHeader{"Content-Length": {secret}, "Link": {"x"}}
	if Interim(early, cfg); len(early) != 1 {
		t.Errorf("%q", early)
	}
	res, _ := answerOf(200, -1, "body")
	res.Trailer = http.Header{"Content-Length": {"%74" + secret[1:]}}
	if err := Answer(res, cfg); err != nil || len(res.Trailer) > 0 {
		t.Errorf("%q, %v", res.Trailer, err)
	}
	if len(*found) != 5 {
		t.Errorf("%d finds were told of", len(*found))
	}
}

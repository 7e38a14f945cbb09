package sigv4_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/egressd/egressd/credbroker/sigv4"
)

// signedBody is a request of lambda, whose clients send no hash.
func signedBody(t testing.TB, body io.Reader, length int64, fields ...string) (*http.Request, *closing) {
	r := request(t, "POST", "https://x.test/", "", append(fields, "X-Amz-Date: 20261130T120000Z", "Expect: 100-continue",
		"Authorization: "+authorization(placeID, "20261130/us-east-1/lambda", "content-length;expect;host;x-amz-date", zeros))...)
	c := &closing{Reader: body}
	r.Body, r.ContentLength = c, length
	return r, c
}

type closing struct {
	io.Reader
	read   bool
	closed int
}

func (c *closing) Read(p []byte) (int, error) {
	c.read = true
	return c.Reader.Read(p)
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

// A body without a hash is held, up to 16 MiB, and goes out as it came.
func TestHold(t *testing.T) {
	const most = 16 << 20
	for _, tt := range []struct {
		size   int
		length int64
		reason string
		read   bool
	}{
		{0, -1, "", true}, {1, 1, "", true}, {5000, 5000, "", true}, {5000, -1, "", true}, {most, most, "", true}, {most, -1, "", true},
		{most + 1, -1, "body_too_large", true}, {most + 1, most + 1, "body_too_large", false},
	} {
		text := strings.Repeat("x", tt.size)
		r, c := signedBody(t, iotest.HalfReader(strings.NewReader(text)), tt.length)
		q, err := sigv4.Recognise(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Sign(r, sigv4.Options{Key: key(keyID, keySecret, "")})
		if c.read != tt.read {
			t.Errorf("%+v: read %v", tt, c.read)
		}
		if tt.reason != "" {
			wantRefusal(t, err, tt.reason, 413, "16 MiB")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Header.Get("Expect") != "" || strings.Contains(r.Header.Get("Authorization"), "expect") {
			t.Errorf("Expect stays: %v", r.Header)
		}
		if strings.Contains(r.Header.Get("Authorization"), "content-length") != (tt.length >= 0) {
			t.Errorf("%+v: %s", tt, r.Header.Get("Authorization"))
		}
		out, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || string(out) != text || c.closed != 1 || r.ContentLength != tt.length {
			t.Errorf("%+v: %d bytes, %v, closed %d, length %d", tt, len(out), err, c.closed, r.ContentLength)
		}
		explicit := request(t, "POST", "https://x.test/", text, "X-Amz-Date: 20261130T120000Z", fmt.Sprintf("X-Amz-Content-Sha256: %x", sha256.Sum256([]byte(text))),
			"Authorization: "+authorization(placeID, "20261130/us-east-1/lambda", "content-length;host;x-amz-date", zeros))
		explicit.ContentLength = tt.length
		sign(t, explicit, sigv4.Options{Key: key(keyID, keySecret, "")})
		if explicit.Header.Get("Authorization") != r.Header.Get("Authorization") {
			t.Errorf("%+v: another hash: %s", tt, r.Header.Get("Authorization"))
		}
	}
}

// A body with a hash, or that is not signed, is not read.
func TestNotHeld(t *testing.T) {
	for _, hash := range []string{"UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", fmt.Sprintf("%x", sha256.Sum256([]byte("x"))), "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"} {
		r, c := signedBody(t, strings.NewReader("x"), 1, "X-Amz-Content-Sha256: "+hash)
		sign(t, r, sigv4.Options{Key: key(keyID, keySecret, "")})
		if c.read || r.Header.Get("Expect") == "" {
			t.Errorf("%s: read %v, %v", hash, c.read, r.Header)
		}
	}
}

// A body that fails fails the request, with its own error.
func TestBodyFails(t *testing.T) {
	broken := errors.New("broken")
	r, c := signedBody(t, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), -1)
	q, err := sigv4.Recognise(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Sign(r, sigv4.Options{Key: key(keyID, keySecret, "")}); !errors.Is(err, broken) || c.closed != 0 {
		t.Errorf("%v, closed %d", err, c.closed)
	}
}

// What cannot be signed anew is refused, by what the body is said to be.
func TestPayloadRefused(t *testing.T) {
	for _, tt := range []struct {
		fields []string
		reason string
		status int
		word   string
	}{
		{[]string{"X-Amz-Content-Sha256: STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"}, "credential_leak", 403, "SigV4A"},
		{[]string{"X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-EVENTS"}, "protocol", 400, "event"},
		{[]string{"X-Amz-Content-Sha256: UNSIGNED-PAYLOAD", "X-Amz-Content-Sha256: x"}, "credential_leak", 403, ""},
	} {
		r, _ := signedBody(t, strings.NewReader("x"), 1, tt.fields...)
		q, err := sigv4.Recognise(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Sign(r, sigv4.Options{Key: key(keyID, keySecret, "")})
		wantRefusal(t, err, tt.reason, tt.status, tt.word)
	}
}

// No key signs nothing.
func TestNoKey(t *testing.T) {
	for _, k := range []sigv4.Key{{}, key("", keySecret, ""), key(keyID, "", "")} {
		r, c := signedBody(t, strings.NewReader("x"), 1)
		before := r.Header.Get("Authorization")
		q, err := sigv4.Recognise(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Sign(r, sigv4.Options{Key: k})
		wantRefusal(t, err, "credential_unavailable", 502)
		if c.read || r.Header.Get("Authorization") != before {
			t.Error("it was signed")
		}
	}
}

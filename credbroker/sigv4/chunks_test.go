package sigv4_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/egressd/egressd/credbroker/sigv4"
	"github.com/egressd/egressd/internal/proxytest"
)

// chunked writes data as a client without a key does.
func chunked(data []byte, size int, trailer string) string {
	var b strings.Builder
	for len(data) > 0 {
		n := min(size, len(data))
		fmt.Fprintf(&b, "%x;chunk-signature=%s\r\n%s\r\n", n, zeros, data[:n])
		data = data[n:]
	}
	fmt.Fprintf(&b, "0;chunk-signature=%s\r\n%s", zeros, trailer)
	return b.String()
}

func crcTrailer(data []byte, end string) string {
	sum := crc32.ChecksumIEEE(data)
	text := base64.StdEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return "x-amz-checksum-crc32:" + text + end + "x-amz-trailer-signature:" + zeros + "\r\n\r\n"
}

func upload(t testing.TB, payload, body string, decoded int) *http.Request {
	r := request(t, "PUT", "https://store.test/b/k", "-",
		"X-Amz-Date: 20261130T120000Z", "X-Amz-Content-Sha256: "+payload, fmt.Sprintf("X-Amz-Decoded-Content-Length: %d", decoded), "Content-Encoding: aws-chunked",
		"Authorization: "+authorization(placeID, "20261130/us-east-1/s3", "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length", zeros))
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return r
}

const (
	streaming = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	trailing  = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
)

// Chunks are signed anew as they stream, and the length stays.
func TestChunks(t *testing.T) {
	data := bytes.Repeat([]byte("chunks of some data\r\n0;chunk-signature="), 4000)
	for _, tt := range []struct{ name, payload, body string }{
		{"chunks of 64 KiB", streaming, chunked(data, 64<<10, "\r\n")},
		{"small chunks", streaming, chunked(data[:3000], 7, "\r\n")},
		{"one byte", streaming, chunked(data[:1], 7, "\r\n")},
		{"nothing", streaming, chunked(nil, 7, "\r\n")},
		{"no end", streaming, chunked(data[:100], 64, "")},
		{"a trailer", trailing, chunked(data, 8<<10, crcTrailer(data, "\r\n"))},
		{"a trailer set off", trailing, chunked(data[:99], 50, crcTrailer(data[:99], "\r\n\r\n"))},
		{"a trailer of unsigned chunks", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", fmt.Sprintf("3\r\n%s\r\n0\r\n%s", data[:3], "\r\n")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			decoded := 0
			for rest := tt.body; ; {
				head, after, _ := strings.Cut(rest, "\r\n")
				size, _, _ := strings.Cut(head, ";")
				var n int
				fmt.Sscanf(size, "%x", &n)
				if decoded += n; n == 0 {
					break
				}
				rest = after[n+2:]
			}
			r := upload(t, tt.payload, tt.body, decoded)
			r.Body = io.NopCloser(iotest.HalfReader(strings.NewReader(tt.body)))
			sign(t, r, sigv4.Options{Key: key(keyID, keySecret, "")})
			out, err := io.ReadAll(iotest.OneByteReader(r.Body))
			if err != nil || len(out) != len(tt.body) {
				t.Fatalf("%d bytes became %d: %v", len(tt.body), len(out), err)
			}
			s3 := &proxytest.S3{KeyID: keyID, Secret: keySecret, Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }}
			in := httptest.NewRequest("PUT", "/b/k", bytes.NewReader(out))
			in.Header, in.Host = r.Header, r.URL.Host
			s3.ServeHTTP(httptest.NewRecorder(), in)
			if seen := s3.Seen()[0]; seen.Fault != "" || !bytes.Equal(s3.Object("/b/k"), data[:decoded]) {
				t.Errorf("%+v, %d bytes stored", seen, len(s3.Object("/b/k")))
			}
		})
	}
}

// A body that is not the chunks that were announced breaks off, and nothing of
// a chunk that is not whole goes out.
func TestChunksMalformed(t *testing.T) {
	whole := chunked([]byte("hello"), 5, "\r\n")
	ended := "0;chunk-signature=" + zeros + "\r\n"
	for name, tt := range map[string]struct{ payload, body, reason string }{
		"nothing":             {streaming, "", "bad_request"},
		"half a head":         {streaming, whole[:20], "bad_request"},
		"half a chunk":        {streaming, whole[:len("5;chunk-signature=")+64+2+3], "bad_request"},
		"no last chunk":       {streaming, whole[:len("5;chunk-signature=")+64+2+5+2], "bad_request"},
		"half an end":         {streaming, ended + "\r", "bad_request"},
		"more behind it":      {streaming, whole + "x", "bad_request"},
		"no line break":       {streaming, strings.Replace(whole, "hello\r\n", "helloxx", 1), "bad_request"},
		"a short signature":   {streaming, strings.Replace(whole, zeros, zeros[:63], 1), "bad_request"},
		"no signature":        {streaming, "5\r\nhello\r\n0\r\n\r\n", "bad_request"},
		"no size":             {streaming, ";chunk-signature=" + zeros + "\r\n\r\n", "bad_request"},
		"a negative size":     {streaming, "-5;chunk-signature=" + zeros + "\r\nhello\r\n", "bad_request"},
		"only LF":             {streaming, strings.ReplaceAll(whole, "\r\n", "\n"), "bad_request"},
		"something else":      {streaming, strings.Repeat("x", 10000), "bad_request"},
		"a chunk too large":   {streaming, "1000001;chunk-signature=" + zeros + "\r\n", "body_too_large"},
		"no trailer":          {trailing, ended + "\r\n", "bad_request"},
		"an unsigned trailer": {trailing, ended + "x-amz-checksum-crc32:AAAAAA==\r\n\r\n", "bad_request"},
		"a line without name": {trailing, ended + "hello\r\n\r\n", "bad_request"},
		"a long trailer":      {trailing, ended + strings.Repeat("a:b\r\n", 40), "bad_request"},
		"no end of a trailer": {trailing, ended + "a:b\r\nx-amz-trailer-signature:" + zeros + "\r\nx", "bad_request"},
	} {
		r := upload(t, tt.payload, tt.body, 5)
		sign(t, r, sigv4.Options{Key: key(keyID, keySecret, "")})
		_, err := io.ReadAll(r.Body)
		if err == nil {
			t.Errorf("%s went through", name)
			continue
		}
		status := map[string]int{"bad_request": 400, "body_too_large": 413}[tt.reason]
		wantRefusal(t, err, tt.reason, status)
		if n, again := r.Body.Read(make([]byte, 1)); n != 0 || again != err {
			t.Errorf("%s: read on: %d, %v", name, n, again)
		}
	}
}

// The error of a body is passed on, with its reason.
func TestChunksBroken(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{0, 5, 90, 140} {
		r := upload(t, streaming, "", 5)
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(chunked([]byte(strings.Repeat("h", 90)), 50, "\r\n")[:n]), iotest.ErrReader(broken)))
		sign(t, r, sigv4.Options{Key: key(keyID, keySecret, "")})
		if _, err := io.ReadAll(r.Body); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// What is held of bodies is reserved, and given back when they end or are
// closed early.
func TestReserve(t *testing.T) {
	var held, most atomic.Int64
	limit := int64(1 << 20)
	reserve := func(n int64) bool {
		if n > 0 && held.Load()+n > limit {
			return false
		}
		most.Store(max(most.Load(), held.Add(n)))
		return true
	}
	opts := sigv4.Options{Key: key(keyID, keySecret, ""), Reserve: reserve}
	body := func(size int) *http.Request {
		r := request(t, "POST", "https://x.test/", strings.Repeat("x", size), "X-Amz-Date: 20261130T120000Z",
			"Authorization: "+authorization(placeID, "20261130/us-east-1/lambda", "host;x-amz-date", zeros))
		return r
	}
	stream := func(size int) *http.Request {
		return upload(t, streaming, chunked(bytes.Repeat([]byte("x"), size), size, "\r\n"), size)
	}
	for _, make := range []func(int) *http.Request{body, stream} {
		most.Store(0)
		r := make(100 << 10)
		sign(t, r, opts)
		if _, err := r.Body.Read([]byte{0}); err != nil {
			t.Fatal(err)
		}
		if held.Load() < 100<<10 {
			t.Errorf("%d bytes are reserved", held.Load())
		}
		r.Body.Close()
		r.Body.Close()
		if held.Load() != 0 {
			t.Errorf("%d bytes stay reserved", held.Load())
		}
		r = make(3 << 20)
		q, err := sigv4.Recognise(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = q.Sign(r, opts); err == nil {
			_, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		wantRefusal(t, err, "overloaded", 503)
		if held.Load() != 0 {
			t.Errorf("%d bytes stay reserved", held.Load())
		}
	}
}

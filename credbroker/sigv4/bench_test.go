package sigv4_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/egressd/egressd/credbroker/sigv4"
)

// Below 20 µs for a request without a body to hash.
func BenchmarkSign(b *testing.B) {
	opts := sigv4.Options{Key: key(keyID, keySecret, keyToken)}
	auth := "Authorization: " + authorization(placeID, "20261130/us-east-1/s3", "host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token", zeros)
	header := request(b, "GET", "https://bucket.s3.amazonaws.com/some/path/of/a/key.bin?list-type=2&prefix=a%2Fb&x-id=GetObject", "",
		"X-Amz-Date: 20261130T120000Z", "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD", "Range: bytes=0-99", "X-Amz-Security-Token: "+placeToken, auth)
	query := request(b, "GET", presigned(), "")
	b.Run("header", func(b *testing.B) {
		for b.Loop() {
			sign(b, header, opts)
		}
	})
	b.Run("presigned", func(b *testing.B) {
		for b.Loop() {
			sign(b, query, opts)
		}
	})
}

// A stream of chunks of 64 KiB.
func BenchmarkChunks(b *testing.B) {
	text := chunked(bytes.Repeat([]byte("x"), 4<<20), 64<<10, "\r\n")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := upload(b, streaming, text, 4<<20)
		sign(b, r, sigv4.Options{Key: key(keyID, keySecret, "")})
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Fatal(err)
		}
	}
}

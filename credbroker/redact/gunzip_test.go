package redact

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestIsGzip(t *testing.T) {
	for _, c := range []struct {
		lines []string
		gzip  bool
		err   error
	}{
		{nil, false, nil},
		{[]string{""}, false, nil},
		{[]string{"identity"}, false, nil},
		{[]string{" GZip "}, true, nil},
		{[]string{"x-gzip,identity"}, true, nil},
		{[]string{"identity", "gzip"}, true, nil},
		{[]string{"gzip,"}, true, nil},
		{[]string{"gzip", "gzip"}, false, errCoding},
		{[]string{"gzip, br"}, false, errCoding},
		{[]string{"deflate"}, false, errCoding},
		{[]string{"compress"}, false, errCoding},
		{[]string{"aws-chunked"}, false, errCoding},
		{[]string{"gzip;q=1"}, false, errCoding},
		{[]string{"utf-8"}, false, errCoding},
	} {
		got, err := isGzip(http.Header{"Content-Encoding": c.lines})
		if got != c.gzip || err != c.err {
			t.Errorf("%q: got %v, %v", c.lines, got, err)
		}
	}
}

// What was flushed is there before more comes.
func TestGunzipDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	g := &gunzip{src: r}
	piece := strings.Repeat("piece ", 1000)
	next := make(chan bool)
	defer close(next)
	go func() {
		zip := gzip.NewWriter(w)
		for range next {
			io.WriteString(zip, piece)
			zip.Flush()
		}
	}()
	for range 3 {
		next <- true
		readFor(t, g, piece)
	}
}

// However the bytes come, they mean the same as to the standard library.
func FuzzGunzip(f *testing.F) {
	f.Add([]byte(zip(f, "some text, some text")))
	f.Add([]byte(zip(f, "one") + zip(f, "two")))
	f.Add([]byte(zip(f, "one") + "rubbish"))
	f.Add([]byte(zip(f, "broken off")[:15]))
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 1 << 20
		var want []byte
		r, wantErr := gzip.NewReader(bytes.NewReader(in))
		if wantErr == nil {
			want, wantErr = io.ReadAll(io.LimitReader(r, most))
		} else if wantErr == io.EOF {
			wantErr = nil // no body at all
		}
		for _, src := range []io.Reader{
			bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)),
			iotest.HalfReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in)),
		} {
			got, err := io.ReadAll(io.LimitReader(&gunzip{src: src}, most))
			if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) {
				t.Fatalf("got %q, %v; want %q, %v", got, err, want, wantErr)
			}
		}
	})
}

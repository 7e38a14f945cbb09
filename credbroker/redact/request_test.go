package redact

import (
	"net/http"
	"strings"
	"testing"
)

func TestAcceptEncoding(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, "identity"},
		{[]string{""}, "identity"},
		{[]string{"gzip"}, "gzip"},
		{[]string{"GZIP"}, "GZIP"},
		{[]string{"x-gzip"}, "x-gzip"},
		{[]string{"gzip, deflate, br, zstd"}, "gzip"},
		{[]string{"br"}, "identity"},
		{[]string{"br", "gzip"}, "gzip"},
		{[]string{"br;q=1.0, gzip;q=0.8, *;q=0.1"}, "gzip;q=0.8"},
		{[]string{"gzip ; q=0.5 ,identity;q=0.2"}, "gzip ; q=0.5, identity;q=0.2"},
		{[]string{"*"}, "identity"},
		{[]string{"*;q=0"}, "identity"},
		{[]string{"gzip;q=0"}, "identity"},
		{[]string{"gzip;q=0.000, identity"}, "identity"},
		{[]string{"gzip;Q=1.000"}, "gzip;Q=1.000"},
		{[]string{"gzip;q=x"}, "identity"},
		{[]string{"gzip;q=1e0"}, "identity"},
		{[]string{"gzip;q=2"}, "identity"},
		{[]string{"gzip;q=-1"}, "identity"},
		{[]string{"gzip;level=9"}, "identity"},
		{[]string{"gzip;q=0.5;q=1"}, "identity"},
		{[]string{"gzipped, igzip"}, "identity"},
	} {
		r := &http.Request{Header: http.Header{}}
		if c.lines != nil {
			r.Header["Accept-Encoding"] = c.lines
		}
		Request(r)
		if got := r.Header["Accept-Encoding"]; len(got) != 1 || got[0] != c.want {
			t.Errorf("%q: got %q, want %q", c.lines, got, c.want)
		}
	}
}

func TestOffers(t *testing.T) {
	r := &http.Request{Header: http.Header{
		"Grpc-Accept-Encoding":     {"gzip,identity", "zstd"},
		"Connect-Accept-Encoding":  {"br"},
		"Sec-Websocket-Extensions": {"permessage-deflate; client_max_window_bits"},
		"X-Kept":                   {"1"},
	}}
	Request(r)
	for name, want := range map[string]string{"Grpc-Accept-Encoding": "identity", "Connect-Accept-Encoding": "identity", "X-Kept": "1"} {
		if got := r.Header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got, ok := r.Header["Sec-Websocket-Extensions"]; ok {
		t.Errorf("an extension is offered: %q", got)
	}

	r = &http.Request{Header: http.Header{"Range": {"bytes=0-7"}, "Accept-Encoding": {"gzip"}}}
	Request(r)
	if got := r.Header.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("asks for a slice in %q", got)
	}

	r = &http.Request{Header: http.Header{}}
	Request(r)
	if len(r.Header) != 1 {
		t.Errorf("offers of our own: %v", r.Header)
	}
}

// Whatever is offered, only what can be read is asked for.
func FuzzAcceptEncoding(f *testing.F) {
	f.Add("gzip;q=0.5, br, *;q=0", "identity")
	f.Fuzz(func(t *testing.T, one, two string) {
		for member := range strings.SplitSeq(acceptable([]string{one, two}), ",") {
			coding, _, _ := strings.Cut(member, ";")
			switch strings.ToLower(strings.Trim(coding, " \t")) {
			case "gzip", "x-gzip", "identity":
			default:
				t.Fatalf("asks for %q", coding)
			}
		}
	})
}

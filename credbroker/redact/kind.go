package redact

import (
	"net/http"
	"strings"
)

// kind is how an answer's bytes are to be read.
type kind int

const (
	kindText    kind = iota // everything that is not one of the others
	kindGRPC                // application/grpc and its kinds: messages with a length
	kindGRPCWeb             // the same with the trailers in a message of their own
	kindConnect             // application/connect+*: the same with an end-of-stream message
	kindWebText             // application/grpc-web-text: base64 of messages
	kindUnknown             // for `redact: strict`: archives, images, no type at all
	kindFrames              // a WebSocket's frames
)

// kindOf reads Content-Type. A type that is given twice is whatever the client
// makes of it: as text every reading of it is looked at, but web-text anywhere
// is not to be trusted.
func kindOf(h http.Header, strict bool) kind {
	values := h["Content-Type"]
	found := kindText
	for _, v := range values {
		k := kindOfType(v, strict)
		if k == kindWebText || k == kindUnknown {
			return k
		}
		found = k
	}
	switch {
	case len(values) == 0 && strict:
		return kindUnknown
	case len(values) > 1:
		return kindText
	}
	return found
}

func kindOfType(value string, strict bool) kind {
	media, _, _ := strings.Cut(value, ";")
	media = strings.ToLower(strings.Trim(media, " \t"))
	switch {
	case strings.HasPrefix(media, "application/grpc-web-text"):
		return kindWebText
	case strings.HasPrefix(media, "application/grpc-web"):
		return kindGRPCWeb
	case strings.HasPrefix(media, "application/grpc"):
		return kindGRPC
	case strings.HasPrefix(media, "application/connect+"):
		return kindConnect
	case strict && !readable(media):
		return kindUnknown
	}
	return kindText
}

// readable says whether `redact: strict` lets a type through: text, an event
// stream among it, JSON, XML and forms.
func readable(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data",
		"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq":
		return true
	}
	return strings.HasPrefix(media, "text/") && len(media) > len("text/") ||
		strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
}

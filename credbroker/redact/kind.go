package redact

import (
	"net/http"
	"strings"
)

// kind is how an answer's bytes are to be read.
type kind int

const (
	text     kind = iota // everything that is not one of the others
	grpc                 // application/grpc and its kinds: messages with a length
	grpcWeb              // the same with the trailers in a message of their own
	connect              // application/connect+*: the same with an end-of-stream message
	webText              // application/grpc-web-text: base64 of messages
	unknown              // for `redact: strict`: archives, images, no type at all
	upgraded             // a WebSocket's frames
)

// kindOf reads Content-Type. A type that is given twice is whatever the client
// makes of it: as text every reading of it is looked at, but web-text anywhere
// is not to be trusted.
func kindOf(h http.Header, strict bool) kind {
	values := h["Content-Type"]
	found := text
	for _, v := range values {
		k := kindOfType(v, strict)
		if k == webText || k == unknown {
			return k
		}
		found = k
	}
	switch {
	case len(values) == 0 && strict:
		return unknown
	case len(values) > 1:
		return text
	}
	return found
}

func kindOfType(value string, strict bool) kind {
	media, _, _ := strings.Cut(value, ";")
	media = strings.ToLower(strings.Trim(media, " \t"))
	switch {
	case strings.HasPrefix(media, "application/grpc-web-text"):
		return webText
	case strings.HasPrefix(media, "application/grpc-web"):
		return grpcWeb
	case strings.HasPrefix(media, "application/grpc"):
		return grpc
	case strings.HasPrefix(media, "application/connect+"):
		return connect
	case strict && !readable(media):
		return unknown
	}
	return text
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

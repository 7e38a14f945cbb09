package main

import (
	"encoding/json"
	"net/http"
	"strings"
)

// docOrigin is what answers the commands of documents: example.com with its one
// page, and two pages of httpbin.org that show a request to its sender.
type docOrigin struct{ plain http.Handler }

// docHosts are its names.
const docHosts = "example.com httpbin.org"

func (o docOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != "httpbin.org" {
		o.plain.ServeHTTP(w, r)
		return
	}
	var page any
	switch r.URL.Path {
	case "/bearer":
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		page = map[string]any{"authenticated": true, "token": token}
	case "/headers":
		seen := map[string]string{"Host": r.Host}
		for name, values := range r.Header {
			seen[name] = strings.Join(values, ",")
		}
		page = map[string]any{"headers": seen}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(page) // a client that went away
}

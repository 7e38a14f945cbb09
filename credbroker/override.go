package credbroker

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// overrides are what fields of a request say in the place of its line, to the
// frameworks that heed them (RULES.md): more readings of where it goes, and of
// its method.
type overrides struct {
	paths, queries, methods []string
}

// overridden reads them. A request without any costs a look at the names.
func overridden(h http.Header) (o overrides) {
	for key, lines := range h {
		if len(key) < len("X-Http-Method") || key[0]|0x20 != 'x' {
			continue
		}
		switch foldName(key) {
		case "x-original-url", "x-rewrite-url":
			for _, line := range lines {
				if line = strings.Trim(line, " \t"); line != "" {
					path, query, _ := strings.Cut(pathOnly(line), "?")
					o.paths, o.queries = append(o.paths, path), append(o.queries, query)
				}
			}
		case "x-http-method-override", "x-http-method", "x-method-override":
			for _, line := range lines {
				o.methods = append(o.methods, strings.Trim(line, " \t"))
			}
		}
	}
	return o
}

// pathOnly is a target without a scheme and an authority.
func pathOnly(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	if u, err := url.Parse(target); err == nil && u.Scheme != "" && u.Host != "" {
		_, rest, _ := strings.Cut(target, "://")
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			return rest[i:]
		}
		return "/"
	}
	return target
}

// echoes says that a method may be answered with what was sent (RFC 9110
// section 9.3.8), or asks what could be sent. Case does not count, which it does
// not for some servers, and TRACK is TRACE to old ones.
func echoes(method string) bool {
	return slices.ContainsFunc([]string{"TRACE", "OPTIONS", "TRACK"}, func(known string) bool { return strings.EqualFold(known, method) })
}

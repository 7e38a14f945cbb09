package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// splitPath keeps out of a path what must not be written: a query that was
// left in it, and the userinfo of an absolute form (RFC 9110 section 4.2.4).
func splitPath(path, query string) (string, string) {
	if i := strings.IndexByte(path, '?'); i >= 0 {
		if query == "" {
			query = path[i+1:]
		}
		path = path[:i]
	}
	if strings.HasPrefix(path, "/") {
		return path, query
	}
	start := 0
	if i := strings.Index(path, "://"); i >= 0 {
		start = i + 3
	}
	end := len(path)
	if i := strings.IndexAny(path[start:], `/\#`); i >= 0 {
		end = start + i
	}
	if i := strings.LastIndexByte(path[start:end], '@'); i >= 0 {
		path = path[:start] + path[start+i+1:]
	}
	return path, query
}

// sortedKeys makes the order of counts the same in every run.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

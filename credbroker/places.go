package credbroker

import (
	"slices"
	"strings"
)

// Services read names of parameters in more ways than one: in whatever case
// (ASP.NET), with blanks and brackets around them, with "." for "_" (PHP),
// behind ";" as behind "&", decoded twice. What any of them takes for a
// credential of the client's own counts as one.

// namesAny says whether a text of a query, name=value, has a parameter of those
// names that is not empty.
func namesAny(text string, names []string) bool {
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		if value != "" && isAnyOf(name, names) {
			return true
		}
	}
	return false
}

// isAnyOf says whether a service may read name, as sent, as one of names.
func isAnyOf(name string, names []string) bool {
	for range 4 {
		if text := looseName(name); slices.ContainsFunc(names, func(known string) bool { return looseName(known) == text }) {
			return true
		}
		next := unescapeForm(name)
		if next == name {
			return false
		}
		name = next
	}
	return false
}

// looseName is a name as the most forgiving of services read it.
func looseName(name string) string {
	name = strings.TrimFunc(name, func(c rune) bool { return c <= ' ' || c == '?' || c == 0xFEFF || c == 0x7F })
	if i := strings.IndexAny(name, "[\x00"); i > 0 {
		name = name[:i]
	}
	return strings.NewReplacer(".", "_", "-", "_", " ", "_").Replace(strings.ToLower(name))
}

// purgeOverrides takes off fields that name another target with a parameter of
// those names, and says whether there were none.
func (x *outgoing) purgeOverrides(params []string) bool {
	if len(params) == 0 || !slices.ContainsFunc(x.also.queries, func(query string) bool {
		return slices.ContainsFunc(strings.Split(query, "&"), func(text string) bool { return namesAny(text, params) })
	}) {
		return true
	}
	for key := range x.r.Header {
		if name := foldName(key); name == "x-original-url" || name == "x-rewrite-url" {
			delete(x.r.Header, key)
		}
	}
	return false
}

// purgeProtocols takes WebSocket subprotocols off that begin in one of those
// ways, and says whether there were none.
func (x *outgoing) purgeProtocols(beginnings []string) bool {
	if len(beginnings) == 0 {
		return true
	}
	pure := true
	for key, lines := range x.r.Header {
		if foldName(key) != "sec-websocket-protocol" {
			continue
		}
		var kept []string
		for _, line := range lines {
			for name := range strings.SplitSeq(line, ",") {
				name = strings.Trim(name, " \t")
				if slices.ContainsFunc(beginnings, func(b string) bool { return len(name) >= len(b) && strings.EqualFold(name[:len(b)], b) }) {
					pure = false
				} else {
					kept = append(kept, name)
				}
			}
		}
		if pure {
			continue
		}
		if x.r.Header[key] = []string{strings.Join(kept, ", ")}; len(kept) == 0 {
			delete(x.r.Header, key)
		}
	}
	return pure
}

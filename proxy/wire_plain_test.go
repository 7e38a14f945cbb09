package proxy

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const plainToken = "[!#$%&'*+.^_`|~0-9A-Za-z-]"

var (
	plainLine   = regexp.MustCompile("(?s-i)^(" + plainToken + `+) ([^\x00-\x20\x7f]+) HTTP/1\.([01])$`)
	plainField  = regexp.MustCompile("^(" + plainToken + `+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*$`)
	plainChunk  = regexp.MustCompile("^([0-9A-Fa-f]+)[ \t]*(?:;(?:" + plainToken + `|[=; \t]|"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*")*)?$`)
	plainClose  = regexp.MustCompile("(?i)(?:^|[ ,\t])close(?:$|[ ,\t])") // what net/http takes for a close
	plainStatus = regexp.MustCompile("^HTTP/1\\.([01]) ([1-9][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?$")
	plainForm   = regexp.MustCompile("^(/|[A-Za-z][A-Za-z0-9+.-]*://)")
)

// latin makes every byte a letter of its own, so that the expressions above
// match bytes.
func latin(b string) string {
	r := make([]rune, len(b))
	for i := range len(b) {
		r[i] = rune(b[i])
	}
	return string(r)
}

func unlatin(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// match applies an expression to bytes.
func match(e *regexp.Regexp, b string) []string {
	m := e.FindStringSubmatch(latin(b))
	for i := range m {
		m[i] = unlatin(m[i])
	}
	return m
}

// plainReader is what the wire is compared with: RFC 9112 written down as
// plainly as can be, over all the bytes at once. It gives a line for each
// request as serveHead does, and ends at the first fault, at the request that
// closes, and where the bytes run out: there the wire may also see the lines
// of early, for what it has may be wrong already, whatever comes.
func plainReader(b string, limit int) (lines, early []string) {
	for {
		start := b
		b = strings.TrimPrefix(b, "\r\n")
		i := strings.Index(b, "\r\n\r\n")
		switch {
		case strings.HasPrefix(b, "\r\n"):
			return append(lines, "fault"), nil
		case i < 0 && len(start) >= limit:
			return append(lines, "fault"), nil
		case i < 0:
			return lines, append(slices.Clone(lines), "fault")
		case len(start)-len(b)+i+4 > limit:
			return append(lines, "fault"), nil
		}
		head := strings.Split(b[:i], "\r\n")
		b = b[i+4:]
		m := match(plainLine, head[0])
		if m == nil {
			return append(lines, "fault"), nil
		}
		method, target, old := m[1], m[2], m[3] == "0"
		all := http.Header{}
		for _, line := range head[1:] {
			f := match(plainField, line)
			if f == nil {
				return append(lines, "fault"), nil
			}
			all.Add(f[1], f[2])
		}
		length, chunked, ok := plainFraming(method, target, old, all)
		if !ok {
			return append(lines, "fault"), nil
		}
		var body string
		trailers := http.Header{}
		if chunked {
			var end string
			body, trailers, b, end = plainChunks(b, limit)
			switch end {
			case "fault":
				return append(lines, "body fault"), nil
			case "ended":
				return append(slices.Clone(lines), "body ended"), append(lines, "body fault")
			}
			all.Del("Transfer-Encoding")
			all.Del("Trailer")
		} else if uint64(len(b)) < length {
			return append(lines, "body ended"), nil
		} else {
			body, b = b[:length], b[length:]
		}
		said := ""
		if e := plainMembers(all, "Expect"); len(e) > 0 && !old {
			said = e[0]
		}
		connection := plainMembers(all, "Connection")
		sloppy := plainClose.MatchString(all.Get("Connection"))
		host := all.Get("Host")
		all.Del("Host")
		all.Del("Expect")
		lines = append(lines, describe(method, target, host, "HTTP/1."+m[3], said, all, body, trailers))
		is := func(word string) func(string) bool {
			return func(m string) bool { return strings.EqualFold(m, word) }
		}
		if slices.ContainsFunc(connection, is("close")) || sloppy || old && !slices.ContainsFunc(connection, is("keep-alive")) {
			return lines, nil
		}
	}
}

// plainMembers are the members of a list field.
func plainMembers(h http.Header, name string) (list []string) {
	for _, m := range strings.Split(strings.Join(h[name], ","), ",") {
		if m = strings.Trim(m, " \t"); m != "" {
			list = append(list, m)
		}
	}
	return list
}

// plainFraming judges a head as a whole and says how its body is framed.
func plainFraming(method, target string, old bool, all http.Header) (length uint64, chunked, ok bool) {
	lengths, codings, hosts := all["Content-Length"], all["Transfer-Encoding"], all["Host"]
	if len(lengths) == 1 {
		var err error
		if length, err = strconv.ParseUint(lengths[0], 10, 63); err != nil {
			return 0, false, false
		}
	}
	chunked = len(codings) == 1 && strings.EqualFold(codings[0], "chunked")
	form := plainForm.MatchString(target)
	if method == "CONNECT" {
		form = target[0] != '/' && target[0] != '*'
	}
	bad := method == "PRI" || !form || len(lengths) > 1 || len(codings) > 1 || len(codings) == 1 && !chunked ||
		chunked && (old || len(lengths) > 0) || method == "CONNECT" && (chunked || length > 0) ||
		len(hosts) > 1 || len(hosts) == 0 && !old || len(hosts) == 1 && hosts[0] == ""
	for _, e := range plainMembers(all, "Expect") {
		bad = bad || !strings.EqualFold(e, "100-continue")
	}
	for _, f := range plainMembers(all, "Trailer") {
		bad = bad || slices.Contains([]string{"trailer", "content-length", "transfer-encoding"}, strings.ToLower(f))
	}
	return length, chunked, !bad
}

// plainChunks reads a chunked body and its trailers. end is "fault", "ended"
// where the bytes run out, or empty.
func plainChunks(b string, limit int) (body string, trailers http.Header, rest, end string) {
	trailers = http.Header{}
	for excess := 0; ; {
		i := strings.Index(b, "\r\n")
		if i < 0 {
			return "", nil, "", "ended"
		}
		m := match(plainChunk, b[:i])
		if m == nil || i+2 > maxChunkLine {
			return "", nil, "", "fault"
		}
		size, err := strconv.ParseInt(m[1], 16, 64)
		if err != nil {
			return "", nil, "", "fault"
		}
		excess = max(excess+i+4-16-2*int(min(size, 1<<32)), 0)
		if excess > maxChunkExcess {
			return "", nil, "", "fault"
		}
		b = b[i+2:]
		if size == 0 {
			break
		}
		if int64(len(b)) < size+2 {
			return "", nil, "", "ended"
		}
		if b[size:size+2] != "\r\n" {
			return "", nil, "", "fault"
		}
		body, b = body+b[:size], b[size+2:]
	}
	for total := 0; ; {
		i := strings.Index(b, "\r\n")
		total += i + 2
		switch {
		case i < 0 && total-1+len(b) >= limit, i >= 0 && total > limit:
			return "", nil, "", "fault"
		case i < 0:
			return "", nil, "", "ended"
		case i == 0:
			return body, trailers, b[2:], ""
		}
		f := match(plainField, b[:i])
		if f == nil {
			return "", nil, "", "fault"
		}
		if goesAsTrailer([]byte(f[1])) {
			trailers.Add(f[1], f[2])
		}
		b = b[i+2:]
	}
}

package proxy

import (
	"net/http"
	"strconv"
)

// requestHead reads one head of a request, line by line, and writes the lines
// that net/http may see, as they are found good, behind a request line of ours.
type requestHead struct {
	scan   lineScan
	head   wireHead
	out    *wireBuffer
	begun  bool // a request line was read
	length int64

	hosts, lengths, codings int
	chunked, closes, keeps  bool // chunked; Connection: close, keep-alive
	upgrade, upgrades       bool // Upgrade; Connection: upgrade
	trailer                 bool // Trailer names a field that none may be
	cacheControl            bool
}

// read goes over the bytes of b that it has not seen, b being all that came
// since the first byte of the head, and adds good lines to h.out. It is done at
// the blank line, whose end is h.scan.at; a fault is final.
func (h *requestHead) read(b []byte, limit int, number int64) (done bool, fault *wireFault) {
	for {
		event := h.scan.next(b)
		if h.scan.at > limit || event == needMore && len(b) >= limit {
			if !h.scan.fields {
				return false, &wireFault{http.StatusRequestURITooLong, "bad_request", "The request line is over the limit for a head."}
			}
			return false, &wireFault{http.StatusRequestHeaderFieldsTooLarge, "bad_request", "The head is over the limit."}
		}
		switch event {
		case needMore:
			return false, nil
		case startLine:
			if fault := h.requestLine(b); fault != nil {
				return false, fault
			}
			h.open(h.head.Method, number)
			h.scan.advance()
		case fieldLine:
			keep, fault := h.field(b)
			if fault != nil {
				return false, fault
			}
			if keep {
				appendTo(&h.out, b[h.scan.line:h.scan.at])
			}
			h.scan.advance()
		case blankLine:
			if !h.begun && h.scan.line == 0 {
				// One empty line before a request line (RFC 9112 section 2.2).
				h.scan.advance()
				h.scan.fields = false
				continue
			}
			if !h.begun {
				return false, badHead("The request line is empty.")
			}
			if fault := h.check(); fault != nil {
				return false, fault
			}
			appendTo(&h.out, []byte("\r\n"))
			return true, nil
		default:
			if !h.begun {
				return false, badHead("The request line is malformed.")
			}
			return false, badHead("A header field is malformed.")
		}
	}
}

// open begins the head for net/http.
func (h *requestHead) open(method string, number int64) {
	appendTo(&h.out, nil)
	o := h.out
	o.b = append(append(o.b, method...), " /"...)
	o.b = strconv.AppendInt(o.b, number, 10)
	o.b = append(append(append(o.b, ' '), h.head.Proto...), "\r\nHost: egressd\r\n"...)
}

// refuse makes the head into one that carries a fault. Whatever of it was read
// well is kept for the record.
func (h *requestHead) refuse(fault *wireFault, number int64) {
	release(&h.out)
	if h.head.Proto == "" {
		h.head.Proto = "HTTP/1.1"
	}
	method := http.MethodGet
	if h.head.Method == http.MethodHead {
		method = http.MethodHead // which takes no body, not even one of ours
	}
	h.head.Fault, h.head.Expect = fault, ""
	h.open(method, number)
	appendTo(&h.out, []byte("Connection: close\r\n\r\n"))
}

// requestLine reads method SP request-target SP HTTP-version (RFC 9112 section 3).
func (h *requestHead) requestLine(b []byte) *wireFault {
	method := b[h.scan.line:h.scan.sep[0]]
	target := b[h.scan.sep[0]+1 : h.scan.sep[1]]
	h.head.Method, h.head.Target = methodName(method), string(target)
	switch version := b[h.scan.sep[1]+1 : h.scan.at-2]; string(version) {
	case "HTTP/1.1":
		h.head.Proto = "HTTP/1.1"
	case "HTTP/1.0":
		h.head.Proto = "HTTP/1.0"
	case "HTTP/2.0":
		if string(method) == "PRI" && string(target) == "*" {
			return &wireFault{http.StatusBadRequest, "protocol", "HTTP/2 is spoken here only where the handshake agreed on it."}
		}
		return badHead("The version of HTTP is not one that is spoken here.")
	default:
		return badHead("The version of HTTP is not one that is spoken here.")
	}
	h.begun = true
	switch {
	case string(method) == "PRI":
		return badHead("PRI is no method of HTTP/1.")
	case string(method) == http.MethodConnect:
		if target[0] == '/' || target[0] == '*' {
			return badHead("CONNECT takes a host and a port.")
		}
	case target[0] != '/' && !hasScheme(target):
		return badHead("The target is neither a path nor an address.")
	}
	return nil
}

// hasScheme reports whether a target is in absolute form: scheme "://" and more.
func hasScheme(target []byte) bool {
	for i, c := range target {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return i > 0 && len(target) > i+2 && string(target[i:i+3]) == "://"
		}
	}
	return false
}

// field looks at a field line. net/http does not see Host and Expect.
func (h *requestHead) field(b []byte) (keep bool, fault *wireFault) {
	name, value := h.scan.field(b)
	switch len(name) {
	case 4:
		if isWord(name, "host") {
			h.hosts++
			h.head.Host = string(value)
			return false, nil
		}
	case 6:
		if isWord(name, "expect") {
			return false, h.expect(value)
		}
	case 7:
		switch {
		case isWord(name, "upgrade"):
			h.upgrade = true
		case isWord(name, "trailer"):
			eachMember(value, func(m []byte) bool {
				h.trailer = h.trailer || isWord(m, "content-length") || isWord(m, "transfer-encoding") || isWord(m, "trailer")
				return true
			})
		}
	case 10:
		if isWord(name, "connection") {
			eachMember(value, func(m []byte) bool {
				h.closes = h.closes || isWord(m, "close")
				h.keeps = h.keeps || isWord(m, "keep-alive")
				h.upgrades = h.upgrades || isWord(m, "upgrade")
				return true
			})
		}
	case 13:
		h.cacheControl = h.cacheControl || isWord(name, "cache-control")
	case 14:
		if isWord(name, "content-length") {
			h.lengths++
			n, ok := parseLength(value)
			if !ok {
				return false, badHead("The Content-Length is no length.")
			}
			h.length = n
		}
	case 17:
		if isWord(name, "transfer-encoding") {
			h.codings++
			if !isWord(value, "chunked") {
				return false, badHead("The only transfer coding that is taken is chunked.")
			}
			h.chunked = true
		}
	}
	return true, nil
}

// expect takes 100-continue, as often as it is said, and no other expectation
// (RFC 9110 section 10.1.1).
func (h *requestHead) expect(value []byte) *wireFault {
	known := eachMember(value, func(m []byte) bool {
		if h.head.Expect == "" {
			h.head.Expect = string(m)
		}
		return isWord(m, "100-continue")
	})
	if !known {
		return &wireFault{http.StatusExpectationFailed, "bad_request", "The expectation is not one that can be met."}
	}
	return nil
}

// check looks at the head as a whole (RFC 9112 sections 3.2, 6.1, 6.3).
func (h *requestHead) check() *wireFault {
	old := h.head.Proto == "HTTP/1.0"
	connect := h.head.Method == http.MethodConnect
	switch {
	case h.hosts > 1:
		return badHead("There is more than one Host field.")
	case h.hosts == 0 && !old:
		return badHead("The Host field is missing.")
	case h.hosts == 1 && h.head.Host == "":
		return badHead("The Host field is empty.")
	case h.lengths > 1:
		return badHead("There is more than one Content-Length.")
	case h.codings > 1:
		return badHead("There is more than one Transfer-Encoding.")
	case h.lengths > 0 && h.chunked:
		return badHead("There is a Content-Length beside a Transfer-Encoding.")
	case h.chunked && old:
		return badHead("HTTP/1.0 has no transfer codings.")
	case connect && (h.chunked || h.length > 0):
		return badHead("CONNECT has no body.")
	case h.trailer:
		return badHead("Trailer names a field that frames the message.")
	}
	if old {
		h.head.Expect = ""
	}
	h.head.noCacheControl = !h.cacheControl
	return nil
}

// body is the length of the body, -1 for chunks.
func (h *requestHead) body() int64 {
	if h.chunked {
		return -1
	}
	return h.length
}

// last reports whether the connection ends with this request.
func (h *requestHead) last() bool {
	return h.closes || h.head.Proto == "HTTP/1.0" && !h.keeps
}

// switches reports whether what follows may be no HTTP.
func (h *requestHead) switches() bool {
	return h.head.Method == http.MethodConnect || h.upgrade && h.upgrades
}

// methodName is the method as a string, without an allocation for the usual.
func methodName(b []byte) string {
	switch string(b) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodHead:
		return http.MethodHead
	case http.MethodPost:
		return http.MethodPost
	case http.MethodPut:
		return http.MethodPut
	case http.MethodPatch:
		return http.MethodPatch
	case http.MethodDelete:
		return http.MethodDelete
	case http.MethodConnect:
		return http.MethodConnect
	case http.MethodOptions:
		return http.MethodOptions
	}
	return string(b)
}

// badHead is a fault in a head.
func badHead(detail string) *wireFault {
	return &wireFault{Status: http.StatusBadRequest, Reason: "bad_request", Detail: detail}
}

package redact

import (
	"net/http"
	"strconv"
	"strings"
)

// Request takes out of a request's offers what [Answer] cannot read: every
// content coding but gzip and identity, every compression of gRPC and Connect
// messages, and the extensions of a WebSocket. The values are new ones; those
// that r shares with another request stay as they are.
func Request(r *http.Request) {
	h := r.Header
	coding := "identity"
	if _, slice := h["Range"]; !slice { // a slice of a gzip cannot be decoded
		coding = acceptable(h["Accept-Encoding"])
	}
	h["Accept-Encoding"] = []string{coding}
	for _, name := range []string{"Grpc-Accept-Encoding", "Connect-Accept-Encoding"} {
		if _, ok := h[name]; ok {
			h[name] = []string{"identity"}
		}
	}
	delete(h, "Sec-Websocket-Extensions")
}

// acceptable is what is left of the members of Accept-Encoding (RFC 9110
// section 12.5.3). One of weight nought accepts nothing, and `*` would accept
// what cannot be read; neither is kept. Where nothing is left it is identity,
// since without the field an origin may choose as it likes.
func acceptable(lines []string) string {
	var kept []string
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			member = strings.Trim(member, " \t")
			coding, weight, _ := strings.Cut(member, ";")
			switch strings.ToLower(strings.Trim(coding, " \t")) {
			case "gzip", "x-gzip", "identity":
				if accepts(weight) {
					kept = append(kept, member)
				}
			}
		}
	}
	if len(kept) == 0 {
		return "identity"
	}
	return strings.Join(kept, ", ")
}

// accepts says whether a weight is well formed and above nought. None is 1.
func accepts(weight string) bool {
	weight = strings.Trim(weight, " \t")
	if weight == "" {
		return true
	}
	name, value, _ := strings.Cut(weight, "=")
	if !strings.EqualFold(strings.TrimRight(name, " \t"), "q") {
		return false
	}
	value = strings.TrimLeft(value, " \t")
	if len(value) > len("0.000") || strings.Trim(value, "0123456789.") != "" {
		return false
	}
	q, err := strconv.ParseFloat(value, 64)
	return err == nil && q > 0 && q <= 1
}

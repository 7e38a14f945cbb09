package proxy

import (
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"strings"
)

// readUpgrade settles what a request's Upgrade means, and writes its header so
// that ReverseProxy sees nothing else (RFC 9110 section 7.8). An offer of h2c
// is taken out and what is left judged as if it stood alone: nothing is an
// ordinary request, anything but websocket is refused. An Upgrade that
// Connection does not name is no upgrade; being hop-by-hop, it stays here.
func (x *exchange) readUpgrade() error {
	h := x.header
	delete(h, "Http2-Settings")
	offers, ok := h["Upgrade"]
	if !ok {
		return nil
	}
	if x.answer.h2 || x.head.proto == "HTTP/1.0" || !connectionNames(h, "upgrade") {
		delete(h, "Upgrade")
		return nil
	}
	var left []string
	for _, line := range offers {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.Trim(one, " \t"); one != "" && !strings.EqualFold(one, "h2c") {
				left = append(left, one)
			}
		}
	}
	delete(h, "Upgrade")
	if len(left) == 0 {
		return nil
	}
	if len(left) > 1 || !strings.EqualFold(left[0], "websocket") || x.head.method != http.MethodGet {
		return &denial{reason: "upgrade_not_allowed"}
	}
	keys := h["Sec-Websocket-Key"]
	if len(keys) != 1 || keys[0] == "" {
		return &denial{reason: "bad_request", detail: "A WebSocket needs one Sec-WebSocket-Key."}
	}
	h["Upgrade"] = []string{left[0]}
	x.forward.upgradeKey = keys[0]
	return nil
}

// websocketGUID is what a server mixes into the key (RFC 6455 section 1.3).
const websocketGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// believes checks that a 101 is the answer to the upgrade that was asked for.
func (f *forwarding) believes(res *http.Response) bool {
	if f.upgradeKey == "" || !connectionNames(res.Header, "upgrade") {
		return false
	}
	up, accept := res.Header["Upgrade"], res.Header["Sec-Websocket-Accept"]
	if len(up) != 1 || !strings.EqualFold(up[0], "websocket") || len(accept) != 1 {
		return false
	}
	sum := sha1.Sum([]byte(f.upgradeKey + websocketGUID))
	return accept[0] == base64.StdEncoding.EncodeToString(sum[:])
}

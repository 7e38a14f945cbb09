// Package proxy is egressd's three doors and the one pipeline behind them.
//
// A Server takes connections by ServeProxy (the explicit door: CONNECT and
// absolute-form requests) and ServeCaptured (connections that programs dialled
// themselves, whose local address is what they dialled). A tunnel's first bytes
// are looked at, its TLS is ended with a certificate of the session's Issuer,
// and every request inside, HTTP/1 or HTTP/2, comes to the same handler:
//
//	door.go       CONNECT, the proxy's token
//	tunnel.go     peek, TLS, ALPN; splice.go carries what is not looked into
//	wire.go       HTTP/1 heads and framing, before net/http sees them
//	judge.go      what is asked for, the rules, the limits; authority.go: do all
//	              authorities agree
//	forward.go    what goes on and what stays here; straight.go: ordinary requests;
//	              upgrades by httputil.ReverseProxy, and what it must not do
//	broker.go     the broker's place: secrets attached and guarded, answers scanned
//	transport.go  the ways to an origin; originwire.go checks what it answers
//	denial.go     problem documents (RFC 9457) with Proxy-Status (RFC 9209)
//	record.go     the one record of each request; live.go: what runs, and how it
//	              is broken off when the policy changes
//
// What decides, resolves, issues and records is handed in, as interfaces of
// basic types: Rules, Broker, Policy.Dial, Issuer, Names, audit.Sink. They change
// together: a Policy is one immutable value behind one atomic pointer, a request
// takes it once, and SetPolicy swaps it and ends what it no longer allows.
//
// The zero Policy refuses everything, and nothing is sent upstream before room
// for its record is held. No text of a client or an origin is quoted in an
// answer, an error or the log.
package proxy

package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"time"
)

// expectContinue is how long an origin may leave a client's 100-continue
// without a word before the body is asked for and sent.
const expectContinue = time.Second

// maxAnswerHead bounds the head of an origin's answer, in bytes.
const maxAnswerHead = 1 << 20

// An origin that speaks only the other protocol.
var (
	errNoHTTP1 = &denial{reason: "upstream_tls", detail: "The origin does not speak HTTP/1.1."}
	errNoHTTP2 = &denial{reason: "upstream_tls", detail: "The origin does not speak HTTP/2."}
)

// handshakeError says in our own words what was wrong with an origin's TLS.
func handshakeError(err error, http1 bool) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" && op.Err != nil && op.Err.Error() == "tls: no application protocol" {
		if http1 {
			return errNoHTTP1
		}
		return errNoHTTP2
	}
	d := &denial{reason: "upstream_tls"}
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		d.detail = "The origin's certificate has expired or is not valid yet."
	case errors.As(err, &unknown):
		d.detail = "The origin's certificate is not signed by a known authority."
	case errors.As(err, &name):
		d.detail = "The origin's certificate is for another name."
	case errors.As(err, &invalid):
		d.detail = "The origin's certificate is not valid."
	case errors.As(err, &record):
		d.detail = "The origin does not speak TLS on this port."
	}
	return d
}

// upstreamDenial maps what failed on the origin's side to a reason. The text is
// never the error's own, which may quote the origin.
func upstreamDenial(err error) *denial {
	var d *denial
	if errors.As(err, &d) {
		return d
	}
	var reason interface{ Reason() string }
	if errors.As(err, &reason) {
		return refusalOf(err)
	}
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return &denial{reason: "timeout"}
	}
	return &denial{reason: "upstream_reset"}
}

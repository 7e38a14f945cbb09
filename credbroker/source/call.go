package source

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"
)

// callError says in our own words why a call of the broker's own did not get an
// answer. What net/http says may quote what the other side sent, which may be an
// echo of what was sent to it.
func callError(err error) error {
	var (
		authority x509.UnknownAuthorityError
		verify    *tls.CertificateVerificationError
		name      *net.DNSError
		reason    interface{ Reason() string }
		late      net.Error
	)
	switch {
	case errors.As(err, &authority):
		return errors.New("its certificate is not signed by a known authority (see upstream.ca_files)")
	case errors.As(err, &verify):
		return errors.New("its certificate is not good")
	case errors.As(err, &name):
		return errors.New("its name was not found")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("it refused the connection")
	case errors.As(err, &reason):
		return errors.New("the call was refused: " + reason.Reason())
	case errors.As(err, &late) && late.Timeout():
		return errLate
	}
	return errors.New("there was no connection, or no answer")
}

package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// errBadHost is what every refusal of CanonicalHost wraps.
var errBadHost = errors.New("no host name or address that could be judged")

// CanonicalHost is the one form that every spelling of a host is compared in:
// a name in lower case without its trailing dot, names in other letters in
// their ASCII form (RFC 5891, Lookup profile), IPv4 as a dotted quad, IPv6 as
// RFC 5952 writes it and without the brackets that it must come in. What could
// be read in two ways is refused, never guessed at: the error's Reason is
// bad_host.
func CanonicalHost(host string) (string, error) {
	if plainHost(host) {
		return host, nil
	}
	name, problem := canonical(host)
	if problem != "" {
		return "", &Denial{reason: "bad_host", text: fmt.Sprintf("reading host %q: %s", clip(host), problem), err: errBadHost}
	}
	return name, nil
}

// canonical is CanonicalHost with a problem in words, "" for none.
func canonical(host string) (name, problem string) {
	if host == "" {
		return "", "it is empty"
	}
	if len(host) > 1024 {
		return "", "it is too long"
	}
	if host[0] == '[' {
		return canonicalIPv6(host)
	}
	ascii, converted := true, false
	for i := 0; i < len(host); i++ {
		c := host[i]
		switch {
		case c >= 0x80:
			ascii = false
		case c <= ' ' || c == 0x7F:
			return "", "a space or control byte is no part of a host"
		case c == '%':
			return "", "a percent sign is no part of a host"
		case c == '@':
			return "", "a user name does not belong in a host"
		}
	}
	name = host
	if !ascii || hasACELabel(host) {
		// The tables of x/net/idna decide here and nowhere else. What they make must
		// stay as it is when it is asked about again, else it is two names.
		var err error
		if !utf8.ValidString(host) {
			return "", "it is no UTF-8"
		}
		if name, err = idna.Lookup.ToASCII(host); err != nil {
			return "", "it is no internationalised name (RFC 5891)"
		}
		if again, err := idna.Lookup.ToASCII(name); err != nil || again != name {
			return "", "it is no internationalised name (RFC 5891)"
		}
		converted = true
	}
	name = strings.ToLower(name)
	trimmed := strings.TrimSuffix(name, ".")
	if problem := checkName(trimmed); problem != "" {
		return "", problem
	}
	if endsInNumber(trimmed) {
		// 127。0。0。1 becomes a fine dotted quad, and "1.2.3.4." is one to some
		// resolvers only: an address counts only as it was written.
		if a, err := netip.ParseAddr(trimmed); err != nil || !a.Is4() || !ascii || converted || len(trimmed) != len(host) {
			return "", "an address is written as four decimal numbers"
		}
	}
	return trimmed, ""
}

// canonicalIPv6 reads an address in brackets (RFC 3986 3.2.2), without a zone.
func canonicalIPv6(host string) (name, problem string) {
	if host[len(host)-1] != ']' {
		return "", "a bracket is not closed"
	}
	a, err := netip.ParseAddr(host[1 : len(host)-1])
	if err != nil || !a.Is6() || a.Zone() != "" {
		return "", "brackets hold an IPv6 address without a zone"
	}
	return a.String(), ""
}

// checkName holds a lower-case name against the letters and lengths that every
// resolver agrees about.
func checkName(name string) (problem string) {
	if len(name) > 253 {
		return "a name has 253 letters at most"
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			if !hostByte[name[i]] {
				return "a name is letters, digits, hyphens, underscores and dots"
			}
			continue
		}
		if n := i - start; n < 1 || n > 63 {
			return "a label has 1 to 63 letters"
		}
		start = i + 1
	}
	return ""
}

// hostByte marks what a canonical name is made of, dots aside.
var hostByte = byteSet("abcdefghijklmnopqrstuvwxyz0123456789-_")

// plainHost says that a host is a canonical name beyond doubt; it is the way of
// nearly every request, and allocates nothing.
func plainHost(host string) bool {
	return len(host) > 0 && checkName(host) == "" && !hasACELabel(host) && !endsInNumber(host)
}

// hasACELabel says whether a label begins with "xn--" in any case.
func hasACELabel(host string) bool {
	for i := 0; i+4 <= len(host); i++ {
		if (i == 0 || host[i-1] == '.') && host[i]|0x20 == 'x' && host[i+1]|0x20 == 'n' && host[i+2] == '-' && host[i+3] == '-' {
			return true
		}
	}
	return false
}

// endsInNumber says whether the last label of a lower-case name is a decimal or
// hexadecimal number: resolvers read such a host as an address, in many ways.
func endsInNumber(name string) bool {
	label := name[strings.LastIndexByte(name, '.')+1:]
	digits := "0123456789"
	if strings.HasPrefix(label, "0x") {
		label, digits = label[2:], "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

// byteSet is a table of the bytes of s.
func byteSet(s string) (set [256]bool) {
	for i := 0; i < len(s); i++ {
		set[s[i]] = true
	}
	return set
}

// clip shortens text that came from outside, for messages.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

package netguard

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Allow is egress_allow_private_destinations: what the operator opens of the
// addresses that are not public. The zero value opens nothing.
type Allow struct {
	// All opens everything but the classes that stay shut unless named.
	All bool
	// Prefixes are ranges and single addresses. Only a prefix of full length
	// names an address, and so opens one that a range leaves shut.
	Prefixes []netip.Prefix
	// Hosts are canonical names; for each, what All would open is open.
	Hosts []string
}

// ParseAllow reads the entries of a list: a CIDR range, an address, or a host
// name, without wildcards. The error is an *EntryError for the first bad entry.
func ParseAllow(list []string) (Allow, error) {
	var a Allow
	for i, s := range list {
		if prefix, ok, err := parsePrefix(s); err != nil {
			return Allow{}, &EntryError{Index: i, Text: s, Problem: err.Error()}
		} else if ok {
			a.Prefixes = append(a.Prefixes, prefix)
			continue
		}
		host, err := parseHost(s)
		if err != nil {
			return Allow{}, &EntryError{Index: i, Text: s, Problem: err.Error()}
		}
		a.Hosts = append(a.Hosts, host)
	}
	return a, nil
}

// EntryError tells which entry of a list is wrong, counted from 0, and why.
type EntryError struct {
	Index         int
	Text, Problem string
}

// Error names the entry and its problem.
func (e *EntryError) Error() string {
	return fmt.Sprintf("reading private destination %q: %s", e.Text, e.Problem)
}

// parsePrefix reads a range or an address; ok is false for what looks like
// neither, so that it may be a host.
func parsePrefix(s string) (prefix netip.Prefix, ok bool, err error) {
	if strings.Contains(s, "/") {
		prefix, err = netip.ParsePrefix(s)
		if err != nil {
			return prefix, false, fmt.Errorf("neither a range such as 10.1.0.0/16 nor a host")
		}
		if a := prefix.Addr(); a.Is4In6() {
			if prefix.Bits() < 96 {
				return prefix, false, fmt.Errorf("a range of mapped addresses is at least /96")
			}
			prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
		}
		if prefix != prefix.Masked() {
			// 10.1.2.3/16 may have been meant for one address or for the range.
			return prefix, false, fmt.Errorf("bits are set behind the prefix: write %s or the address alone", prefix.Masked())
		}
		return prefix, true, nil
	}
	addr, parseErr := netip.ParseAddr(s)
	if parseErr != nil {
		if strings.Contains(s, ":") {
			return prefix, false, fmt.Errorf("no address; a port is not part of an entry")
		}
		return prefix, false, nil
	}
	if addr.Zone() != "" {
		return prefix, false, fmt.Errorf("a zone is not part of an entry")
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, addr.BitLen()), true, nil
}

// parseHost reads an ASCII host name (RFC 1123, 2.1, and the underscore that
// service names use). One whose last label is a number is an odd spelling of an
// address (127.1, 0x7f.1), which some resolvers would take for it.
func parseHost(s string) (string, error) {
	host := canonicalHost(s)
	if host == "" || len(host) > 253 {
		return "", fmt.Errorf("no host name")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", fmt.Errorf("no host name")
		}
		if strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", fmt.Errorf("no host name: an entry is an address, a range, or a name in ASCII without wildcards")
		}
	}
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", fmt.Errorf("an odd spelling of an address")
	}
	return host, nil
}

// opens says whether the list opens the plain address a, of class c, for host.
func (l Allow) opens(host string, a netip.Addr, c Class) bool {
	for _, prefix := range l.Prefixes {
		if prefix.Contains(a) && (prefix.IsSingleIP() || !c.shut()) {
			return true
		}
	}
	return !c.shut() && (l.All || slices.Contains(l.Hosts, canonicalHost(host)))
}

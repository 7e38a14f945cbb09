package rules

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// target reads [ scheme "://" ] host [ ":" port ] [ path ], which begins at
// this offset of the rule's text.
func (p *parser) target(target string, at int) error {
	r := &p.rule
	authority, path := target, ""
	if i := strings.IndexByte(target, '/'); i >= 0 {
		authority, path = target[:i], target[i:]
	}
	if strings.HasSuffix(authority, ":") && strings.HasPrefix(path, "//") {
		scheme := strings.ToLower(strings.TrimSuffix(authority, ":"))
		if scheme != "http" && scheme != "https" || r.Tunnel {
			problem := "a target is http:// or https://, or has no scheme"
			if r.Tunnel {
				problem = "a tunnel is HOST:PORT, whatever is spoken in it"
			}
			e := fault("bad_scheme", problem)
			switch {
			case r.Tunnel:
				e.Suggest = p.instead(at, target[:len(authority)+2], "")
			case scheme == "ws" || scheme == "wss":
				e.Suggest = p.instead(at, authority, "http"+strings.TrimPrefix(scheme, "ws")+":")
			}
			return p.at(e, at, target[:len(authority)+2])
		}
		r.Scheme = scheme
		skip := len(authority) + 2
		target, at = target[skip:], at+skip
		authority, path = target, ""
		if i := strings.IndexByte(target, '/'); i >= 0 {
			authority, path = target[:i], target[i:]
		}
	}
	host, port, hasPort, err := p.split(authority, at)
	if err != nil {
		return err
	}
	if err := p.host(host, at); err != nil {
		return err
	}
	if r.Tunnel {
		return p.tunnel(host, port, hasPort, path, at)
	}
	if hasPort {
		if err := p.port(port, at+len(authority)-len(port)); err != nil {
			return err
		}
	}
	if path == "" {
		r.Path = "/**"
		return nil
	}
	return p.path(path, at+len(authority))
}

// tunnel reads what a CONNECT rule has behind its host: a port and no more.
func (p *parser) tunnel(host, port string, hasPort bool, path string, at int) error {
	after := at + len(host)
	switch {
	case p.rule.Host == "*":
		return p.at(fault("host_wildcard", "a tunnel names its host, or a domain as *.example.com"), at, host)
	case path != "":
		start := after
		if hasPort {
			start += 1 + len(port)
		}
		e := fault("connect_path", "a tunnel is not looked into, so it has no path")
		e.Suggest = p.instead(start, path, "")
		return p.at(e, start, path)
	case !hasPort || port == "*":
		return p.at(fault("connect_port", "a tunnel names its port, such as db.example.com:5432"), after, host)
	}
	return p.port(port, after+1)
}

// split parts an authority into host and port.
func (p *parser) split(authority string, at int) (host, port string, hasPort bool, err error) {
	bad := func(problem, suggest string) error {
		e := fault("bad_host", problem)
		if suggest != "" {
			e.Suggest = p.instead(at, authority, suggest)
		}
		return p.at(e, at, authority)
	}
	switch {
	case authority == "":
		return "", "", false, p.at(fault("bad_host", "a target begins with a host"), at, "")
	case strings.Contains(authority, "@"):
		return "", "", false, bad("a user name does not belong in a target", authority[strings.LastIndexByte(authority, '@')+1:])
	case authority[0] == '[':
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", "", false, bad("a bracket is not closed", authority+"]")
		}
		host, port = authority[:end+1], authority[end+1:]
		if port != "" && port[0] != ':' {
			return "", "", false, bad("only a port may follow an address in brackets", "")
		}
		if port == "" {
			return host, "", false, nil
		}
		return host, port[1:], true, nil
	case strings.ContainsAny(authority, "[]"):
		return "", "", false, bad("brackets hold an IPv6 address and nothing stands before them", "")
	}
	if a, e := netip.ParseAddr(authority); e == nil && a.Is6() {
		return "", "", false, bad("an IPv6 address is written in brackets", "["+authority+"]")
	}
	host, port, hasPort = strings.Cut(authority, ":")
	return host, port, hasPort, nil
}

// host reads a host with its wildcard.
func (p *parser) host(host string, at int) error {
	if host == "*" {
		p.rule.Host = "*"
		return nil
	}
	name, wild := strings.CutPrefix(host, "*.")
	if strings.Contains(name, "*") || wild && name == "" {
		e := fault("host_wildcard", "a wildcard is the whole first label, as in *.example.com, or the whole host")
		if rest := strings.TrimLeft(host, "*."); rest != "" && !strings.Contains(rest, "*") {
			e.Suggest = p.instead(at, host, "*."+rest)
		}
		return p.at(e, at, host)
	}
	canon, problem := canonical(name)
	if problem == "" && wild {
		if _, err := netip.ParseAddr(canon); err == nil {
			problem = "an address has no names below it"
		}
	}
	if problem != "" {
		e := fault("bad_host", problem)
		if rest := strings.TrimLeft(host, "."); rest != host && !wild {
			e.Suggest = p.instead(at, host, "*."+rest)
		}
		return p.at(e, at, host)
	}
	if wild {
		canon = "*." + canon
	}
	p.rule.Host = canon
	return nil
}

// port reads 1*5DIGIT or a star.
func (p *parser) port(port string, at int) error {
	if port == "*" {
		p.rule.Port = AnyPort
		return nil
	}
	n, err := strconv.Atoi(port)
	if err != nil || len(port) > 5 || strings.Trim(port, "0123456789") != "" || n < 1 || n > 65535 {
		return p.at(fault("bad_port", "a port is a number from 1 to 65535, or *"), at, port)
	}
	p.rule.Port = n
	return nil
}

// path checks a path pattern. A pattern that no request could have is refused:
// it would be a rule that only seems to say something.
func (p *parser) path(path string, at int) error {
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '%' && !isEscape(path[i:]):
			e := fault("bad_escape", "a percent sign is followed by two hex digits; the sign itself is %25")
			e.Suggest = p.instead(at+i, "%", "%25")
			return p.at(e, at+i, path[i:min(len(path), i+3)])
		case c < 0x20 || c >= 0x7F || strings.IndexByte(`?#[]{}\`, c) >= 0:
			e := fault("bad_path_char", "it is written percent-encoded in a path, and a query is no part of one")
			if strings.IndexByte("?#", c) >= 0 {
				e.Suggest = p.instead(at+i, path[i:], "")
			} else {
				e.Suggest = p.instead(at, path, escaped(path))
			}
			return p.at(e, at+i, path[i:min(len(path), i+1)])
		}
	}
	pos := at
	for seg := range strings.SplitSeq(path, "/") {
		if strings.Contains(seg, "**") && seg != "**" {
			e := fault("glued_stars", "** is a whole segment; inside one a single * stands for any text")
			return p.at(e, pos, seg)
		}
		pos += len(seg) + 1
	}
	if kind, problem := checkPattern(path); kind != "" {
		return p.at(fault(kind, problem), at, path)
	}
	p.rule.Path = path
	return nil
}

// checkPattern holds the readings of a pattern against what is refused in a
// request.
func checkPattern(path string) (kind, problem string) {
	switch _, why := expand(path); why {
	case "":
		return "", ""
	case ambiguousDots:
		return "dot_segment", "no request has a path with a dot segment in any reading"
	default:
		return "bad_escape", "no request has such a path: " + why
	}
}

// escaped writes the bytes percent-encoded that a rule's path must not hold.
func escaped(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if c := path[i]; c <= 0x20 || c >= 0x7F || strings.IndexByte(`[]{}\`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

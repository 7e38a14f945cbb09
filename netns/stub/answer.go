//go:build linux

package stub

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// How long a client may keep an answer, in seconds. The shared address is for
// the moment: a reload, a grant or an approval may give the name its own.
const (
	ttlGiven  = 60
	ttlShared = 1
)

// Response codes and types that dnsmessage does not name.
const (
	rcodeBadVersion = 16 // RFC 6891, 9
	typeSVCB        = 64 // RFC 9460, 14.1
	typeHTTPS       = 65
)

// udpSize is what we say we take in a datagram (RFC 9715, 3). No answer of ours
// is over 512 bytes, so nothing is ever truncated.
const udpSize = 1232

// question is a message that was read.
type question struct {
	header dnsmessage.Header
	one    dnsmessage.Question
	edns   bool
	rcode  dnsmessage.RCode // what is wrong with it, RCodeSuccess if nothing
}

// read parses a message. Ok is false for one that must not be answered: too
// short to have a header, or an answer itself (two servers would talk for ever).
func read(msg []byte) (q question, ok bool) {
	var p dnsmessage.Parser
	var err error
	if q.header, err = p.Start(msg); err != nil || q.header.Response {
		return q, false
	}
	if q.header.OpCode != 0 {
		q.rcode = dnsmessage.RCodeNotImplemented
		return q, true
	}
	if q.one, q.edns, err = readBody(&p); err != nil {
		q.rcode = dnsmessage.RCodeFormatError
		if err == errVersion {
			q.rcode = rcodeBadVersion
		}
	}
	return q, true
}

var (
	errForm    = fmt.Errorf("reading a question: malformed")
	errVersion = fmt.Errorf("reading a question: unknown version of EDNS")
)

// readBody reads the one question (RFC 9619) and looks for EDNS.
func readBody(p *dnsmessage.Parser) (q dnsmessage.Question, edns bool, err error) {
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return q, false, errForm
	}
	q = questions[0]
	if err := p.SkipAllAnswers(); err != nil {
		return q, false, errForm
	}
	if err := p.SkipAllAuthorities(); err != nil {
		return q, false, errForm
	}
	for {
		h, err := p.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			return q, edns, nil
		}
		if err != nil {
			return q, false, errForm
		}
		if h.Type == dnsmessage.TypeOPT {
			if edns || h.Name.String() != "." { // RFC 6891, 6.1.1
				return q, false, errForm
			}
			edns = true
			if version := byte(h.TTL >> 16); version != 0 {
				return q, true, errVersion
			}
		}
		if err := p.SkipAdditional(); err != nil {
			return q, false, errForm
		}
	}
}

// answer makes the reply to a message, nil for none.
func (s *Server) answer(msg []byte) []byte {
	q, ok := read(msg)
	if !ok {
		return nil
	}
	if q.rcode != dnsmessage.RCodeSuccess {
		return reply(q, netip.Addr{}, 0)
	}
	addr, ttl, verdict, err := s.resolve(q.one)
	if verdict == Failed {
		q.rcode = dnsmessage.RCodeServerFailure
	}
	if s.config.Event != nil {
		name, qtype := presentation(q.one.Name), typeName(q.one.Type)
		if s.seen.first(name, qtype, verdict == Failed) {
			s.config.Event(name, qtype, verdict, err)
		}
	}
	return reply(q, addr, ttl)
}

// resolve finds the address for a question, the zero Addr for none.
func (s *Server) resolve(q dnsmessage.Question) (addr netip.Addr, ttl uint32, verdict string, err error) {
	v6 := q.Type == dnsmessage.TypeAAAA
	if q.Class != dnsmessage.ClassINET || q.Type != dnsmessage.TypeA && !v6 || v6 && !s.config.IPv6.IsValid() {
		return netip.Addr{}, 0, Empty, nil
	}
	host := canonical(q.Name)
	switch {
	case host == "":
		return netip.Addr{}, 0, Empty, nil // the root is no host
	case host == "localhost" || strings.HasSuffix(host, ".localhost"): // RFC 6761, 6.3
		return pick(v6, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()), ttlGiven, Local, nil
	case !isHost(host) || s.config.Knows == nil || !s.config.Knows(host):
		return pick(v6, SharedAddr4(), SharedAddr6(s.config.IPv6)), ttlShared, Shared, nil
	}
	addr4, addr6, ok := s.table.give(host)
	if !ok {
		return netip.Addr{}, 0, Failed, errUsedUp
	}
	if s.config.Open != nil {
		if err := s.config.Open(host, addr4, addr6); err != nil {
			return netip.Addr{}, 0, Failed, err
		}
	}
	return pick(v6, addr4, addr6), ttlGiven, Given, nil
}

func pick(v6 bool, addr4, addr6 netip.Addr) netip.Addr {
	if v6 {
		return addr6
	}
	return addr4
}

// reply writes an answer: the question as it was asked, letter case too, and an
// address if there is one. It is authoritative, and claims recursion, without
// which some clients go on to ask others.
func reply(q question, addr netip.Addr, ttl uint32) []byte {
	h := dnsmessage.Header{
		ID:                 q.header.ID,
		Response:           true,
		OpCode:             q.header.OpCode,
		Authoritative:      true,
		RecursionDesired:   q.header.RecursionDesired,
		RecursionAvailable: true,
		CheckingDisabled:   q.header.CheckingDisabled,
		RCode:              q.rcode & 0xf,
	}
	m := dnsmessage.Message{Header: h}
	if q.one.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{q.one}
	}
	rh := dnsmessage.ResourceHeader{Name: q.one.Name, Class: dnsmessage.ClassINET, TTL: ttl}
	switch {
	case addr.Is4():
		rh.Type = dnsmessage.TypeA
		m.Answers = []dnsmessage.Resource{{Header: rh, Body: &dnsmessage.AResource{A: addr.As4()}}}
	case addr.Is6():
		rh.Type = dnsmessage.TypeAAAA
		m.Answers = []dnsmessage.Resource{{Header: rh, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}}}
	}
	if q.edns {
		var opt dnsmessage.ResourceHeader
		if err := opt.SetEDNS0(udpSize, q.rcode, false); err == nil {
			m.Additionals = []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}}
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil // a name that was read and cannot be written: none such is known
	}
	return out
}

// canonical is the name as rules have it: lower case, without the last dot.
func canonical(n dnsmessage.Name) string {
	return strings.TrimSuffix(lower(n.String()), ".")
}

// lower folds ASCII alone (RFC 4343): other bytes are no letters in DNS.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// isHost says whether a name can be a host's: letters, digits, hyphens and
// underscores, and no address written as a name.
func isHost(host string) bool {
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Trim(last, "0123456789") != ""
}

// presentation writes a name so that it can be read and recorded: bytes that
// are not printable ASCII, and the backslash, as \DDD.
func presentation(n dnsmessage.Name) string {
	name := n.String()
	if len(name) > 1 {
		name = strings.TrimSuffix(name, ".")
	}
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case c <= ' ' || c >= 0x7f || c == '\\' || c == '"':
			fmt.Fprintf(&b, `\%03d`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func typeName(t dnsmessage.Type) string {
	switch t {
	case typeSVCB:
		return "SVCB"
	case typeHTTPS:
		return "HTTPS"
	case dnsmessage.TypeALL:
		return "ANY"
	}
	if name, ok := strings.CutPrefix(t.String(), "Type"); ok {
		return name
	}
	return fmt.Sprintf("TYPE%d", uint16(t))
}

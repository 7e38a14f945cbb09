package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/egressd/egressd/rules"
)

// loopback says that a rule's host is what each machine calls itself. A sandbox
// is a machine of its own in this: what stands there is not the host's.
func loopback(host string) bool {
	host = strings.TrimPrefix(host, "*.")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// noteLoopback remarks on allow rules for the sandbox itself. They are no
// mistake where the proxy is asked outright, but mostly a service of the host
// is meant.
func (d *doc) noteLoopback(e *Environment) {
	for i, r := range e.Rules {
		if r.Deny || !loopback(r.Host) {
			continue
		}
		port := "PORT"
		if r.Port != 0 && r.Port != rules.AnyPort {
			port = fmt.Sprint(r.Port)
		}
		at := e.RulePos[i]
		d.notes = append(d.notes, Problem{File: at.File, Line: at.Line, Col: at.Col, Kind: NoteLoopback, Warning: true, Text: fmt.Sprintf(
			"inside the sandbox %s is the sandbox's own: a service of the host is reached by upstream.resolve {\"NAME:%s\": \"127.0.0.1:%s\"} and a rule for NAME", r.Host, port, port)})
	}
}

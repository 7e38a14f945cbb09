package main

import (
	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/rules"
)

// attached is the credential that would go with a request.
func attached(p *policy.Policy, req rules.Request) string {
	host, err := rules.New(nil).Canonical(req.Host)
	if err != nil {
		return ""
	}
	return credbroker.Attached(p.Credentials, req.Method, req.Scheme, host, req.Port, req.Target)
}

// inPlain is the credential that has a request over plain http refused: one that
// would be attached if it were https, on whatever port.
func inPlain(p *policy.Policy, req rules.Request) string {
	if req.Scheme != "http" {
		return ""
	}
	for _, c := range p.Credentials {
		for _, t := range c.Targets {
			req.Scheme, req.Port = "https", t.Port
			if c.Type != credbroker.AWSSigV4 && attached(p, req) == c.ID { // whose unsigned requests pass
				return c.ID
			}
		}
	}
	return ""
}

package main

import (
	"fmt"
	"net"
	"os"

	"github.com/egressd/egressd/metrics"
	"github.com/egressd/egressd/policy"
)

// openMetrics begins to serve the numbers of the record where the policy wants
// it. Inside the sandbox the address is the sandbox's own or, by the proxy,
// refused as one of the host's.
func (s *session) openMetrics(p *policy.Policy) error {
	if p.Metrics.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", p.Metrics.Listen)
	if err != nil {
		return fmt.Errorf("opening metrics.listen: %w", err)
	}
	s.counts = metrics.New(version())
	s.knowCredentials(p)
	s.metrics = metrics.Serve(l, s.counts)
	return nil
}

func (s *session) closeMetrics() error {
	if s.metrics == nil {
		return nil
	}
	return s.metrics.Close()
}

// remeter is told of a new policy, s.mu held.
func (s *session) remeter(p *policy.Policy) {
	if p.Metrics.Listen != s.now.policy.Metrics.Listen {
		fmt.Fprint(os.Stderr, "egressd: metrics.listen is taken at the start: the new one counts from the next\r\n")
	}
	if s.counts != nil {
		s.knowCredentials(p)
	}
}

func (s *session) knowCredentials(p *policy.Policy) {
	ids := make([]string, 0, len(p.Credentials))
	for _, e := range p.Credentials {
		ids = append(ids, e.ID)
	}
	s.counts.Know(ids...)
}

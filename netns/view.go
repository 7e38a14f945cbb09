package netns

import "github.com/egressd/egressd/netns/mount"

// View is what a sandbox of cfg would see, without one being made, and lines
// for the operator about what it would not.
func View(cfg Config) (mount.Plan, []string, error) {
	if err := cfg.check(); err != nil {
		return mount.Plan{}, nil, err
	}
	s := &Session{cfg: cfg}
	var err error
	if s.id, err = whoRuns(cfg.Cwd, cfg.Invoker); err != nil {
		return mount.Plan{}, nil, err
	}
	if err := s.makePlan(); err != nil {
		return mount.Plan{}, nil, err
	}
	return s.plan, s.Notes(), nil
}


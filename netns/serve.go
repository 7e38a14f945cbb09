//go:build linux

package netns

import "context"

// openDoors opens what is opened from outside: in the fallback the explicit
// listener, else the addresses that rules name; and has questions answered.
func (s *Session) openDoors(ctx context.Context) error {
	var err error
	if s.explicit {
		s.doors.explicit, err = s.listen(ctx, explicitAddr)
	}
	if err != nil || !s.Transparent() {
		return err
	}
	if s.server == nil {
		if err = s.serveNames(); err != nil {
			return err
		}
	}
	return s.server.setNames(s.cfg.Names)
}

func (s *Session) serveNames() (err error) {
	if s.server, err = newNameServer(s); err == nil {
		s.server.serve(&s.doors)
	}
	return err
}

// serveEarly answers questions and has the listeners served while bwrap builds
// the view and the launcher starts.
func (s *Session) serveEarly(ctx context.Context) error {
	if s.cfg.Early == nil || !s.Transparent() {
		return nil
	}
	if err := s.serveNames(); err != nil {
		return err
	}
	s.early = make(chan error, 1)
	go func(early chan<- error) { early <- s.cfg.Early(ctx, s) }(s.early)
	return nil
}

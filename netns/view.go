package netns

import "github.com/egressd/egressd/netns/mount"

// A View is what a sandbox would see of the host's files.
type View struct {
	Plan  mount.Plan
	Notes []string // lines for the operator about what would not be shown
	// UID and GID are whom the files of the host would be read and written as. A
	// sandbox with a uid of its own has its mounts mapped, and so is whoever made
	// it.
	UID, GID int
}

// Look is the view of a sandbox of cfg, without one being made.
func Look(cfg Config) (View, error) {
	if err := cfg.check(); err != nil {
		return View{}, err
	}
	s := &Session{cfg: cfg}
	var err error
	var v View
	if v.UID, v.GID, err = s.whoReads(); err != nil {
		return View{}, err
	}
	if err := s.makePlan(); err != nil {
		return View{}, err
	}
	v.Plan, v.Notes = s.plan, s.Notes()
	return v, nil
}

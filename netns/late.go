//go:build linux

package netns

import (
	"fmt"
	"time"
)

// finishMounts has the keeper make what bwrap would be too slow with. The
// launcher is there, and runs nothing yet.
func (s *Session) finishMounts() error {
	c := s.chain.keeper
	if c == nil || !s.plan.HasLate() {
		return nil // the fallback has made all
	}
	if err := c.c.SetDeadline(time.Now().Add(startTime)); err != nil {
		return fmt.Errorf("waiting for the keeper: %w", err)
	}
	if err := c.send(message{Kind: kindLate}); err != nil {
		return fmt.Errorf("asking the keeper: %w", err)
	}
	m, files, err := c.receive()
	closeFiles(files)
	switch {
	case err != nil:
		return fmt.Errorf("waiting for the keeper: %w", err)
	case m.Error != "":
		return fmt.Errorf("setting up the sandbox: %s", m.Error)
	}
	return c.c.SetDeadline(time.Time{})
}

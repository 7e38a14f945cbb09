package netns

import (
	"context"
	"errors"
)

// startFallback lets bwrap make every namespace, where the host lets nobody
// else. Nothing is captured then: only the explicit listener is opened.
func (s *Session) startFallback(ctx context.Context) error {
	return errors.New("fallback")
}

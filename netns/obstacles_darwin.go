package netns

// Obstacles names what on this host keeps users from making sandboxes: a profile
// asks for no right that a user of macOS lacks.
func Obstacles() []string { return nil }

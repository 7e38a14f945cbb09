package policy

// spot is a place in the file that is being read.
type spot struct{ line, col int }

func (s spot) after(o spot) bool { return s.line > o.line || s.line == o.line && s.col > o.col }

// places are where the keys of an environment stand that cross checks name.
type places struct {
	sandbox, rules, credentials, network, scratch, fork spot
	// writable are the grants that may be written to, spelled out as the file
	// has them, and reads the others, with their places.
	writable, reads []grant
	masks           []string
	passed          []grant
	// entries are the places of credentials.
	entries []entryPlace
}

// grant is a path or name and where it stands.
type grant struct {
	text string
	at   spot
}

// entryPlace is where an entry and its targets stand, the variables that its
// sources name, and those that hold its placeholder.
type entryPlace struct {
	at      spot
	targets []spot
	secrets []string
	env     []grant
}

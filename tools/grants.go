package tools

import (
	"fmt"
	"slices"
)

// Grants says which tools there are, as the section tools of a policy does. The
// zero Grants grants none.
type Grants struct {
	// Preset is readonly (file_read, grep, glob), readwrite (those, file_write
	// and file_edit), full (all) or empty.
	Preset string
	// Allow adds tools to the preset, Deny takes them away, whoever granted
	// them.
	Allow, Deny []string
}

var presets = map[string][]string{
	"":          nil,
	"readonly":  {"file_read", "grep", "glob"},
	"readwrite": {"file_read", "grep", "glob", "file_write", "file_edit"},
	"full":      {"file_read", "grep", "glob", "file_write", "file_edit", "shell"},
}

// set is the names that are granted.
func (g Grants) set() (map[string]bool, error) {
	names, ok := presets[g.Preset]
	if !ok {
		return nil, fmt.Errorf("%q is no preset of tools: readonly, readwrite, full", g.Preset)
	}
	out := map[string]bool{}
	for _, name := range slices.Concat(names, g.Allow) {
		out[name] = true
	}
	for _, name := range slices.Concat(g.Allow, g.Deny) {
		if find(name) == nil {
			return nil, fmt.Errorf("%q is no tool", name)
		}
	}
	for _, name := range g.Deny {
		delete(out, name)
	}
	return out, nil
}

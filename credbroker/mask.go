package credbroker

import (
	"slices"
	"strings"
)

// masked stands in records where a placeholder or a secret stood.
const masked = "[credential]"

// cleanRounds says that nothing is to be found in s, escaped or not.
func (f *finder) cleanRounds(s string) bool {
	for range 4 {
		if !f.clean(s) {
			return false
		}
		next := decodeOnce(s)
		if next == s {
			return true
		}
		s = next
	}
	return true
}

// Mask is text, a part of a request's head, as it may be recorded: placeholders
// and secrets in it are written [credential], escaped ones too.
func (b *Broker) Mask(text string) string {
	f := b.finder()
	if f.cleanRounds(text) {
		return text
	}
	var finds []find
	note := func(d decoded) {
		f.look(d.text, true, func(x find) bool {
			x.start, x.end = d.start[x.start], d.start[x.end]
			finds = append(finds, x)
			return true
		})
	}
	d := asSent(text)
	note(d)
	for range 3 {
		next, changed := d.next(false)
		if !changed {
			break
		}
		d = next
		note(d)
	}
	if len(finds) == 0 {
		return text
	}
	slices.SortFunc(finds, func(a, b find) int { return a.start - b.start })
	var out strings.Builder
	from := 0
	for _, x := range finds {
		if x.start >= from {
			out.WriteString(text[from:x.start])
			out.WriteString(masked)
		}
		from = max(from, x.end)
	}
	out.WriteString(text[from:])
	return out.String()
}

package credbroker

import (
	"bytes"
	"slices"
	"unsafe"
)

// bodyScan looks through the first bytes of a body as they come, as they are
// and, for a form, decoded once. Nothing is swapped in a body, so every find is a
// leak, but for a placeholder on its way to a host where it passes.
type bodyScan struct {
	look   *finder
	passes bool
	note   func(kind, verdict, credential string)

	plain   window
	form    *window // nil for what is no form
	escape  []byte  // the beginning of an escape that is not whole yet
	count   int
	noted   []string
	leaking []string
	secret  bool // one of them is a real secret
}

func newBodyScan(look *finder, form, passes bool, note func(kind, verdict, credential string)) *bodyScan {
	s := &bodyScan{look: look, passes: passes, note: note}
	if form {
		s.form = &window{}
	}
	return s
}

// feed looks through the next bytes, the last ones if end. An error is a leak,
// which was recorded.
func (s *bodyScan) feed(p []byte, end bool) error {
	if left := mostScanned - s.count; len(p) >= left {
		p, end = p[:left], true
	}
	if len(p) == 0 && !end || s.count == mostScanned {
		return nil
	}
	s.count += len(p)
	s.plain.feed(s.look, p, end, s.found)
	if s.form != nil {
		s.form.feed(s.look, s.decode(p, end), end, s.found)
	}
	if len(s.leaking) == 0 {
		return nil
	}
	for _, id := range s.leaking {
		s.note("leak", "deny", id)
	}
	if s.secret {
		return errSecretBody
	}
	return errLeakBody
}

// found settles what a find means.
func (s *bodyScan) found(f find) {
	list := &s.leaking
	if s.passes && !f.secret {
		list = &s.noted
	}
	s.secret = s.secret || f.secret
	if slices.Contains(*list, f.id) {
		return
	}
	*list = append(*list, f.id)
	if list == &s.noted {
		s.note("leak", "allow", f.id)
	}
}

// decode decodes the escapes of a form and its "+", over the borders of what is
// fed.
func (s *bodyScan) decode(p []byte, end bool) []byte {
	if len(s.escape) == 0 && bytes.IndexByte(p, '%') < 0 && bytes.IndexByte(p, '+') < 0 {
		return p
	}
	in := append(s.escape, p...)
	s.escape = nil
	out := make([]byte, 0, len(in))
	text := view(in)
	for i := 0; i < len(in); i++ {
		c, ok := escaped(text, i)
		switch {
		case ok:
			i += 2
		case in[i] == '%' && i+2 >= len(in) && !end:
			s.escape = slices.Clone(in[i:])
			return out
		case in[i] == '+':
			c = ' '
		default:
			c = in[i]
		}
		out = append(out, c)
	}
	return out
}

// window is what was fed last: what begins there may go on in what follows.
type window struct{ tail []byte }

func (w *window) feed(look *finder, p []byte, end bool, found func(find)) {
	keep := look.longest + 1 // with the byte behind the longest find
	text, seen := p, len(w.tail)
	if seen > 0 {
		text = append(w.tail, p...)
	}
	look.look(view(text), false, func(f find) bool {
		enough := f.end
		switch {
		case f.secret:
			// Of a short one that ends here, the byte behind it is still to come.
			if f.end == len(text) && !end {
				return true
			}
			enough++
		case isMarked(view(text[f.start:])):
			enough = f.start + len(mark) + markLetters
		}
		if enough > seen { // else it was there before, with what stands before it
			found(f)
		}
		return true
	})
	if rest := len(text) - keep; rest > 0 {
		w.tail = append(w.tail[:0:0], text[rest:]...)
	} else {
		w.tail = append(w.tail[:0:0], text...)
	}
}

// view reads bytes as text without a copy; they do not change while it is
// looked at.
func view(p []byte) string { return unsafe.String(unsafe.SliceData(p), len(p)) }

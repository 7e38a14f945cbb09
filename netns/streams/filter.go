package streams

// filter takes out of a program's terminal output what would act on the user
// rather than be shown: OSC 52, which sets or reads the clipboard, and CSI 21 t,
// which makes the terminal type its title as if the user had. Everything else
// passes, byte for byte. Both 7-bit and 8-bit forms (ECMA-48, 5.3) are known,
// the latter also as UTF-8. Sequences inside the pass-through of tmux and screen
// are found like any other.
//
// It holds back at most the beginning of a sequence.
type filter struct {
	state filterState
	held  []byte // the beginning of a sequence, not yet known to be good
	want  int    // continuation bytes to come of a UTF-8 letter
	csi   bool   // held began as CSI, not OSC
}

type filterState int

const (
	plain   filterState = iota
	escaped             // behind ESC
	wide                // behind 0xC2: what follows may be a C1 control
	number              // in the parameters of CSI or the number of OSC
	drop                // in OSC 52
	dropEsc             // in OSC 52, behind ESC
	dropC2              // in OSC 52, behind 0xC2
)

const (
	esc = 0x1b
	bel = 0x07
	can = 0x18
	sub = 0x1a
	// The most parameter bytes of a sequence that are looked at; terminals keep
	// fewer.
	maxHeld = 256
)

// next appends what of in may be shown to out.
func (f *filter) next(out, in []byte) []byte {
	for _, b := range in {
		out = f.step(out, b)
	}
	return out
}

func (f *filter) step(out []byte, b byte) []byte {
	switch f.state {
	case plain:
		return f.plain(out, b)
	case escaped:
		switch b {
		case '[', ']':
			f.held = append(f.held, b)
			f.csi, f.state = b == '[', number
			return out
		case esc: // the first of two begins nothing
			return append(out, esc)
		}
		return f.plain(f.release(out), b)
	case wide:
		if b == 0x9b || b == 0x9d {
			f.held = append(f.held, b)
			f.csi, f.state = b == 0x9b, number
			return out
		}
		f.state = plain
		out = append(out, f.held...)
		f.held = f.held[:0]
		if b&0xc0 == 0x80 {
			return append(out, b)
		}
		return f.plain(out, b)
	case number:
		return f.number(out, b)
	case drop:
		f.dropped(b)
	case dropEsc:
		if b != '\\' { // another sequence begins: OSC is over
			f.state, f.held = escaped, append(f.held[:0], esc)
			return f.step(out, b)
		}
		f.state = plain
	case dropC2:
		f.state = drop
		if b == 0x9c {
			f.state = plain
		} else {
			f.dropped(b)
		}
	}
	return out
}

func (f *filter) plain(out []byte, b byte) []byte {
	if f.want > 0 && b&0xc0 == 0x80 {
		f.want--
		return append(out, b)
	}
	f.want = 0
	switch {
	case b == esc:
		f.state, f.held = escaped, append(f.held[:0], b)
		return out
	case b == 0xc2:
		f.state, f.held = wide, append(f.held[:0], b)
		return out
	case b == 0x9b || b == 0x9d:
		f.csi, f.state, f.held = b == 0x9b, number, append(f.held[:0], b)
		return out
	case b >= 0xc3 && b < 0xe0:
		f.want = 1
	case b >= 0xe0 && b < 0xf0:
		f.want = 2
	case b >= 0xf0 && b < 0xf8:
		f.want = 3
	}
	return append(out, b)
}

// release lets go of what was held.
func (f *filter) release(out []byte) []byte {
	out = append(out, f.held...)
	f.held, f.state = f.held[:0], plain
	return out
}

// number collects the parameters of CSI (bytes 0x20 to 0x3F, then a final one)
// or the digits of an OSC, and decides.
func (f *filter) number(out []byte, b byte) []byte {
	digit := b >= '0' && b <= '9'
	switch {
	case b < 0x20 && b != esc && b != bel && b != can && b != sub:
		// A control inside a sequence is carried out at once and the sequence
		// goes on (ECMA-48 leaves it open; xterm does so).
		return append(out, b)
	case digit || f.csi && b >= 0x20 && b < 0x40:
		if len(f.held) >= maxHeld { // longer than any terminal reads
			f.held = f.held[:len(f.held)-1]
		}
		f.held = append(f.held, b)
		return out
	case f.csi && b == 't' && f.first() == 21, !f.csi && b == ';' && f.first() == 52:
		f.held, f.state = f.held[:0], plain
		if !f.csi {
			f.state = drop
		}
		return out
	}
	return f.plain(f.release(out), b)
}

// first is the first number of what is held, which some terminals read past
// leading zeros and blanks; -1 where there is none.
func (f *filter) first() int {
	n, any := 0, false
	for _, b := range f.held {
		switch {
		case b >= '0' && b <= '9':
			any = true
			if n = n*10 + int(b-'0'); n > 1<<20 {
				n = 1 << 20
			}
		case any:
			return n
		}
	}
	if !any {
		return -1
	}
	return n
}

func (f *filter) dropped(b byte) {
	switch b {
	case bel, can, sub, 0x9c:
		f.state = plain
	case esc:
		f.state = dropEsc
	case 0xc2:
		f.state = dropC2
	}
}

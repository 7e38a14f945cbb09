package streams

import (
	"slices"
	"strings"
)

// filter takes out of a program's terminal output what would act on the user
// rather than be shown:
//
//   - what sets or reads the clipboard: OSC 52, OSC 5522 of kitty, the Copy
//     commands in OSC 1337 of iTerm2;
//   - CSI 20 t and 21 t, which make the terminal type its icon's label or title
//     as if the user had;
//   - the pass-through of tmux and screen (DCS with an ESC in it): in pieces that
//     mean nothing each, a sequence would reach the terminal around them unseen.
//     The string is ended there, and what follows looked at like anything else;
//   - ESC % @, after which letters of UTF-8 hold C1 controls.
//
// Everything else passes, byte for byte. Both 7-bit and 8-bit forms (ECMA-48,
// 5.3) are known, the latter also as UTF-8.
//
// It holds back at most the beginning of a sequence.
type filter struct {
	state filterState
	held  []byte // the beginning of a sequence, not yet known to be good
	want  int    // continuation bytes to come of a UTF-8 letter
	low   byte   // the least that the next of them may be
	high  byte   // and the most
	csi   bool   // held began as CSI, not OSC
	cut   bool   // what came out last is a sequence without its end
	name  int    // where in held the command of OSC 1337 begins
}

type filterState int

const (
	plain   filterState = iota
	escaped             // behind ESC
	charset             // behind ESC %
	wide                // behind 0xC2: what follows may be a C1 control
	number              // in the parameters of CSI or the number of OSC
	command             // in the first word of OSC 1337
	text                // in DCS, SOS, PM or APC
	textEsc             // in one of them, behind ESC
	textC2              // in one of them, behind 0xC2
	drop                // in what is taken out
	dropEsc             // in it, behind ESC
	dropC2              // in it, behind 0xC2
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
		switch {
		case b == esc: // the first of two begins nothing, or what is taken out stood between
			f.cut = true
			return append(out, esc)
		case executed(b):
			return append(out, b)
		}
		switch b {
		case '[', ']':
			f.held = append(f.held, b)
			f.csi, f.state = b == '[', number
			return out
		case 'P', 'X', '^', '_':
			out = append(f.release(out), b)
			f.state = text
			return out
		case '%':
			f.held, f.state = append(f.held, b), charset
			return out
		}
		return f.plain(f.release(out), b)
	case charset:
		switch {
		case b == '@':
			f.held, f.state = f.held[:0], plain
			return f.gap(out)
		case executed(b):
			return append(out, b)
		}
		return f.plain(f.release(out), b)
	case wide:
		switch b {
		case 0x9b, 0x9d:
			f.held = append(f.held, b)
			f.csi, f.state = b == 0x9b, number
			return out
		case 0x90, 0x98, 0x9e, 0x9f:
			out = append(f.release(out), b)
			f.state = text
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
	case command:
		return f.command(out, b)
	case text, textEsc, textC2:
		return f.text(out, b)
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
	if f.continues(b) {
		return append(out, b)
	}
	switch b {
	case esc:
		f.state, f.held = escaped, append(f.held[:0], b)
		return out
	case 0xc2:
		f.state, f.held = wide, append(f.held[:0], b)
		return out
	case 0x9b, 0x9d:
		f.csi, f.state, f.held = b == 0x9b, number, append(f.held[:0], b)
		return out
	case 0x90, 0x98, 0x9e, 0x9f:
		f.state = text
	}
	if b >= 0x20 {
		f.cut = false
	}
	return append(out, b)
}

// executed are the controls that a terminal carries out inside a sequence,
// which goes on (ECMA-48 leaves it open; xterm does so), and DEL, which it
// does not see.
func executed(b byte) bool {
	return b < 0x20 && b != esc && b != bel && b != can && b != sub || b == 0x7f
}

// gap stands for what was taken out. Where a sequence without its end is
// before it, an ST ends that: the two halves around the gap must not meet.
func (f *filter) gap(out []byte) []byte {
	if f.cut {
		f.cut = false
		return append(out, esc, '\\')
	}
	return out
}

// continues says whether b belongs to a UTF-8 letter that is under way, and
// else whether it begins one (RFC 3629, 4): a byte that only looks as if it
// continued a letter is a control to a terminal that starts anew there.
func (f *filter) continues(b byte) bool {
	if f.want > 0 && b >= f.low && b <= f.high {
		f.want--
		f.low, f.high = 0x80, 0xbf
		return true
	}
	f.want, f.low, f.high = 0, 0x80, 0xbf
	switch {
	case b >= 0xc3 && b < 0xe0:
		f.want = 1
	case b >= 0xe0 && b < 0xf0:
		f.want = 2
	case b >= 0xf0 && b < 0xf5:
		f.want = 3
	}
	switch b {
	case 0xe0:
		f.low = 0xa0
	case 0xed:
		f.high = 0x9f
	case 0xf0:
		f.low = 0x90
	case 0xf4:
		f.high = 0x8f
	}
	return false
}

// text passes a string on, without the controls that could begin a sequence
// where a pass-through hands it to another terminal. ST, CAN and SUB end it, by
// the ST that every terminal knows; any other ESC is outside, behind an ST too.
func (f *filter) text(out []byte, b byte) []byte {
	switch f.state {
	case textEsc:
		if b == '\\' {
			f.state = plain
			return append(out, esc, b)
		}
		f.state, f.held = escaped, append(f.held[:0], esc)
		return f.step(append(out, esc, '\\'), b)
	case textC2:
		f.state = text
		switch {
		case b == 0x9c:
			f.state = plain
			return append(out, esc, '\\')
		case b >= 0x80 && b < 0xa0:
			return out
		case b&0xc0 == 0x80:
			return append(out, 0xc2, b)
		}
	}
	if f.continues(b) {
		return append(out, b)
	}
	switch {
	case b == esc:
		f.state = textEsc
		return out
	case b == 0xc2:
		f.state = textC2
		return out
	case b == 0x9c:
		f.state = plain
		return append(out, esc, '\\')
	case b == can, b == sub:
		f.state = plain
		return append(out, esc, '\\', b)
	case b >= 0x80 && b < 0xa0:
		return out
	}
	return append(out, b)
}

// command collects the first word of OSC 1337, and decides.
func (f *filter) command(out []byte, b byte) []byte {
	word := strings.ToLower(string(f.held[f.name:]))
	switch {
	case executed(b):
		return append(out, b)
	case b >= 0x20 && b < 0x7f && b != '=' && b != ':' && b != ';' && len(word) < len(longestCommand):
		f.held = append(f.held, b)
		return out
	case slices.Contains(clipboardCommands, word) || word == longestCommand:
		f.held, f.state = f.held[:0], drop
		return f.step(f.gap(out), b)
	}
	return f.plain(f.release(out), b)
}

// Commands of OSC 1337 that set the clipboard, in lower case.
var clipboardCommands = []string{"copy", "endcopy"}

const longestCommand = "copytoclipboard"

// release lets go of what was held.
func (f *filter) release(out []byte) []byte {
	out = append(out, f.held...)
	f.held, f.state, f.cut = f.held[:0], plain, true
	return out
}

// number collects the parameters of CSI (bytes 0x20 to 0x3F, then a final one)
// or the digits of an OSC, and decides.
func (f *filter) number(out []byte, b byte) []byte {
	digit := b >= '0' && b <= '9'
	switch {
	case executed(b):
		return append(out, b)
	case digit || f.csi && b >= 0x20 && b < 0x40:
		if len(f.held) >= maxHeld { // longer than any terminal reads
			f.held = f.held[:len(f.held)-1]
		}
		f.held = append(f.held, b)
		return out
	case f.csi && b == 't' && (f.first() == 20 || f.first() == 21):
		f.held, f.state = f.held[:0], plain
		return f.gap(out)
	case !f.csi && b == ';' && (f.first() == 52 || f.first() == 5522):
		f.held, f.state = f.held[:0], drop
		return f.gap(out)
	case !f.csi && b == ';' && f.first() == 1337:
		f.held, f.state = append(f.held, b), command
		f.name = len(f.held)
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

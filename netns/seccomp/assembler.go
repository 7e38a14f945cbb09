//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// Offsets in struct seccomp_data. Of an argument the low half comes first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// assembler appends instructions of classic BPF. A jump counts the instructions
// to leave out, 255 at most: blocks are far smaller.
type assembler struct{ out []unix.SockFilter }

func (a *assembler) load(offset uint32) {
	a.out = append(a.out, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (a *assembler) and(mask uint32) {
	a.out = append(a.out, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask})
}

func (a *assembler) jump(op uint16, k uint32, yes, no uint8) {
	a.out = append(a.out, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: k})
}

func (a *assembler) ret(action uint32) {
	a.out = append(a.out, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

// rule appends what is done of a call. The number stands in the accumulator
// before it, and behind it if it is another call's.
func (a *assembler) rule(number uint32, r rule) {
	var block assembler
	open := true // whether the end of the block is reached
	for _, f := range r.refusals {
		block.refusal(f)
		open = len(f.when) > 0
	}
	if open {
		block.ret(unix.SECCOMP_RET_ALLOW)
	}
	a.jump(unix.BPF_JEQ, number, 0, uint8(len(block.out)))
	a.out = append(a.out, block.out...)
}

// refusal appends the conditions, each of which leads behind the refusal where
// it does not hold, and the errno.
func (a *assembler) refusal(f refusal) {
	type exit struct {
		at  int
		yes bool // which of its branches leaves
	}
	var exits []exit
	for _, c := range f.when {
		a.load(uint32(offsetArgs + 8*c.arg))
		if c.mask != ^uint32(0) {
			a.and(c.mask)
		}
		for i, v := range c.values {
			switch {
			case c.none:
				exits = append(exits, exit{len(a.out), true})
				a.jump(unix.BPF_JEQ, v, 0, 0)
			case i == len(c.values)-1:
				exits = append(exits, exit{len(a.out), false})
				a.jump(unix.BPF_JEQ, v, 0, 0)
			default:
				a.jump(unix.BPF_JEQ, v, uint8(len(c.values)-1-i), 0)
			}
		}
	}
	a.ret(errno(f.errno))
	for _, e := range exits {
		skip := uint8(len(a.out) - e.at - 1)
		if e.yes {
			a.out[e.at].Jt = skip
		} else {
			a.out[e.at].Jf = skip
		}
	}
}

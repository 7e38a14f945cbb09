package redact

import (
	"encoding/binary"
	"math"

	"github.com/egressd/egressd/credbroker/scan"
)

// The first two bytes of a WebSocket frame (RFC 6455 section 5.2).
const (
	bitFin      = 0x80
	bitsRSV     = 0x70
	bitsOpcode  = 0x0f
	bitMasked   = 0x80
	bitControl  = 0x08 // of the opcode
	opContinue  = 0x0
	opText      = 0x1
	opBinary    = 0x2
	opClose     = 0x8
	opPing      = 0x9
	opPong      = 0xa
	mostControl = 125 // bytes of content of a control frame
	headOfFrame = 10  // bytes at most, a server's frames having no mask
)

// frames scans the frames that a WebSocket's server sends. A find becomes as
// many asterisks, so every frame keeps its head and its length. A message is
// scanned over its fragments: while one is not whole, the end of a frame is
// held, and the heads of the frames behind it wait with it, but a control frame
// does not wait.
//
// What a server may not send without an extension is refused: a bit or an
// opcode that is reserved means that the content is to be read in a way that
// the scanner does not know.
type frames struct {
	stream  stream
	control func([]byte) []string // overwrites finds in a whole control frame

	head    [headOfFrame]byte
	have    int    // bytes of head that came
	left    uint64 // bytes of content that did not
	body    bool   // the head is whole, the content is not
	message bool   // a message is not whole
	text    bool   // and is text
	short   []byte // of a control frame, head and content

	queue   weave
	letters letters
	fresh   []byte   // content that came in this Write
	scratch []byte   // what the stream let go
	spelt   []byte   // the same with whole letters
	named   []string // entries found in control frames
}

func newFrames(s stream, control func([]byte) []string) *frames {
	return &frames{stream: s, control: control}
}

func (f *frames) Write(dst, p []byte) ([]byte, error) {
	for len(p) > 0 {
		switch n := int(min(uint64(len(p)), f.left)); {
		case !f.body:
			n, err := f.readHead(p)
			if err != nil {
				return dst, err
			}
			if p = p[n:]; !f.body {
				continue
			}
			dst = f.beginFrame(dst)
		case f.isControl():
			f.short = append(f.short, p[:n]...)
			p, f.left = p[n:], f.left-uint64(n)
		default:
			f.queue.in += int64(n)
			f.fresh = append(f.fresh, p[:n]...)
			p, f.left = p[n:], f.left-uint64(n)
		}
		if f.left == 0 {
			dst = f.endFrame(dst)
		}
	}
	dst = f.emit(dst)
	if f.queue.urgent {
		dst = f.Release(dst)
	}
	return dst, nil
}

func (f *frames) isControl() bool { return f.head[0]&bitControl != 0 }

// readHead takes bytes of a frame's head, and settles its length once it is
// whole. It returns how many it took.
func (f *frames) readHead(p []byte) (int, error) {
	for i, c := range p {
		f.head[f.have] = c
		f.have++
		if f.have == 2 {
			if err := f.checkHead(); err != nil {
				return 0, err
			}
		}
		if f.have >= 2 && f.have == f.headSize() {
			f.body, f.left = true, f.length()
			if f.left > math.MaxInt64 {
				return 0, errFrame
			}
			return i + 1, nil
		}
	}
	return len(p), nil
}

// headSize is how long the head is that begins with these two bytes.
func (f *frames) headSize() int {
	switch f.head[1] {
	case 126:
		return 4
	case 127:
		return headOfFrame
	}
	return 2
}

// length is what a whole head says of the content.
func (f *frames) length() uint64 {
	switch f.head[1] {
	case 126:
		return uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		return binary.BigEndian.Uint64(f.head[2:])
	}
	return uint64(f.head[1])
}

// checkHead looks at the first two bytes.
func (f *frames) checkHead() error {
	op := f.head[0] & bitsOpcode
	fin, length := f.head[0]&bitFin != 0, f.head[1]&^bitMasked
	if f.head[0]&bitsRSV != 0 || f.head[1]&bitMasked != 0 {
		return errFrame
	}
	switch op {
	case opContinue:
		if f.message {
			return nil
		}
	case opText, opBinary:
		if !f.message {
			return nil
		}
	case opClose, opPing, opPong:
		if fin && length <= mostControl {
			return nil
		}
	}
	return errFrame
}

// beginFrame settles the frame whose head is whole.
func (f *frames) beginFrame(dst []byte) []byte {
	head := f.head[:f.have]
	f.have = 0
	if f.isControl() {
		f.short = append(f.short[:0], head...)
		return dst
	}
	if op := head[0] & bitsOpcode; op != opContinue {
		f.message, f.text = true, op == opText
	}
	return f.queue.put(dst, head)
}

// endFrame settles a frame that is whole. With its message everything goes on.
func (f *frames) endFrame(dst []byte) []byte {
	f.body = false
	if f.isControl() {
		f.scanControl()
		dst = f.queue.put(dst, f.short)
		f.queue.urgent = f.queue.size > 0
		return dst
	}
	if f.head[0]&bitFin != 0 {
		f.message = false
		dst = f.flush(dst, f.stream.EndMessage)
	}
	return dst
}

// scanControl overwrites what is found in a control frame. In a close frame it
// is a text, behind two bytes of status.
func (f *frames) scanControl() {
	content := f.short[2:]
	if f.head[0]&bitsOpcode != opClose {
		f.named = append(f.named, f.control(content)...)
		return
	}
	if len(content) <= 2 {
		return
	}
	content = content[2:]
	f.named = append(f.named, f.control(content)...)
	var l letters
	copy(content, l.Flush(l.Write(nil, content)))
}

// emit appends what the stream lets go after what came, with the heads in their
// places. All of a Write goes to the stream at once: in fragments of a byte each
// one would cost as much as all that is held.
func (f *frames) emit(dst []byte) []byte {
	if len(f.fresh) == 0 {
		return dst
	}
	p := f.fresh
	f.fresh = f.fresh[:0]
	if len(f.queue.pieces) == 0 && !f.text {
		at := len(dst)
		dst = f.stream.Write(dst, p)
		f.queue.out += int64(len(dst) - at)
		return dst
	}
	f.scratch = f.stream.Write(f.scratch[:0], p)
	return f.pass(dst, f.scratch)
}

// pass appends bytes that the stream let go.
func (f *frames) pass(dst, p []byte) []byte {
	if f.text {
		f.spelt = f.letters.Write(f.spelt[:0], p)
		p = f.spelt
	}
	return f.queue.weave(dst, p)
}

// flush appends everything that is held: out gives what the stream holds.
func (f *frames) flush(dst []byte, out func(dst []byte) []byte) []byte {
	dst = f.emit(dst)
	f.scratch = out(f.scratch[:0])
	dst = f.pass(dst, f.scratch)
	f.spelt = f.letters.Flush(f.spelt[:0])
	return f.queue.weave(dst, f.spelt)
}

// Release lets go of what is held of a message that is not whole.
func (f *frames) Release(dst []byte) []byte { return f.flush(dst, f.stream.Release) }

// Close lets go of what is held. Of a head or a control frame that is not whole
// nothing is passed on: nobody could read it.
func (f *frames) Close(dst []byte) []byte { return f.flush(dst, f.stream.Close) }

// Held counts heads of frames, and what is not whole, too.
func (f *frames) Held() int {
	held := int(f.queue.in-f.queue.out) + f.queue.size + f.have
	if f.body && f.isControl() {
		held += len(f.short)
	}
	return held
}

// Renew has it look for the secrets of set from here on.
func (f *frames) Renew(set *scan.Set) {
	f.stream.Renew(set)
	f.control = set.Overwrite
}

// Entries names those of new finds since it was last asked.
func (f *frames) Entries() []string {
	named := append(f.named, f.stream.Entries()...)
	f.named = nil
	return named
}

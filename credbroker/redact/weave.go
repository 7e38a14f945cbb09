package redact

// mostWaiting is how many bytes of heads may wait behind what is held. A message
// of endless empty fragments would fill the memory.
const mostWaiting = 64 << 10

// weave puts heads of frames back between the bytes of messages that were
// scanned apart from them.
type weave struct {
	in, out int64 // bytes of messages that came, and that went out
	pieces  []piece
	size    int  // bytes in pieces
	urgent  bool // what is held is to go, since a piece must not wait
}

// piece stands before the byte that is number at.
type piece struct {
	at   int64
	data []byte
}

// put appends data to dst where nothing before it is held, and else keeps it.
func (w *weave) put(dst, data []byte) []byte {
	if len(w.pieces) == 0 && w.out == w.in {
		return append(dst, data...)
	}
	if n := len(w.pieces); n > 0 && w.pieces[n-1].at == w.in {
		w.pieces[n-1].data = append(w.pieces[n-1].data, data...)
	} else {
		w.pieces = append(w.pieces, piece{w.in, append([]byte(nil), data...)})
	}
	if w.size += len(data); w.size > mostWaiting {
		w.urgent = true
	}
	return dst
}

// weave appends p, which follows what went out, and every piece whose place was
// reached.
func (w *weave) weave(dst, p []byte) []byte {
	for len(w.pieces) > 0 {
		first := w.pieces[0]
		n := min(first.at-w.out, int64(len(p)))
		dst, p = append(dst, p[:n]...), p[n:]
		if w.out += n; w.out < first.at {
			return dst
		}
		dst = append(dst, first.data...)
		w.size -= len(first.data)
		if w.pieces = w.pieces[1:]; len(w.pieces) == 0 {
			w.pieces, w.urgent = nil, false
		}
	}
	w.out += int64(len(p))
	return append(dst, p...)
}

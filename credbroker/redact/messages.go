package redact

import "encoding/binary"

// The bits of a message's first byte.
const (
	bitCompressed   = 0x01 // gRPC and Connect
	bitConnectEnd   = 0x02 // Connect: the message that ends the stream
	bitWebTrailers  = 0x80 // gRPC-Web: the message is the trailers
	messagePrefix   = 5    // that byte and four of length, the highest first
	lengthOfMessage = 1    // where the length begins
)

// messages scans the messages of gRPC, gRPC-Web or Connect: one byte of flags,
// four of length, and so many of content. A find becomes as many asterisks,
// which keeps every length true. No find spans two messages, so that each goes
// on when it is whole.
//
// A bit that the protocol does not have is refused like the compressed one:
// what calls itself gRPC and is not would be cut apart where its letters say.
type messages struct {
	stream
	flags  byte // those that may be set
	prefix [messagePrefix]byte
	have   int    // bytes of prefix that came
	left   uint32 // bytes of content that did not
}

func newMessages(s stream, k kind) *messages {
	m := &messages{stream: s}
	switch k {
	case kindGRPCWeb:
		m.flags = bitWebTrailers
	case kindConnect:
		m.flags = bitConnectEnd
	}
	return m
}

func (m *messages) Write(dst, p []byte) ([]byte, error) {
	for len(p) > 0 {
		if m.have < messagePrefix {
			n := copy(m.prefix[m.have:], p)
			m.have, p = m.have+n, p[n:]
			switch flags := m.prefix[0]; {
			case flags&bitCompressed != 0 && flags&^(m.flags|bitCompressed) == 0:
				return dst, errCompressed
			case flags&^m.flags != 0:
				return dst, errMessage
			case m.have < messagePrefix:
				return dst, nil
			}
			dst = append(dst, m.prefix[:]...)
			m.left = binary.BigEndian.Uint32(m.prefix[lengthOfMessage:])
		} else {
			n := uint32(min(uint64(len(p)), uint64(m.left)))
			dst = m.stream.Write(dst, p[:n])
			m.left, p = m.left-n, p[n:]
		}
		if m.left == 0 {
			dst = m.stream.EndMessage(dst)
			m.have = 0
		}
	}
	return dst, nil
}

// Held counts what came of a prefix that is not whole, too.
func (m *messages) Held() int {
	if m.have == messagePrefix {
		return m.stream.Held()
	}
	return m.have
}

// Close passes on what came of a prefix that is not whole, too: without it a
// stream that broke off would look as if it had ended.
func (m *messages) Close(dst []byte) []byte {
	dst = m.stream.Close(dst)
	if m.have < messagePrefix {
		dst = append(dst, m.prefix[:m.have]...)
	}
	return dst
}

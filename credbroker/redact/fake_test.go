package redact

import (
	"bytes"
	"encoding/binary"

	"github.com/egressd/egressd/credbroker/scan"
)

const secret = "tok-live-7Qm4x9Zr2Lp8"

var stars = string(bytes.Repeat([]byte("*"), len(secret)))

// literal is a stream that knows one spelling of one secret and holds as much
// as is long. What framing does can be told from it byte by byte.
type literal struct {
	secret string
	held   []byte
	found  bool
}

func newLiteral() *literal { return &literal{secret: secret} }

func (l *literal) Write(dst, p []byte) []byte {
	l.held = append(l.held, p...)
	l.found = literally(l.held, l.secret) || l.found
	n := max(0, len(l.held)-(len(l.secret)-1))
	dst = append(dst, l.held[:n]...)
	l.held = append(l.held[:0], l.held[n:]...)
	return dst
}

func (l *literal) Close(dst []byte) []byte {
	dst = append(dst, l.held...)
	l.held = l.held[:0]
	return dst
}

func (l *literal) EndMessage(dst []byte) []byte { return l.Close(dst) }
func (l *literal) Release(dst []byte) []byte    { return l.Close(dst) }

func (l *literal) Renew(*scan.Set) {}

func (l *literal) Held() int { return len(l.held) }

func (l *literal) Entries() []string {
	if !l.found {
		return nil
	}
	l.found = false
	return []string{"api"}
}

// literally writes asterisks over a secret in p.
func literally(p []byte, secret string) (found bool) {
	for {
		i := bytes.Index(p, []byte(secret))
		if i < 0 {
			return found
		}
		found = true
		for j := range len(secret) {
			p[i+j] = '*'
		}
	}
}

func control(p []byte) []string {
	if literally(p, secret) {
		return []string{"api"}
	}
	return nil
}

// message is one of gRPC.
func message(flags byte, content string) string {
	head := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(content)))
	return string(head) + content
}

// frame is one of a WebSocket's server.
func frame(first byte, content string) string {
	head := []byte{first}
	switch n := len(content); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	return string(head) + content
}

// feed gives s the input in pieces and says what came out.
func feed(s scanner, pieces ...string) (string, error) {
	var out []byte
	for _, p := range pieces {
		var err error
		if out, err = s.Write(out, []byte(p)); err != nil {
			return string(out), err
		}
	}
	return string(s.Close(out)), nil
}

// letterwise is s in pieces of one byte.
func letterwise(s string) []string {
	pieces := make([]string, len(s))
	for i := range len(s) {
		pieces[i] = s[i : i+1]
	}
	return pieces
}

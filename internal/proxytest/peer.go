package proxytest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Peer is a client of raw bytes: it writes what it is told and keeps all that
// comes back.
type Peer struct {
	net.Conn
	mu   sync.Mutex
	got  []byte
	end  error // why reading ended
	more chan struct{}
	done chan struct{}
}

// NewPeer takes the connection over and reads from it until it is closed. Read
// must not be called any more.
func NewPeer(c net.Conn) *Peer {
	p := &Peer{Conn: c, more: make(chan struct{}, 1), done: make(chan struct{})}
	go p.read()
	return p
}

func (p *Peer) read() {
	defer close(p.done)
	b := make([]byte, 32<<10)
	for {
		n, err := p.Conn.Read(b)
		p.mu.Lock()
		p.got = append(p.got, b[:n]...)
		p.end = err
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Close closes the connection and waits for the reader.
func (p *Peer) Close() error {
	err := p.Conn.Close()
	<-p.done
	return err
}

// Send writes b; a connection that the other side has closed is no failure.
func (p *Peer) Send(b []byte) {
	p.SetWriteDeadline(time.Now().Add(patience))
	p.Write(b)
}

// Got returns all that came and, where reading has ended, why.
func (p *Peer) Got() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got[:len(p.got):len(p.got)], p.end
}

// Wait returns when enough says so, reading has ended or the time is over, and
// tells whether enough did.
func (p *Peer) Wait(limit time.Duration, enough func(got []byte, end bool) bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		got, end := p.Got()
		if enough(got, end != nil) {
			return true
		}
		if end != nil {
			return false
		}
		select {
		case <-p.more:
		case <-timer.C:
			got, end := p.Got()
			return enough(got, end != nil)
		}
	}
}

// Closed waits up to limit for the other side to close.
func (p *Peer) Closed(limit time.Duration) bool {
	return p.Wait(limit, func(_ []byte, end bool) bool { return end })
}

// Reset tells whether reading ended by other than an orderly close.
func (p *Peer) Reset() bool {
	_, err := p.Got()
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded)
}

// Answer is one final answer, or a switch of protocols, with the interim
// answers before it.
type Answer struct {
	Message
	Status  int
	Interim []Answer
	Whole   bool // the body has ended as its framing says
	Reset   bool // HTTP/2: the stream was reset
}

// ParseAnswers reads the answers to requests of these methods (GET where the
// list ends) from all that a client got. Bytes behind a 101 or the 200 of a
// CONNECT are rest. The last answer may not be whole; pending are the interim
// answers that no final one follows yet.
func ParseAnswers(got []byte, methods []string, end bool) (answers, pending []Answer, rest []byte, err error) {
	for len(got) > 0 {
		m, n, err := ParseHead(got)
		if err != nil {
			return answers, pending, got, err
		}
		if n == 0 {
			return answers, pending, got, nil
		}
		a := Answer{Message: m}
		if a.Status, err = Status(m.Line); err != nil {
			return answers, pending, got, err
		}
		method := "GET"
		if len(answers) < len(methods) {
			method = methods[len(answers)]
		}
		f, err := AnswerFraming(m, method, a.Status)
		if err != nil {
			return answers, pending, got, err
		}
		if a.Status < 200 && a.Status != 101 {
			pending, got = append(pending, a), got[n:]
			continue
		}
		a.Interim, pending = pending, nil
		k, whole, err := ParseBody(&a.Message, f, got[n:], end)
		if err != nil {
			return answers, pending, got, fmt.Errorf("reading answer %d: %w", len(answers)+1, err)
		}
		a.Whole = whole
		answers = append(answers, a)
		if !whole {
			return answers, nil, nil, nil
		}
		got = got[n+k:]
		if a.Status == 101 || method == "CONNECT" && a.Status/100 == 2 {
			return answers, nil, got, nil
		}
	}
	return answers, pending, nil, nil
}

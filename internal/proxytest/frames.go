package proxytest

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Stream is one request of HTTP/2, with whatever fields it is given: nothing is
// added, ordered or checked.
type Stream struct {
	Headers  [][2]Bytes `json:"headers"`
	Body     Bytes      `json:"body"`
	Trailers [][2]Bytes `json:"trailers"`
}

// Frames is a client of HTTP/2 made of frames, so that malformed requests can
// be sent and resets be seen.
type Frames struct {
	conn   net.Conn
	more   chan struct{}
	done   chan struct{}
	mu     sync.Mutex // guards writing and all below
	framer *http2.Framer
	coder  *hpack.Encoder
	block  bytes.Buffer
	order  []uint32
	got    map[uint32]*Answer
	goAway bool
	end    error
	first  time.Time
}

// NewFrames sends the preface and reads frames until the connection ends.
func NewFrames(conn net.Conn) (*Frames, error) {
	f := &Frames{conn: conn, more: make(chan struct{}, 1), done: make(chan struct{}), got: map[uint32]*Answer{}}
	f.coder = hpack.NewEncoder(&f.block)
	f.framer = http2.NewFramer(conn, conn)
	f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		return nil, fmt.Errorf("writing preface: %w", err)
	}
	if err := f.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 24}); err != nil {
		return nil, fmt.Errorf("writing settings: %w", err)
	}
	if err := f.framer.WriteWindowUpdate(0, 1<<24); err != nil {
		return nil, fmt.Errorf("writing window: %w", err)
	}
	go f.read()
	return f, nil
}

// Close closes the connection and waits for the reader.
func (f *Frames) Close() error {
	err := f.conn.Close()
	<-f.done
	return err
}

// Open sends one stream whole. An error of writing is none: the proxy may have
// closed.
func (f *Frames) Open(s Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := uint32(2*len(f.order) + 1)
	f.order = append(f.order, id)
	f.got[id] = &Answer{}
	f.conn.SetWriteDeadline(time.Now().Add(patience))
	f.headers(id, s.Headers, s.Body == "" && s.Trailers == nil)
	if s.Body != "" {
		f.framer.WriteData(id, s.Trailers == nil, []byte(s.Body))
	}
	if s.Trailers != nil {
		f.headers(id, s.Trailers, true)
	}
}

// OpenBlock sends one stream without a body whose head is this block of HPACK,
// as it is; no other stream may follow it.
func (f *Frames) OpenBlock(block []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := uint32(2*len(f.order) + 1)
	f.order = append(f.order, id)
	f.got[id] = &Answer{}
	f.conn.SetWriteDeadline(time.Now().Add(patience))
	f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true})
}

func (f *Frames) headers(id uint32, fields [][2]Bytes, last bool) {
	f.block.Reset()
	for _, kv := range fields {
		f.coder.WriteField(hpack.HeaderField{Name: string(kv[0]), Value: string(kv[1])})
	}
	f.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: f.block.Bytes(), EndStream: last, EndHeaders: true})
}

func (f *Frames) read() {
	defer close(f.done)
	for {
		frame, err := f.framer.ReadFrame()
		f.mu.Lock()
		if err != nil {
			f.end = err
		} else {
			f.take(frame)
		}
		f.mu.Unlock()
		select {
		case f.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (f *Frames) take(frame http2.Frame) {
	a := f.got[frame.Header().StreamID]
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if !frame.IsAck() {
			f.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !frame.IsAck() {
			f.framer.WritePing(true, frame.Data)
		}
	case *http2.GoAwayFrame:
		f.goAway = true
	case *http2.RSTStreamFrame:
		if a != nil && !a.Whole {
			a.Reset = true
		}
	case *http2.DataFrame:
		if a != nil {
			if f.first.IsZero() && len(frame.Data()) > 0 {
				f.first = time.Now()
			}
			a.Body += string(frame.Data())
			a.Whole = frame.StreamEnded()
		}
	case *http2.MetaHeadersFrame:
		if a == nil {
			return
		}
		var fields []Field
		for _, h := range frame.RegularFields() {
			fields = append(fields, Field{h.Name, h.Value})
		}
		status, _ := strconv.Atoi(frame.PseudoValue("status"))
		switch {
		case a.Status != 0:
			a.Trailers = fields
		case status < 200:
			a.Interim = append(a.Interim, Answer{Status: status, Message: Message{Fields: fields}})
		default:
			a.Status, a.Fields = status, fields
		}
		a.Whole = frame.StreamEnded()
	}
}

// FirstByte is when the first byte of any body came.
func (f *Frames) FirstByte() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// Wait returns the answers by stream once each is whole or reset, the
// connection has ended, or the time is over.
func (f *Frames) Wait(limit time.Duration) []Answer {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		answers, settled := f.answers()
		if settled {
			return answers
		}
		select {
		case <-f.more:
		case <-timer.C:
			return answers
		}
	}
}

func (f *Frames) answers() (answers []Answer, settled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	settled = true
	for _, id := range f.order {
		a := *f.got[id]
		answers = append(answers, a)
		settled = settled && (a.Whole || a.Reset)
	}
	return answers, settled || f.end != nil
}

package sigv4

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// chunks is a body of signed chunks (aws-chunked, "Transferring payload in
// multiple chunks" of the S3 reference) on its way out:
//
//	400;chunk-signature=SIGNATURE CRLF
//	1024 bytes CRLF
//	0;chunk-signature=SIGNATURE CRLF
//	x-amz-checksum-crc32:VALUE CRLF          with a trailer
//	x-amz-trailer-signature:SIGNATURE CRLF   with a trailer
//	CRLF
//
// Each signature is over the one before and its own data, so a chunk is held
// until it is whole. All but the signatures goes out byte for byte, and they are
// as long as the client's.
type chunks struct {
	src     io.ReadCloser
	in      *bufio.Reader
	key     *signingKey
	scope   string // "\nTIME\nSCOPE\n"
	last    string // the signature before
	trailer bool

	out  []byte // what goes out next
	buf  []byte // the memory of out
	done bool   // out is the last of it
	err  error

	mu     sync.Mutex // of charge: Close may come while a Read is under way
	charge charge
	closed bool
}

const (
	chunkMark = ";chunk-signature="
	// mostLine bounds a line of a chunk's head, or of the trailer, in bytes.
	mostLine = 4 << 10
	// mostTrailer bounds the lines of the trailer.
	mostTrailer = 32
)

func (q *Request) newChunks(src io.ReadCloser, key *signingKey, seed string, trailer bool, reserve func(int64) bool) io.ReadCloser {
	if src == nil {
		return nil
	}
	return &chunks{
		src: src, in: bufio.NewReaderSize(src, mostLine), key: key, scope: "\n" + q.time + "\n" + q.scope() + "\n",
		last: seed, trailer: trailer, charge: charge{reserve: reserve},
	}
}

// Read gives the next bytes, of chunks that were whole.
func (c *chunks) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.out) == 0 && c.err == nil {
		if c.done {
			c.err = c.end()
		} else {
			c.err = c.next()
		}
	}
	if len(c.out) == 0 {
		return 0, c.err
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// Close ends the body.
func (c *chunks) Close() error {
	c.mu.Lock()
	c.closed = true
	c.charge.free()
	c.mu.Unlock()
	return c.src.Close()
}

// line reads one, with its end. A body that ends in the middle of one is none.
func (c *chunks) line() (string, error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case err == io.EOF, err == bufio.ErrBufferFull:
		return "", errChunk
	case err != nil:
		return "", fmt.Errorf("reading a chunk to sign it: %w", err)
	}
	return string(line), nil
}

// next makes the next chunk, the last one with what follows it.
func (c *chunks) next() error {
	head, err := c.line()
	if err != nil {
		return err
	}
	digits, given, ok := strings.Cut(strings.TrimSuffix(head, "\r\n"), chunkMark)
	size, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !ok || !isSignature(given) || len(head) != len(digits)+len(chunkMark)+len(given)+2 {
		return errChunk
	}
	if size > mostHeld {
		return errTooLarge
	}
	before := len(head)
	if err := c.room(before + int(size) + 2); err != nil {
		return err
	}
	out := c.buf[:before+int(size)]
	data := out[before:]
	if _, err := io.ReadFull(c.in, data); err != nil {
		return short(err)
	}
	sum := sha256.Sum256(data)
	c.last = c.sign(algorithm+"-PAYLOAD", emptyHash, sum)
	copy(out, digits)
	copy(out[len(digits):], chunkMark)
	copy(out[len(digits)+len(chunkMark):], c.last)
	copy(out[before-2:], "\r\n")
	if size == 0 {
		c.done = true
		if c.trailer {
			return c.trail(out)
		}
	}
	return c.finish(out, size == 0)
}

// finish adds the line break behind a chunk's data. Some clients leave it out
// behind the last chunk.
func (c *chunks) finish(out []byte, last bool) error {
	var crlf [2]byte
	n, err := io.ReadFull(c.in, crlf[:])
	switch {
	case err == io.EOF && n == 0 && last:
	case err != nil:
		return short(err)
	case crlf != [2]byte{'\r', '\n'}:
		return errChunk
	default:
		out = append(out, crlf[:]...)
	}
	c.out = out
	return nil
}

// trail adds the trailer, signed anew. Its text to be signed has a line for each
// field, in the order of the wire.
func (c *chunks) trail(out []byte) error {
	var text strings.Builder
	for range mostTrailer {
		line, err := c.line()
		if err != nil {
			return err
		}
		end := len(strings.TrimRight(line, "\r\n"))
		name, value, ok := strings.Cut(line[:end], ":")
		switch {
		case end == 0: // some clients set the fields off by an empty line
			if text.Len() == 0 {
				return errChunk
			}
			out = append(out, line...)
		case !ok:
			return errChunk
		case !strings.EqualFold(name, "x-amz-trailer-signature"):
			text.WriteString(strings.ToLower(name) + ":" + strings.Trim(value, " \t") + "\n")
			out = append(out, line...)
		default:
			given := strings.Trim(value, " \t")
			if !isSignature(given) {
				return errChunk
			}
			signature := c.sign(algorithm+"-TRAILER", "", sha256.Sum256([]byte(text.String())))
			out = append(out, strings.Replace(line, given, signature, 1)...)
			return c.finish(out, true)
		}
	}
	return errChunk
}

// sign makes the next signature of the chain.
func (c *chunks) sign(kind, more string, sum [sha256.Size]byte) string {
	text := make([]byte, 0, 512)
	text = append(append(append(append(text, kind...), c.scope...), c.last...), '\n')
	if more != "" {
		text = append(append(text, more...), '\n')
	}
	return c.key.sign(hex.AppendEncode(text, sum[:]))
}

// end says that nothing follows the last chunk.
func (c *chunks) end() error {
	switch _, err := c.in.ReadByte(); err {
	case nil:
		return errChunk
	default:
		return err
	}
}

// room makes the memory of a chunk, and charges it.
func (c *chunks) room(size int) error {
	if size <= cap(c.buf) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.charge.take(int64(size-cap(c.buf))) {
		return errNoRoom
	}
	c.buf = make([]byte, 0, size)
	return nil
}

// short is the error of a body that ends in the middle of a chunk.
func short(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errChunk
	}
	return fmt.Errorf("reading a chunk to sign it: %w", err)
}

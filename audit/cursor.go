package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxLine is the longest line that is read: twice what the longest record
// takes, 64 names and 64 values of 2 KiB, each byte six in the file.
const maxLine = 4 << 20

var errLong = errors.New("a line is longer than any record")

// cursor walks over the whole lines of a chain, across its files, also while
// they grow. It keeps nothing of a line that is not whole yet.
type cursor struct {
	chain  Chain
	number int // of the file, from 1
	line   int // of the last line returned, from 1
	file   *os.File
	buf    []byte // read, not returned
	space  []byte
	offset int64 // in the file, of the end of buf
	next1  bool  // the next file was seen: this one is complete
}

func newCursor(c Chain) *cursor { return &cursor{chain: c, number: 1} }

func (c *cursor) close() {
	if c.file != nil {
		c.file.Close()
	}
}

// name is the path of the file of the last line.
func (c *cursor) name() string { return c.chain.file(c.number) }

// tornError is what stands at the end of a file that another one follows.
type tornError struct{ bytes int }

func (e tornError) Error() string {
	return fmt.Sprintf("the last line of the file is torn (%d bytes)", e.bytes)
}

// next returns the next whole line, without its line feed, until the following
// call. At the end it is io.EOF, and may be called again.
func (c *cursor) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(c.buf, '\n'); i >= 0 {
			line := c.buf[:i]
			c.buf = c.buf[i+1:]
			c.line++
			return line, nil
		}
		err := c.fill()
		if err == nil {
			continue
		}
		if err != io.EOF {
			return nil, err
		}
		if moved, err := c.advance(); err != nil || !moved {
			return nil, err
		}
	}
}

// rest is how many bytes stand behind the last whole line.
func (c *cursor) rest() int { return len(c.buf) }

// fill reads more. Its error is io.EOF where there is no more now.
func (c *cursor) fill() error {
	if c.file == nil {
		f, err := os.Open(c.name())
		if err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
		c.file, c.offset, c.line = f, 0, 0
	}
	if len(c.buf) >= maxLine {
		return c.skipLong()
	}
	if c.rest() > 0 && c.shrunk() {
		// What was torn has been moved aside.
		c.offset -= int64(len(c.buf))
		c.buf = nil
	}
	if len(c.buf) > len(c.space)/2 || c.space == nil {
		c.space = make([]byte, max(64<<10, 4*len(c.buf)))
	}
	kept := copy(c.space, c.buf)
	n, err := c.file.ReadAt(c.space[kept:], c.offset)
	c.buf = c.space[:kept+n]
	c.offset += int64(n)
	if n > 0 {
		return nil
	}
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading the record: %w", err)
	}
	return io.EOF
}

// shrunk says that the file ends before what was read of it.
func (c *cursor) shrunk() bool {
	info, err := c.file.Stat()
	return err == nil && info.Size() < c.offset
}

// skipLong gives up a line that is no record.
func (c *cursor) skipLong() error {
	c.line++
	for {
		n, err := c.file.ReadAt(c.space[:64<<10], c.offset)
		if i := bytes.IndexByte(c.space[:n], '\n'); i >= 0 {
			c.offset += int64(i) + 1
			break
		}
		c.offset += int64(n)
		if err != nil {
			break
		}
	}
	c.buf = nil
	return errLong
}

// advance goes on to the next file, if there is one. A file is complete when
// the next one exists, but perhaps was not when its end was met: it is read
// once more in between.
func (c *cursor) advance() (bool, error) {
	if !c.next1 {
		_, err := os.Lstat(c.chain.file(c.number + 1))
		if errors.Is(err, fs.ErrNotExist) {
			return false, io.EOF
		}
		if err != nil {
			return false, fmt.Errorf("reading the record: %w", err)
		}
		c.next1 = true
		return true, nil
	}
	torn := len(c.buf)
	if torn > 0 {
		c.buf = nil
		c.line++
		return false, tornError{torn}
	}
	c.file.Close()
	c.file, c.buf, c.next1 = nil, nil, false
	c.number++
	return true, nil
}

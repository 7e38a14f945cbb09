package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// ending is what the last file of a chain ends with.
type ending struct {
	size int64  // up to the last line feed
	prev []byte // hash of the last whole line, empty if there is none
	torn int64  // bytes behind it
}

// readEnding finds the last whole line from the end, without reading the rest.
func readEnding(f *os.File) (ending, error) {
	end, start, err := findEnding(f)
	if err != nil {
		return ending{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return ending{}, err
	}
	e := ending{size: end, torn: info.Size() - end}
	if end == 0 {
		return e, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, start, end-1-start)); err != nil {
		return ending{}, err
	}
	e.prev = appendHash(nil, [sha256.Size]byte(h.Sum(nil)))
	return e, nil
}

// findEnding returns where the last whole line ends, its line feed included,
// and where it begins; 0 and 0 if there is none.
func findEnding(f *os.File) (end, start int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if end, err = lastFeed(f, info.Size()); err != nil || end == 0 {
		return 0, 0, err
	}
	start, err = lastFeed(f, end-1)
	return end, start, err
}

// lastFeed returns the offset behind the last line feed before end, 0 if there
// is none.
func lastFeed(f io.ReaderAt, end int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end > 0 {
		n := min(end, int64(len(block)))
		if _, err := f.ReadAt(block[:n], end-n); err != nil && !(errors.Is(err, io.EOF)) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// moveAside copies what stands behind the last whole line to a file next to
// the record, NAME.torn, and cuts it off. The copy is on the disk first: a
// crash in between leaves both.
func moveAside(root *os.Root, name string, f *os.File, e ending) error {
	aside, err := newAside(root, name)
	if err != nil {
		return fmt.Errorf("moving a torn line aside: %w", err)
	}
	_, err = io.Copy(aside, io.NewSectionReader(f, e.size, e.torn))
	err = errors.Join(err, aside.Sync(), aside.Close())
	if err == nil {
		err = f.Truncate(e.size)
	}
	if err != nil {
		return fmt.Errorf("moving a torn line aside: %w", err)
	}
	return nil
}

func newAside(root *os.Root, name string) (*os.File, error) {
	for n := 1; ; n++ {
		as := name + ".torn"
		if n > 1 {
			as += "." + strconv.Itoa(n)
		}
		f, err := root.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

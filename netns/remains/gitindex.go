package remains

import (
	"bytes"
	"encoding/binary"
	"errors"
)

const (
	indexMost = 64 << 20 // bytes of an index that is read
	gitlink   = 0o160000 // mode of an entry that is another repository's
)

var errIndex = errors.New("reading an index: it is none that is understood")

// gitlinks are the paths of an index (versions 2 to 4) that are repositories of
// their own: git status on the host goes into each of them. sum is the length of
// a hash there. A split index is not understood.
func gitlinks(index []byte, sum int) ([]string, error) {
	if len(index) < 12 || string(index[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	var links []string
	var name []byte
	rest := index[12:]
	for range count {
		fixed := 40 + sum + 2
		if len(rest) < fixed {
			return nil, errIndex
		}
		mode, flags := binary.BigEndian.Uint32(rest[24:]), binary.BigEndian.Uint16(rest[40+sum:])
		if flags&0x4000 != 0 && version > 2 {
			fixed += 2
		}
		if len(rest) < fixed {
			return nil, errIndex
		}
		text := rest[fixed:]
		keep := 0
		if version == 4 {
			strip, n := prefixLength(text)
			if n == 0 || strip > len(name) {
				return nil, errIndex
			}
			keep, text = len(name)-strip, text[n:]
		}
		end := bytes.IndexByte(text, 0)
		if end < 0 {
			return nil, errIndex
		}
		name = append(name[:keep], text[:end]...)
		if mode&0o170000 == gitlink {
			links = append(links, string(name))
		}
		taken := len(rest) - len(text) + end + 1
		if version < 4 {
			taken = (fixed + end + 8) &^ 7
		}
		if taken > len(rest) {
			return nil, errIndex
		}
		rest = rest[taken:]
	}
	return links, unsplit(rest, sum)
}

// prefixLength reads how much of the name before is dropped, and its own length.
func prefixLength(text []byte) (strip, n int) {
	for i, c := range text[:min(len(text), 5)] {
		if strip = strip<<7 | int(c&0x7f); c&0x80 == 0 {
			return strip, i + 1
		}
		strip++
	}
	return 0, 0
}

// unsplit refuses an index whose entries lie in another file as well.
func unsplit(rest []byte, sum int) error {
	for len(rest) >= 8+sum {
		size := int(binary.BigEndian.Uint32(rest[4:]))
		if string(rest[:4]) == "link" || size > len(rest)-8 {
			return errIndex
		}
		rest = rest[8+size:]
	}
	return nil
}

//go:build linux

package netns

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile is a file in memory that holds data, read from its start. What a
// control cannot carry in one message, or an argument list would show, goes
// by it.
func memoryFile(name string, data ...[]byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	for _, d := range data {
		if _, err := f.Write(d); err != nil {
			return nil, errors.Join(fmt.Errorf("filling a file in memory: %w", err), f.Close())
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("filling a file in memory: %w", err), f.Close())
	}
	return f, nil
}

// parcel is a value as JSON with bytes behind it that JSON would be slow for.
func parcel(name string, value any, blobs ...[]byte) (*os.File, error) {
	head, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", name, err)
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return memoryFile(name, append([][]byte{size, head}, blobs...)...)
}

// unparcel reads what parcel wrote; the blobs come in one piece. It reads from
// the start, wherever an earlier reader has left the file.
func unparcel(f *os.File, value any) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	return decode(f.Name(), data, value)
}

// unparcelMapped is unparcel without a copy: the blobs are there until forget
// is called.
func unparcelMapped(f *os.File, value any) (blobs []byte, forget func() error, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	blobs, err = decode(f.Name(), data, value)
	return blobs, func() error { return unix.Munmap(data) }, err
}

// decode reads the value at the start of a parcel.
func decode(name string, data []byte, value any) ([]byte, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("reading %s: it is cut short", name)
	}
	size := binary.LittleEndian.Uint64(data)
	data = data[8:]
	if size > uint64(len(data)) {
		return nil, fmt.Errorf("reading %s: it is cut short", name)
	}
	if err := json.Unmarshal(data[:size], value); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data[size:], nil
}

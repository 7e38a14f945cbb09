package source

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// file reads a regular file of at most 1 MiB; links to one will do, since
// secrets are often mounted as such. Nothing else is read: a pipe or a device
// might give another secret, or none, to the next reader.
func (c Config) file(path string) ([]byte, error) {
	path, err := c.expand(path)
	if err != nil {
		return nil, err
	}
	// O_NONBLOCK, so that opening a pipe does not wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(data) > maxSecret {
		return nil, errTooLong
	}
	return data, nil
}

// bare is the system's word alone: the path was named already.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

package redact

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// whole scans an answer that turns out to be short before its head goes out, and
// gives it the length that it then has. What is too long comes back, to be
// scanned as it streams.
func (s *sieve) whole(res *http.Response, src io.Reader, how kind) (rest io.Reader, err error) {
	data, err := readWhole(src, res.ContentLength)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(data) > mostWhole {
		return io.MultiReader(bytes.NewReader(data), src), nil
	}
	clean, entries, err := s.text(data, how)
	if err != nil {
		return nil, err
	}
	s.note(entries)
	if len(entries) > 0 {
		dropSums(res.Header)
		delete(res.Header, "Etag")
	}
	res.ContentLength = int64(len(clean))
	res.Header["Content-Length"] = []string{strconv.Itoa(len(clean))}
	body := &scanned{Closer: res.Body}
	body.Reset(clean)
	res.Body = body
	return nil, nil
}

// readWhole reads to the end, or a byte more than may be held; the length is
// about what will come.
func readWhole(src io.Reader, length int64) ([]byte, error) {
	data := make([]byte, 0, min(length, mostWhole)+1) // the end comes with the last byte, or behind it
	for len(data) <= mostWhole {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := src.Read(data[len(data):min(cap(data), mostWhole+1)])
		if data = data[:len(data)+n]; err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// scanned is a body that is safe already.
type scanned struct {
	bytes.Reader
	io.Closer
}

// text scans a body that is whole.
func (s *sieve) text(data []byte, how kind) (clean []byte, entries []string, err error) {
	if how == kindText {
		set, _ := s.sets()
		clean, entries = set.Text(data)
		return clean, entries, nil
	}
	scan := s.scanner(how)
	clean, err = scan.Write(make([]byte, 0, len(data)), data)
	if err != nil {
		return nil, nil, err
	}
	clean = scan.Close(clean)
	return clean, scan.Entries(), nil
}

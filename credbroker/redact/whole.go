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
	data, err := io.ReadAll(io.LimitReader(src, mostWhole+1))
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
	res.Body = &scanned{bytes.NewReader(clean), res.Body}
	return nil, nil
}

// scanned is a body that is safe already.
type scanned struct {
	*bytes.Reader
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

package redact

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// isGzip reads Content-Encoding (RFC 9110 section 8.4): one gzip or none.
// Anything else is a refusal.
func isGzip(h http.Header) (bool, error) {
	found := false
	for _, line := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			switch strings.ToLower(strings.Trim(coding, " \t")) {
			case "", "identity":
			case "gzip", "x-gzip":
				if found {
					return false, errCoding
				}
				found = true
			default:
				return false, errCoding
			}
		}
	}
	return found, nil
}

// gunzip decodes as the bytes come: what the origin flushed is there at once,
// and however much a small answer unfolds to, no more than a read is held.
type gunzip struct {
	src io.Reader
	zip *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.zip == nil {
		zip, err := gzip.NewReader(bufio.NewReaderSize(g.src, readSize/2))
		if err != nil {
			return 0, gzipFault(err) // io.EOF where there is no body at all
		}
		g.zip = zip
	}
	n, err := g.zip.Read(p)
	return n, gzipFault(err)
}

// gzipFault tells what is no gzip from what the connection says.
func gzipFault(err error) error {
	var corrupt flate.CorruptInputError
	var internal flate.InternalError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) || errors.As(err, &internal) {
		return errGzip
	}
	return err
}

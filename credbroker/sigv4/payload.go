package sigv4

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// mostHeld is how much of a body, or of a chunk, is held to be hashed, in bytes.
const mostHeld = 16 << 20

// emptyHash is the SHA-256 of nothing.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// payload is how the body counts in the signature.
type payload struct {
	hash            string // the last line of the canonical request
	chunks, trailer bool   // the body signs its chunks, and a trailer
}

// payload reads what the client says of its body in x-amz-content-sha256, and
// holds the body where it says nothing or where its action is to be read.
func (q *Request) payload(r *http.Request, list params, opts Options) (p payload, err error) {
	lines := r.Header["X-Amz-Content-Sha256"]
	if len(lines) > 1 {
		return p, errMalformed
	}
	if len(lines) == 1 {
		p.hash = strings.Trim(lines[0], " \t")
	} else if q.How == Query {
		p.hash = list.value("X-Amz-Content-Sha256")
		if p.hash == "" && slices.Contains(oneEncoding, q.Service) {
			p.hash = "UNSIGNED-PAYLOAD"
		}
	}
	switch p.hash {
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
		p.chunks = true
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
		p.chunks, p.trailer = true, true
	case "STREAMING-AWS4-HMAC-SHA256-EVENTS":
		return p, errEvents
	default:
		if strings.HasPrefix(p.hash, "STREAMING-AWS4-ECDSA") {
			return p, errSigV4A
		}
	}
	service := judgedAs(q.Service, r.URL.Host)
	judged := !opts.Issue && issues(service)
	if judged && p.chunks {
		return p, errUnread
	}
	if p.hash != "" && !judged {
		return p, nil
	}
	body, err := hold(r, opts.Reserve)
	if err != nil {
		return p, err
	}
	if judged {
		if err := judge(service, r, body); err != nil {
			return p, err
		}
	}
	if p.hash == "" {
		sum := sha256.Sum256(body)
		p.hash = hex.EncodeToString(sum[:])
	}
	return p, nil
}

// hold reads the whole body and puts it back. The bytes do not change.
func hold(r *http.Request, reserve func(int64) bool) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if h, ok := r.Body.(*held); ok {
		return h.all, nil
	}
	if r.ContentLength > mostHeld {
		return nil, errTooLarge
	}
	delete(r.Header, "Expect") // the client's body is asked for here
	c := charge{reserve: reserve}
	size := 4 << 10
	if r.ContentLength > 0 {
		size = int(min(r.ContentLength+1, 64<<10))
	}
	var all []byte
	for {
		if len(all) == cap(all) {
			if !c.take(int64(size - cap(all))) {
				c.free()
				return nil, errNoRoom
			}
			all = append(make([]byte, 0, size), all...)[:len(all):size]
			size = min(2*size, mostHeld+1)
		}
		n, err := r.Body.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		if len(all) > mostHeld {
			c.free()
			return nil, errTooLarge
		}
		if err == io.EOF {
			r.Body = &held{Reader: bytes.NewReader(all), all: all, src: r.Body, charge: c}
			return all, nil
		}
		if err != nil {
			c.free()
			return nil, fmt.Errorf("reading the body to sign it: %w", err)
		}
	}
}

// held is a body that was read whole.
type held struct {
	*bytes.Reader
	all    []byte
	src    io.Closer
	once   sync.Once
	charge charge
}

// Close gives back what was charged, and closes the client's body.
func (h *held) Close() error {
	h.once.Do(func() { h.charge.free() })
	return h.src.Close()
}

// charge is what was reserved of a budget.
type charge struct {
	reserve func(int64) bool
	taken   int64
}

func (c *charge) take(n int64) bool {
	if c.reserve != nil && !c.reserve(n) {
		return false
	}
	c.taken += n
	return true
}

func (c *charge) free() {
	if c.reserve != nil && c.taken > 0 {
		c.reserve(-c.taken)
	}
	c.taken = 0
}

package proxytest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Field is one header line, its name as it was written.
type Field struct{ Name, Value string }

// Message is one request or answer of HTTP/1 as it stood on the wire.
type Message struct {
	Line     string  // the first line, without its end
	Fields   []Field // in order
	Body     string  // without framing
	Trailers []Field
}

// Values returns the values of every field of that name, in order.
func Values(fields []Field, name string) []string {
	var values []string
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// Framing says how a body is delimited (RFC 9112 section 6.3).
type Framing struct {
	Chunked  bool
	TillEnd  bool // the body ends with the connection
	Length   int  // without Chunked and TillEnd
	NoFields bool // neither length nor coding was named
}

// ParseHead reads one head from the beginning of b: n is its length, 0 while it
// is not whole. It accepts nothing that RFC 9112 only lets a lenient parser
// accept: lines end in CRLF, names are tokens, values hold no control byte but
// the tab, nothing is folded.
func ParseHead(b []byte) (m Message, n int, err error) {
	line, rest, ok := cutLine(b)
	if !ok {
		return m, 0, checkPart(b)
	}
	m.Line = string(line)
	if m.Line == "" {
		return m, 0, errors.New("reading head: empty first line")
	}
	if bad := strings.IndexFunc(m.Line, func(r rune) bool { return r < 0x20 || r == 0x7f }); bad >= 0 {
		return m, 0, fmt.Errorf("reading head: control byte in %q", m.Line)
	}
	fields, k, err := parseFields(rest)
	if err != nil || k == 0 {
		return m, 0, err
	}
	m.Fields = fields
	return m, len(b) - len(rest) + k, nil
}

// parseFields reads field lines up to and with the empty line; n is 0 while
// that has not come.
func parseFields(b []byte) (fields []Field, n int, err error) {
	rest := b
	for {
		line, after, ok := cutLine(rest)
		if !ok {
			return nil, 0, checkPart(rest)
		}
		rest = after
		if len(line) == 0 {
			return fields, len(b) - len(rest), nil
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || name == "" || strings.IndexFunc(name, notToken) >= 0 {
			return nil, 0, fmt.Errorf("reading fields: bad name in %q", line)
		}
		value = strings.Trim(value, " \t")
		for i := range len(value) {
			if c := value[i]; c < 0x20 && c != '\t' || c == 0x7f {
				return nil, 0, fmt.Errorf("reading fields: control byte in %q", line)
			}
		}
		fields = append(fields, Field{name, value})
	}
}

// cutLine cuts one line that ends in CRLF off b.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	return bytes.Cut(b, []byte("\r\n"))
}

// checkPart refuses a bare CR or LF in a line that has not ended.
func checkPart(b []byte) error {
	if bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(bytes.TrimSuffix(b, []byte("\r")), '\r') >= 0 {
		return fmt.Errorf("reading head: bare CR or LF in %q", b)
	}
	return nil
}

func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
}

// RequestFraming checks the request line and says how its body is framed. What
// two servers could read in two ways is an error.
func RequestFraming(m Message) (Framing, error) {
	parts := strings.Split(m.Line, " ")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] != "HTTP/1.1" {
		return Framing{}, fmt.Errorf("reading request: bad request line %q", m.Line)
	}
	if len(Values(m.Fields, "Host")) != 1 {
		return Framing{}, fmt.Errorf("reading request: %d Host fields", len(Values(m.Fields, "Host")))
	}
	return framing(m.Fields)
}

// AnswerFraming says how the body of an answer to method is framed.
func AnswerFraming(m Message, method string, status int) (Framing, error) {
	f, err := framing(m.Fields)
	switch {
	case err != nil:
		return f, err
	case method == "HEAD" || status < 200 || status == 204 || status == 304,
		method == "CONNECT" && status/100 == 2:
		return Framing{}, nil
	case f.NoFields:
		return Framing{TillEnd: true}, nil
	}
	return f, nil
}

// Status reads the status of an answer's first line.
func Status(line string) (int, error) {
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return 0, fmt.Errorf("reading answer: bad status line %q", line)
	}
	return status, nil
}

func framing(fields []Field) (Framing, error) {
	lengths, codings := Values(fields, "Content-Length"), Values(fields, "Transfer-Encoding")
	switch {
	case len(lengths)+len(codings) > 1:
		return Framing{}, fmt.Errorf("reading framing: lengths %q and codings %q", lengths, codings)
	case len(codings) == 1:
		if !strings.EqualFold(codings[0], "chunked") {
			return Framing{}, fmt.Errorf("reading framing: coding %q", codings[0])
		}
		return Framing{Chunked: true}, nil
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 31)
		if err != nil {
			return Framing{}, fmt.Errorf("reading framing: %w", err)
		}
		return Framing{Length: int(n)}, nil
	}
	return Framing{NoFields: true}, nil
}

// ParseBody reads the body at the beginning of b into m. n is its length with
// framing, and whole says whether it has ended; a body that has not is put into
// m as far as it came. end says that no more bytes will come.
func ParseBody(m *Message, f Framing, b []byte, end bool) (n int, whole bool, err error) {
	switch {
	case f.Chunked:
		return parseChunks(m, b)
	case f.TillEnd:
		m.Body = string(b)
		return len(b), end, nil
	case len(b) < f.Length:
		m.Body = string(b)
		return len(b), false, nil
	}
	m.Body = string(b[:f.Length])
	return f.Length, true, nil
}

func parseChunks(m *Message, b []byte) (n int, whole bool, err error) {
	var body []byte
	rest := b
	defer func() { m.Body = string(body) }()
	for {
		line, after, ok := cutLine(rest)
		if !ok {
			return 0, false, checkPart(rest)
		}
		size, _, _ := strings.Cut(string(line), ";")
		k, err := strconv.ParseUint(size, 16, 31)
		if err != nil {
			return 0, false, fmt.Errorf("reading chunk size: %w", err)
		}
		rest = after
		if k == 0 {
			fields, k, err := parseFields(rest)
			if err != nil || k == 0 {
				return 0, false, err
			}
			m.Trailers = fields
			return len(b) - len(rest) + k, true, nil
		}
		if len(rest) < int(k)+2 {
			body = append(body, rest[:min(len(rest), int(k))]...)
			return 0, false, nil
		}
		if rest[k] != '\r' || rest[k+1] != '\n' {
			return 0, false, fmt.Errorf("reading chunk: %q behind %d bytes", rest[k:k+2], k)
		}
		body = append(body, rest[:k]...)
		rest = rest[k+2:]
	}
}

package proxytest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// awsRequest is what a request to the fake S3 says of its signature, and how
// the server reads it. It shares no code with what is tested.
type awsRequest struct {
	How       string // header, presigned, anonymous
	Payload   string // x-amz-content-sha256, or what stands for it
	KeyID     string
	Scope     string // day/region/service/aws4_request
	Time      string
	Token     string
	Expires   int
	Signed    []string
	Signature string
	Body      []byte // decoded
}

var (
	awsAuth  = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/,]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$`)
	awsScope = regexp.MustCompile(`^\d{8}/[a-z0-9-]+/[a-z0-9-]+/aws4_request$`)
	awsChunk = regexp.MustCompile(`^([0-9a-fA-F]+)(?:;chunk-signature=([0-9a-f]{64}))?\r\n$`)
)

// readAWS reads the signature of a request, wherever it is.
func readAWS(r *http.Request) (*awsRequest, error) {
	a := &awsRequest{How: "anonymous"}
	query := r.URL.Query()
	auth, presigned := r.Header["Authorization"], query.Has("X-Amz-Signature") || query.Has("X-Amz-Credential")
	switch {
	case len(auth) > 1, len(auth) == 1 && presigned:
		return nil, errors.New("InvalidArgument")
	case len(auth) == 1:
		m := awsAuth.FindStringSubmatch(auth[0])
		if m == nil {
			return nil, errors.New("AuthorizationHeaderMalformed")
		}
		a.How, a.KeyID, a.Scope, a.Signed, a.Signature = "header", m[1], m[2], strings.Split(m[3], ";"), m[4]
		a.Time, a.Token, a.Payload = r.Header.Get("X-Amz-Date"), r.Header.Get("X-Amz-Security-Token"), r.Header.Get("X-Amz-Content-Sha256")
	case presigned:
		for _, name := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"} {
			if len(query[name]) != 1 {
				return nil, errors.New("AuthorizationQueryParametersError")
			}
		}
		a.How, a.Time, a.Token, a.Signature = "presigned", query.Get("X-Amz-Date"), query.Get("X-Amz-Security-Token"), query.Get("X-Amz-Signature")
		a.KeyID, a.Scope, _ = strings.Cut(query.Get("X-Amz-Credential"), "/")
		a.Signed = strings.Split(query.Get("X-Amz-SignedHeaders"), ";")
		a.Expires, _ = strconv.Atoi(query.Get("X-Amz-Expires"))
		if a.Payload = r.Header.Get("X-Amz-Content-Sha256"); a.Payload == "" && strings.HasSuffix(a.Scope, "/s3/aws4_request") {
			a.Payload = "UNSIGNED-PAYLOAD"
		}
	default:
		return a, nil
	}
	if !awsScope.MatchString(a.Scope) || !strings.HasPrefix(a.Time, a.Scope[:8]) {
		return nil, errors.New("AuthorizationHeaderMalformed")
	}
	return a, nil
}

// verify says what is wrong with a signed request: its time, its key, its
// signature, or its body, which is read and decoded.
func (s *S3) verify(a *awsRequest, r *http.Request) error {
	wire, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return errors.New("IncompleteBody")
	}
	if a.Body = wire; a.How == "anonymous" {
		return nil
	}
	if err := s.timely(a); err != nil {
		return err
	}
	if a.KeyID != s.KeyID {
		return errors.New("InvalidAccessKeyId")
	}
	if a.Token != s.Token {
		return errors.New("InvalidToken")
	}
	if !slices.Contains(a.Signed, "host") || !slices.IsSorted(a.Signed) {
		return errors.New("AccessDenied")
	}
	for name := range r.Header {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-amz-") && !slices.Contains(a.Signed, low) {
			return errors.New("AccessDenied")
		}
	}
	service := strings.Split(a.Scope, "/")[2]
	if a.Payload == "" {
		if a.Payload = sum(wire); service == "s3" {
			return errors.New("MissingSecurityHeader")
		}
	}
	text := "AWS4-HMAC-SHA256\n" + a.Time + "\n" + a.Scope + "\n" + sum([]byte(canonicalAWS(a, r, service)))
	if want := s.hmac(a, text); want != a.Signature {
		return errors.New("SignatureDoesNotMatch")
	}
	return s.payload(a, r, wire)
}

// timely looks at the time of a request, and how long it was to last.
func (s *S3) timely(a *awsRequest) error {
	at, err := time.Parse("20060102T150405Z", a.Time)
	if err != nil {
		return errors.New("AccessDenied")
	}
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	late := now.Sub(at)
	switch {
	case late < -15*time.Minute, a.How == "header" && late > 15*time.Minute:
		return errors.New("RequestTimeTooSkewed")
	case a.How == "presigned" && (a.Expires < 1 || a.Expires > 604800):
		return errors.New("AuthorizationQueryParametersError")
	case a.How == "presigned" && late > time.Duration(a.Expires)*time.Second:
		return errors.New("ExpiredToken")
	}
	return nil
}

// hmac signs a text with the key that is derived from the real secret.
func (s *S3) hmac(a *awsRequest, text string) string {
	key := []byte("AWS4" + s.Secret)
	for _, step := range append(strings.Split(a.Scope, "/"), text) {
		mac := hmac.New(sha256.New, key)
		io.WriteString(mac, step)
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func sum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// canonicalAWS is the canonical request, from the raw target of the wire.
func canonicalAWS(a *awsRequest, r *http.Request, service string) string {
	path, rawQuery, _ := strings.Cut(r.RequestURI, "?")
	if service == "s3" {
		path, _ = url.PathUnescape(path)
	}
	var query []string
	for _, pair := range strings.FieldsFunc(rawQuery, func(c rune) bool { return c == '&' }) {
		name, value, _ := strings.Cut(pair, "=")
		name, _ = url.QueryUnescape(name)
		value, _ = url.QueryUnescape(value)
		if name != "X-Amz-Signature" {
			query = append(query, uriEncode(name, "")+"="+uriEncode(value, ""))
		}
	}
	// "=" sorts behind the digits, but a name must come before its longer ones.
	slices.SortFunc(query, func(x, y string) int {
		return strings.Compare(strings.Replace(x, "=", "\x00", 1), strings.Replace(y, "=", "\x00", 1))
	})
	fields := ""
	for _, name := range a.Signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		fields += name + ":" + strings.Join(strings.FieldsFunc(value, func(c rune) bool { return c == ' ' }), " ") + "\n"
	}
	return strings.Join([]string{r.Method, uriEncode(path, "/"), strings.Join(query, "&"), fields, strings.Join(a.Signed, ";"), a.Payload}, "\n")
}

func uriEncode(s, keep string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"+keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// payload looks whether the body is the one that was signed, and decodes it.
func (s *S3) payload(a *awsRequest, r *http.Request, wire []byte) error {
	var trailer http.Header
	var err error
	switch a.Payload {
	case "UNSIGNED-PAYLOAD":
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		if a.Body, trailer, err = s.unchunk(a, wire); err != nil {
			return err
		}
		if n := r.Header.Get("X-Amz-Decoded-Content-Length"); n != strconv.Itoa(len(a.Body)) {
			return errors.New("IncompleteBody")
		}
		if names := r.Header.Get("X-Amz-Trailer"); names != "" && trailer.Get(names) == "" {
			return errors.New("MalformedTrailerError")
		}
	default:
		if a.Payload != sum(wire) {
			return errors.New("XAmzContentSHA256Mismatch")
		}
	}
	for _, h := range []http.Header{r.Header, trailer} {
		if want := h.Get("X-Amz-Checksum-Crc32"); want != "" {
			c := crc32.ChecksumIEEE(a.Body)
			if want != base64.StdEncoding.EncodeToString([]byte{byte(c >> 24), byte(c >> 16), byte(c >> 8), byte(c)}) {
				return errors.New("BadDigest")
			}
		}
	}
	return nil
}

// unchunk decodes aws-chunked, and checks the signatures of chunks and trailer.
func (s *S3) unchunk(a *awsRequest, wire []byte) (data []byte, trailer http.Header, err error) {
	signed, last := a.Payload != "STREAMING-UNSIGNED-PAYLOAD-TRAILER", a.Signature
	check := func(kind, given string, lines ...string) error {
		last = s.hmac(a, strings.Join(append([]string{kind, a.Time, a.Scope, last}, lines...), "\n"))
		if last != given {
			return errors.New("SignatureDoesNotMatch")
		}
		return nil
	}
	for {
		n := bytes.IndexByte(wire, '\n') + 1
		m := awsChunk.FindStringSubmatch(string(wire[:n]))
		if m == nil || signed != (m[2] != "") {
			return nil, nil, errors.New("InvalidRequest")
		}
		size, err := strconv.ParseInt(m[1], 16, 32)
		if wire = wire[n:]; err != nil || int(size) > len(wire) {
			return nil, nil, errors.New("IncompleteBody")
		}
		chunk := wire[:size]
		wire = wire[size:]
		if signed {
			if err := check("AWS4-HMAC-SHA256-PAYLOAD", m[2], sum(nil), sum(chunk)); err != nil {
				return nil, nil, err
			}
		}
		data = append(data, chunk...)
		if size == 0 {
			break
		}
		var ok bool
		if wire, ok = bytes.CutPrefix(wire, []byte("\r\n")); !ok {
			return nil, nil, errors.New("InvalidRequest")
		}
	}
	trailer = http.Header{}
	text, given := "", ""
	for line := range strings.SplitSeq(string(wire), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		if name == "x-amz-trailer-signature" {
			given = value
			continue
		}
		trailer.Set(name, value)
		text += name + ":" + value + "\n"
	}
	if signed && strings.HasSuffix(a.Payload, "-TRAILER") {
		if err := check("AWS4-HMAC-SHA256-TRAILER", given, sum([]byte(text))); err != nil {
			return nil, nil, err
		}
	}
	return data, trailer, nil
}

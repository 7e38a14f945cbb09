package proxytest

import (
	"bytes"
	"crypto/md5"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// S3 is a fake of AWS that verifies what it gets: every signature with the real
// key, in the header or presigned, with its session token, its time, the hash of
// the body, and the signatures of chunks and trailers. It keeps objects in
// memory, path style (/BUCKET/KEY), with ranges and multipart uploads, enough
// for `aws s3 cp`; and it answers GetCallerIdentity of sts. Buckets need not be
// made. A request without a signature is 403, as in a private bucket.
//
// As AWS does, it quotes the key id and the signature where it refuses one.
type S3 struct {
	KeyID, Secret string
	// Token is the session token that requests must have; "" for none.
	Token string
	// Now is the clock; nil for the real one.
	Now func() time.Time

	mu      sync.Mutex
	objects map[string][]byte // by path
	parts   map[string]map[int][]byte
	seen    []S3Request
}

// S3Request is one that reached the fake, and what it made of it.
type S3Request struct {
	Method, Target string
	// How is header, presigned or anonymous; Payload x-amz-content-sha256 or what
	// stands for it.
	How, Payload string
	Signature    string
	Expires      int    // seconds, of a presigned one
	Range        string // as asked for
	Fault        string // the code of the error; "" where all was right
}

// Seen are the requests up to now.
func (s *S3) Seen() []S3Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Object is what is stored under /BUCKET/KEY, nil for nothing.
func (s *S3) Object(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[path]
}

// ServeHTTP verifies and answers one request.
func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := S3Request{Method: r.Method, Target: r.RequestURI, Range: r.Header.Get("Range")}
	a, err := readAWS(r)
	if err == nil {
		err = s.verify(a, r)
		seen.How, seen.Payload, seen.Signature, seen.Expires = a.How, a.Payload, a.Signature, a.Expires
	}
	if err != nil {
		seen.Fault = err.Error()
	} else if a.How == "anonymous" {
		seen.Fault = "AccessDenied"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, seen)
	if seen.Fault != "" {
		quoted := ""
		if a != nil {
			quoted = fmt.Sprintf("<AWSAccessKeyId>%s</AWSAccessKeyId><SignatureProvided>%s</SignatureProvided>", a.KeyID, a.Signature)
		}
		answerXML(w, http.StatusForbidden, "<Error><Code>"+seen.Fault+"</Code>"+quoted+"</Error>")
		return
	}
	if strings.HasSuffix(a.Scope, "/sts/aws4_request") {
		answerXML(w, http.StatusOK, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::000000000000:user/fake</Arn><UserId>FAKE</UserId><Account>000000000000</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
		return
	}
	s.serve(w, r, a.Body)
}

func answerXML(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// serve does what a request asks for. The caller has the lock.
func (s *S3) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	if s.objects == nil {
		s.objects, s.parts = map[string][]byte{}, map[string]map[int][]byte{}
	}
	path, query := r.URL.Path, r.URL.Query()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case key == "" && r.Method == "GET":
		s.list(w, bucket, query.Get("prefix"))
	case query.Has("uploads") && r.Method == "POST":
		id := strconv.Itoa(len(s.parts) + 1)
		s.parts[id] = map[int][]byte{}
		answerXML(w, 200, "<InitiateMultipartUploadResult><Bucket>"+bucket+"</Bucket><Key>"+escapeXML(key)+"</Key><UploadId>"+id+"</UploadId></InitiateMultipartUploadResult>")
	case query.Has("uploadId"):
		s.multipart(w, r, path, body)
	case r.Method == "PUT":
		s.objects[path] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == "DELETE":
		delete(s.objects, path)
		w.WriteHeader(http.StatusNoContent)
	default:
		object, ok := s.objects[path]
		if !ok {
			answerXML(w, 404, "<Error><Code>NoSuchKey</Code></Error>")
			return
		}
		w.Header().Set("ETag", etag(object))
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Unix(1700000000, 0), bytes.NewReader(object))
	}
}

// multipart takes a part, or puts the object together.
func (s *S3) multipart(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	id := r.URL.Query().Get("uploadId")
	parts := s.parts[id]
	if parts == nil {
		answerXML(w, 404, "<Error><Code>NoSuchUpload</Code></Error>")
		return
	}
	switch r.Method {
	case "PUT":
		n, err := strconv.Atoi(r.URL.Query().Get("partNumber"))
		if err != nil || n < 1 {
			answerXML(w, 400, "<Error><Code>InvalidArgument</Code></Error>")
			return
		}
		parts[n] = body
		w.Header().Set("ETag", etag(body))
	case "POST":
		var done struct {
			Part []struct {
				PartNumber int
				ETag       string
			}
		}
		if xml.Unmarshal(body, &done) != nil {
			answerXML(w, 400, "<Error><Code>MalformedXML</Code></Error>")
			return
		}
		var whole []byte
		for _, p := range done.Part {
			if etag(parts[p.PartNumber]) != p.ETag {
				answerXML(w, 400, "<Error><Code>InvalidPart</Code></Error>")
				return
			}
			whole = append(whole, parts[p.PartNumber]...)
		}
		s.objects[path] = whole
		delete(s.parts, id)
		answerXML(w, 200, "<CompleteMultipartUploadResult><ETag>"+escapeXML(etag(whole))+"</ETag></CompleteMultipartUploadResult>")
	default:
		delete(s.parts, id)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *S3) list(w http.ResponseWriter, bucket, prefix string) {
	var names []string
	for path := range s.objects {
		if key, ok := strings.CutPrefix(path, "/"+bucket+"/"); ok && strings.HasPrefix(key, prefix) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, key := range names {
		object := s.objects["/"+bucket+"/"+key]
		fmt.Fprintf(&b, "<Contents><Key>%s</Key><LastModified>2023-11-14T22:13:20.000Z</LastModified><ETag>%s</ETag><Size>%d</Size></Contents>",
			escapeXML(key), escapeXML(etag(object)), len(object))
	}
	answerXML(w, 200, fmt.Sprintf("<ListBucketResult><Name>%s</Name><IsTruncated>false</IsTruncated><KeyCount>%d</KeyCount>%s</ListBucketResult>", bucket, len(names), b.String()))
}

func etag(b []byte) string { return fmt.Sprintf(`"%x"`, md5.Sum(b)) }

func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

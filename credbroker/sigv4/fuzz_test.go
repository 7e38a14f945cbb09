package sigv4_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/egressd/egressd/credbroker/sigv4"
)

// Whatever is recognised can be signed; what is signed bears the real key in the
// place of the client's, and is recognised and signed again as it is.
func FuzzRecognise(f *testing.F) {
	auth := authorization(placeID, "20261130/us-east-1/s3", "host;x-amz-date", zeros)
	f.Add("/b/k", "a=b&c", auth, "20261130T120000Z", placeToken, "UNSIGNED-PAYLOAD", "body")
	f.Add("/b//k/../x", strings.TrimPrefix(presigned(), "https://store.test/b/k?"), "", "", "", "", "")
	f.Add("/", "Action=GetSessionToken", strings.Replace(auth, "s3", "sts", 1), "20261130T120000Z", "", "", "Action=AssumeRole")
	f.Add("/%2F+", "X-Amz-Expires=1", auth, "x", "", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", chunked([]byte("x"), 1, "\r\n"))
	f.Fuzz(func(t *testing.T, path, query, auth, date, token, hash, body string) {
		r := &http.Request{Method: "POST", Host: "store.test", URL: &url.URL{Scheme: "https", Host: "store.test", Opaque: "/" + path, RawQuery: query}, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
		for name, value := range map[string]string{"Authorization": auth, "X-Amz-Date": date, "X-Amz-Security-Token": token, "X-Amz-Content-Sha256": hash} {
			if value != "" {
				r.Header[name] = []string{value}
			}
		}
		q, err := sigv4.Recognise(r)
		if q == nil || err != nil {
			return
		}
		if q.Field("Authorization", q.KeyID) != (q.How == sigv4.Header) || q.Param("X-Amz-Credential", q.KeyID) != (q.How == sigv4.Query) {
			t.Fatalf("the key id is out of place: %+v", q)
		}
		opts := sigv4.Options{Key: key(keyID, keySecret, keyToken), Issue: true}
		signature, err := q.Sign(r, opts)
		if err != nil {
			return
		}
		again, err := sigv4.Recognise(r)
		if err != nil || again == nil || again.KeyID != keyID || again.Token != keyToken || again.How != q.How {
			t.Fatalf("what was signed is not recognised: %+v, %v\n%s %v", again, err, r.URL.RawQuery, r.Header)
		}
		if !strings.HasPrefix(hash, "STREAMING") {
			if second, err := again.Sign(r, opts); err != nil || second != signature {
				t.Fatalf("signed again: %s, %s, %v", signature, second, err)
			}
		}
	})
}

// A body in chunks goes out as it came but for the signatures, or breaks off.
func FuzzChunks(f *testing.F) {
	f.Add(chunked([]byte("hello, chunks"), 5, "\r\n"), false)
	f.Add(chunked([]byte("hello, chunks"), 5, crcTrailer([]byte("x"), "\r\n")), true)
	f.Add("5;chunk-signature="+zeros+"\r\nhello\r\n", true)
	blank := regexp.MustCompile(`[0-9a-f]{64}`)
	f.Fuzz(func(t *testing.T, body string, trailer bool) {
		kind := streaming
		if trailer {
			kind = trailing
		}
		r := upload(t, kind, body, 0)
		r.Body = io.NopCloser(iotest.OneByteReader(strings.NewReader(body)))
		sign(t, r, sigv4.Options{Key: key(keyID, keySecret, "")})
		out, err := io.ReadAll(r.Body)
		if err != nil && len(out) > len(body) || err == nil && len(out) != len(body) {
			t.Fatalf("%d bytes became %d, %v", len(body), len(out), err)
		}
		if err == nil && blank.ReplaceAllString(body, "") != blank.ReplaceAllString(string(out), "") {
			t.Fatalf("more than signatures changed:\n%q\n%q", body, out)
		}
	})
}

// No spelling of a query or form that net/url reads as a call for a key is
// signed.
func FuzzIssue(f *testing.F) {
	f.Add("Action=GetSessionToken", "", "application/x-www-form-urlencoded")
	f.Add("Action=GetCallerIdentity", "Version=1&%41ction=AssumeRole", "")
	f.Add("a;Action=CreateAccessKey", "", "application/json")
	f.Fuzz(func(t *testing.T, query, body, media string) {
		for service, harmless := range map[string][]string{"sts": {"GetCallerIdentity", "GetAccessKeyInfo", "DecodeAuthorizationMessage"}, "iam": nil} {
			r := &http.Request{Method: "POST", Host: "x.test", URL: &url.URL{Scheme: "https", Host: "x.test", Path: "/", RawQuery: query},
				Header: http.Header{"Content-Type": {media}, "X-Amz-Date": {"20261130T120000Z"}, "Authorization": {authorization(placeID, "20261130/us-east-1/"+service, "host", zeros)}},
				Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
			q, err := sigv4.Recognise(r)
			if err != nil {
				return
			}
			if _, err := q.Sign(r, sigv4.Options{Key: key(keyID, keySecret, "")}); err != nil {
				continue
			}
			for _, form := range []string{query, body} {
				values, _ := url.ParseQuery(form)
				for name, list := range values {
					for _, action := range list {
						switch {
						case !strings.EqualFold(name, "Action"):
						case service == "sts" && !slices.ContainsFunc(harmless, func(s string) bool { return strings.EqualFold(s, action) }), strings.EqualFold(action, "CreateAccessKey"):
							t.Errorf("%s: signed %q", service, action)
						}
					}
				}
			}
		}
	})
}

// Nothing that a command prints ends the reader, and what is read is written as
// it was.
func FuzzParseProcess(f *testing.F) {
	f.Add([]byte(`{"Version":1,"AccessKeyId":"AKIA1","SecretAccessKey":"s","SessionToken":"t","Expiration":"2026-11-30T12:00:00Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, _, err := sigv4.ParseProcess(text)
		if err != nil {
			return
		}
		again, _, err := sigv4.ParseProcess(k.Process().Reveal())
		if err != nil || again.ID != k.ID || !bytes.Equal(again.Secret.Reveal(), k.Secret.Reveal()) || !again.Token.Equal(k.Token) {
			t.Errorf("%v: %+v", err, again)
		}
	})
}

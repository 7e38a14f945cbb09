package proxytest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/egressd/egressd/internal/proxytest"
)

const (
	awsKeyID  = "AKIAIOSFODNN7EXAMPLE"
	awsSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

// awsSDK is the signer of AWS's own SDK, set as for S3.
func awsSDK() *signer.Signer {
	return signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true })
}

// The fake takes what AWS's own signer signs, and nothing else.
func TestS3Verifies(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name   string
		body   string
		change func(r *http.Request) // after signing
		cred   aws.Credentials
		at     time.Time
		want   string
	}{
		{name: "as signed", body: "hello", at: now},
		{name: "another secret", body: "hello", at: now, cred: aws.Credentials{AccessKeyID: awsKeyID, SecretAccessKey: "x"}, want: "SignatureDoesNotMatch"},
		{name: "another key", body: "hello", at: now, cred: aws.Credentials{AccessKeyID: "AKIAOTHER", SecretAccessKey: awsSecret}, want: "InvalidAccessKeyId"},
		{name: "a session token that is not asked for", body: "hello", at: now, cred: aws.Credentials{AccessKeyID: awsKeyID, SecretAccessKey: awsSecret, SessionToken: "tok"}, want: "InvalidToken"},
		{name: "an old one", body: "hello", at: now.Add(-time.Hour), want: "RequestTimeTooSkewed"},
		{name: "another body", body: "hello", at: now, change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("hallo")) }, want: "XAmzContentSHA256Mismatch"},
		{name: "another path", body: "hello", at: now, change: func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/b/other", "" }, want: "SignatureDoesNotMatch"},
		{name: "another query", body: "hello", at: now, change: func(r *http.Request) { r.URL.RawQuery += "&y=1" }, want: "SignatureDoesNotMatch"},
		{name: "another method", body: "hello", at: now, change: func(r *http.Request) { r.Method = "POST" }, want: "SignatureDoesNotMatch"},
		{name: "another field", body: "hello", at: now, change: func(r *http.Request) { r.Header.Set("X-Amz-Meta-A", "2") }, want: "SignatureDoesNotMatch"},
		{name: "a field that is not signed", body: "hello", at: now, change: func(r *http.Request) { r.Header.Set("X-Amz-Acl", "public-read") }, want: "AccessDenied"},
		{name: "bare", body: "hello", at: now, change: func(r *http.Request) { r.Header.Del("Authorization") }, want: "AccessDenied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s3 := &proxytest.S3{KeyID: awsKeyID, Secret: awsSecret}
			srv := httptest.NewServer(s3)
			defer srv.Close()
			r, err := http.NewRequestWithContext(t.Context(), "PUT", srv.URL+"/b/a%20b%2Bc.txt?x=a+b&x=A%2F&tagging=", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			hash := fmt.Sprintf("%x", sha256.Sum256([]byte(tt.body)))
			r.Header.Set("X-Amz-Content-Sha256", hash)
			r.Header.Set("X-Amz-Meta-A", "1")
			cred := tt.cred
			if cred.AccessKeyID == "" {
				cred = aws.Credentials{AccessKeyID: awsKeyID, SecretAccessKey: awsSecret}
			}
			if err := awsSDK().SignHTTP(t.Context(), cred, r, hash, "s3", "eu-west-1", tt.at); err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				tt.change(r)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			seen := s3.Seen()
			if len(seen) != 1 || seen[0].Fault != tt.want || (res.StatusCode == 200) != (tt.want == "") {
				t.Errorf("status %d, %+v; want fault %q", res.StatusCode, seen, tt.want)
			}
			if tt.want == "" && string(s3.Object("/b/a b+c.txt")) != tt.body {
				t.Errorf("stored %q", s3.Object("/b/a b+c.txt"))
			}
		})
	}
}

// Presigned requests hold for as long as they say.
func TestS3Presigned(t *testing.T) {
	for _, tt := range []struct {
		expires, age int
		want         string
	}{{900, 0, ""}, {900, 890, ""}, {900, 910, "ExpiredToken"}, {604801, 0, "AuthorizationQueryParametersError"}} {
		s3 := &proxytest.S3{KeyID: awsKeyID, Secret: awsSecret, Token: "session+token/=="}
		srv := httptest.NewServer(s3)
		r, _ := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("%s/b?prefix=a&X-Amz-Expires=%d", srv.URL, tt.expires), nil)
		cred := aws.Credentials{AccessKeyID: awsKeyID, SecretAccessKey: awsSecret, SessionToken: "session+token/=="}
		url, _, err := awsSDK().PresignHTTP(t.Context(), cred, r, "UNSIGNED-PAYLOAD", "s3", "eu-west-1", time.Now().Add(-time.Duration(tt.age)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		get(t, url)
		srv.Close()
		if seen := s3.Seen()[0]; seen.Fault != tt.want || seen.How != "presigned" || seen.Expires != tt.expires {
			t.Errorf("%+v: %+v", tt, seen)
		}
	}
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// The example of the S3 reference: 66560 bytes in chunks of 64 KiB, signed with
// its example key, without and with a trailer. The signatures are AWS's own.
func TestS3Chunks(t *testing.T) {
	const head = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders="
	data := strings.Repeat("a", 65536)
	tests := []struct {
		name, auth, sum, extra, body string
	}{
		{"plain", head + "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class,Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
			"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "",
			"10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" + data + "\r\n" +
				"400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" + data[:1024] + "\r\n" +
				"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n"},
		{"with a trailer", head + "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer,Signature=106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
			"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "x-amz-checksum-crc32c",
			"10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n" + data + "\r\n" +
				"400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n" + data[:1024] + "\r\n" +
				"0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n" +
				"x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n"},
	}
	for _, tt := range tests {
		for _, spoil := range []string{"", "a", "chunk-signature=0055", "chunk-signature=1c13", "trailer-signature:d"} {
			if spoil != "" && !strings.Contains(tt.body, spoil) {
				continue
			}
			s3 := &proxytest.S3{KeyID: awsKeyID, Secret: awsSecret, Now: func() time.Time { return time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC) }}
			body := tt.body
			if spoil != "" {
				i := strings.LastIndex(body[:strings.LastIndex(body, spoil)+len(spoil)], spoil) + len(spoil) - 1
				body = body[:i] + "b" + body[i+1:]
			}
			r := httptest.NewRequest("PUT", "/examplebucket/chunkObject.txt", strings.NewReader(body))
			r.Host = "s3.amazonaws.com"
			for k, v := range map[string]string{
				"Authorization": tt.auth, "X-Amz-Content-Sha256": tt.sum, "X-Amz-Date": "20130524T000000Z", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY",
				"X-Amz-Decoded-Content-Length": "66560", "Content-Encoding": "aws-chunked", "X-Amz-Trailer": tt.extra,
			} {
				if v != "" {
					r.Header.Set(k, v)
				}
			}
			w := httptest.NewRecorder()
			s3.ServeHTTP(w, r)
			if got := s3.Seen()[0].Fault; (got == "") != (spoil == "") || got != "" && got != "SignatureDoesNotMatch" {
				t.Errorf("%s, spoilt at %q: %q %s", tt.name, spoil, got, w.Body)
			}
			if spoil == "" && !bytes.Equal(s3.Object("/examplebucket/chunkObject.txt"), []byte(data+data[:1024])) {
				t.Errorf("%s: stored %d bytes", tt.name, len(s3.Object("/examplebucket/chunkObject.txt")))
			}
		}
	}
}

// The command line of AWS copies a large file up, in parts, and down, in
// ranges, lists it, and presigns.
func TestS3CommandLine(t *testing.T) {
	s3 := &proxytest.S3{KeyID: awsKeyID, Secret: awsSecret, Token: "session"}
	srv := httptest.NewServer(s3)
	defer srv.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte("[default]\ns3 =\n  signature_version = s3v4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "aws", append([]string{"--endpoint-url", srv.URL}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "AWS_ACCESS_KEY_ID=" + awsKeyID, "AWS_SECRET_ACCESS_KEY=" + awsSecret,
			"AWS_SESSION_TOKEN=session", "AWS_CONFIG_FILE=" + filepath.Join(dir, "config"), "AWS_DEFAULT_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1"}
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("aws %q: %v\n%s\n%+v", args, err, out, s3.Seen())
		}
		return string(out)
	}
	large := make([]byte, 20<<20)
	rand.NewChaCha8([32]byte{1}).Read(large)
	if err := os.WriteFile(filepath.Join(dir, "up"), large, 0o600); err != nil {
		t.Fatal(err)
	}
	run("s3", "cp", "--no-progress", "up", "s3://b/dir/a large+file.bin")
	run("s3", "cp", "--no-progress", "s3://b/dir/a large+file.bin", "down")
	if down, err := os.ReadFile(filepath.Join(dir, "down")); err != nil || !bytes.Equal(down, large) {
		t.Errorf("%d bytes came down, %v", len(down), err)
	}
	if out := run("s3", "ls", "s3://b/dir/"); !strings.Contains(out, "20971520 a large+file.bin") {
		t.Errorf("listed %q", out)
	}
	if body := get(t, strings.TrimSpace(run("s3", "presign", "s3://b/dir/a large+file.bin"))); !bytes.Equal(body, large) {
		t.Errorf("%d bytes by a presigned request: %.200s", len(body), body)
	}
	if out := run("sts", "get-caller-identity"); !strings.Contains(out, "user/fake") {
		t.Errorf("identity %q", out)
	}
	ranges := 0
	for _, seen := range s3.Seen() {
		if seen.Fault != "" {
			t.Errorf("fault %+v", seen)
		}
		if seen.Range != "" {
			ranges++
		}
	}
	if ranges < 2 {
		t.Errorf("%d requests for ranges", ranges)
	}
}

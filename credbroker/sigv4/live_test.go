package sigv4_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egressd/egressd/credbroker/sigv4"
	"github.com/egressd/egressd/internal/proxytest"
)

// signing is a proxy of a few lines: it signs what bears the placeholder.
type signing struct {
	opts sigv4.Options

	mu      sync.Mutex
	made    []string
	refused int
}

func (s *signing) RoundTrip(r *http.Request) (*http.Response, error) {
	q, err := sigv4.Recognise(r)
	if err == nil && (q == nil || q.KeyID != placeID) {
		err = errors.New("no placeholder")
	}
	if err == nil {
		var signature string
		signature, err = q.Sign(r, s.opts)
		s.mu.Lock()
		s.made = append(s.made, signature)
		s.mu.Unlock()
	}
	if err != nil {
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		r.Body.Close()
		return &http.Response{StatusCode: 403, Header: http.Header{"Content-Type": {"application/xml"}}, Body: http.NoBody, Request: r}, nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

// The command line of AWS works with placeholders: it copies a large file up in
// parts and down in ranges, lists, presigns, and says who it is; over https,
// where it sends a trailer, and over http, where it hashes. It cannot get a key.
func TestCommandLine(t *testing.T) {
	for scheme, token := range map[string]string{"https": keyToken, "http": ""} {
		t.Run(scheme, func(t *testing.T) { commandLine(t, scheme, token) })
	}
}

func commandLine(t *testing.T, scheme, token string) {
	s3 := &proxytest.S3{KeyID: keyID, Secret: keySecret, Token: token}
	origin := httptest.NewServer(s3)
	defer origin.Close()
	target, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	signer := &signing{opts: sigv4.Options{Key: key(keyID, keySecret, token)}}
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Transport: signer,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = target.Scheme, target.Host
			pr.Out.Host = "s3.eu-west-1.amazonaws.com"
		},
	})
	dir := t.TempDir()
	if scheme == "https" {
		front.StartTLS()
	} else {
		front.Start()
	}
	defer front.Close()
	large := make([]byte, 20<<20)
	rand.NewChaCha8([32]byte{2}).Read(large)
	files := map[string][]byte{
		"config": []byte("[default]\ns3 =\n  signature_version = s3v4\n"),
		"up":     large,
		"small":  []byte("small\n"),
	}
	if scheme == "https" {
		files["ca.pem"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	aws := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "aws", append([]string{"--endpoint-url", front.URL}, args...)...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "AWS_ACCESS_KEY_ID=" + placeID, "AWS_SECRET_ACCESS_KEY=oa_cred_secret", "AWS_SESSION_TOKEN=" + placeToken,
			"AWS_DEFAULT_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1", "AWS_CONFIG_FILE=" + filepath.Join(dir, "config")}
		if scheme == "https" {
			cmd.Env = append(cmd.Env, "AWS_CA_BUNDLE="+filepath.Join(dir, "ca.pem"))
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := aws(args...)
		if err != nil {
			t.Fatalf("aws %q: %v\n%s\n%+v", args, err, out, s3.Seen())
		}
		return out
	}
	const object = "s3://b/dir/a large+file (1).bin"
	run("s3", "cp", "--no-progress", "up", object)
	run("s3", "cp", "--no-progress", "small", "s3://b/small")
	run("s3", "cp", "--no-progress", object, "down")
	if down, err := os.ReadFile(filepath.Join(dir, "down")); err != nil || !bytes.Equal(down, large) {
		t.Errorf("%d bytes came down, %v", len(down), err)
	}
	if out := run("s3", "ls", "s3://b/dir/"); !strings.Contains(out, "20971520 a large+file (1).bin") {
		t.Errorf("listed %q", out)
	}
	if out := run("sts", "get-caller-identity"); !strings.Contains(out, "user/fake") {
		t.Errorf("identity %q", out)
	}
	link := strings.TrimSpace(run("s3", "presign", "--expires-in", "7200", object))
	if !strings.Contains(link, placeID) {
		t.Fatalf("presigned %s", link)
	}
	curl := exec.CommandContext(t.Context(), "curl", "-sS", "--cacert", filepath.Join(dir, "ca.pem"), link)
	if scheme == "http" {
		curl = exec.CommandContext(t.Context(), "curl", "-sS", link)
	}
	if body, err := curl.Output(); err != nil || !bytes.Equal(body, large) {
		t.Errorf("curl: %v, %d bytes", err, len(body))
	}
	before := len(s3.Seen())
	for _, args := range [][]string{{"sts", "get-session-token"}, {"sts", "assume-role", "--role-arn", "arn:aws:iam::000000000000:role/x", "--role-session-name", "session"}, {"iam", "create-access-key"}} {
		if out, err := aws(args...); err == nil {
			t.Errorf("aws %q: %s", args, out)
		}
	}
	seen := s3.Seen()
	if len(seen) != before {
		t.Errorf("a call for a key went out: %+v", seen[before:])
	}
	kinds, ranges := map[string]int{}, 0
	if signer.refused != 3 {
		t.Errorf("%d requests were refused", signer.refused)
	}
	for _, r := range seen {
		kinds[r.How+" "+r.Payload]++
		if r.Fault != "" || r.Expires > 900 {
			t.Errorf("fault %+v", r)
		}
		if r.Range != "" {
			ranges++
		}
		if !strings.Contains(strings.Join(signer.made, " "), r.Signature) {
			t.Errorf("a signature that was not told: %s", r.Signature)
		}
	}
	if ranges < 2 {
		t.Errorf("%d requests for ranges", ranges)
	}
	// Newer ones send a trailer over https, older ones nothing.
	if kinds["presigned UNSIGNED-PAYLOAD"] == 0 || scheme == "https" && kinds["header STREAMING-UNSIGNED-PAYLOAD-TRAILER"]+kinds["header UNSIGNED-PAYLOAD"] == 0 {
		t.Errorf("kinds of requests: %v", kinds)
	}
}

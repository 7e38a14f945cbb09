package credbroker

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What a refused request is called, what is recorded of it, and whether the
// alarm is raised: for everything that is found where it is not bound, and not
// for a placeholder of a key in a request that is not to be signed.
func TestAlarm(t *testing.T) {
	const placeholder, secret, signature, issues = "Placeholder where it does not belong", "Secret in a request", "Signature that cannot be made anew", "Call that may answer with a key"
	ecdsa := []string{"Authorization", "AWS4-ECDSA-P256-SHA256 Credential=ID/20261130/s3/aws4_request, SignedHeaders=host, Signature=00"}
	sts := []string{"X-Amz-Date", "20261130T120000Z", "Authorization",
		"AWS4-HMAC-SHA256 Credential=ID/20261130/us-east-1/sts/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + noSig}
	form := append([]string{"Content-Type", "application/x-www-form-urlencoded"}, sts...)
	for _, c := range []struct {
		name, method, host, target string
		fields                     []string
		body                       string
		want, noted, alarm         string
	}{
		{"a placeholder", "GET", "other.test", "/", []string{"Authorization", "Bearer PH"}, "", placeholder, "leak deny api", "api"},
		{"a canary", "GET", "other.test", "/?k=TRAP", nil, "", placeholder, "leak deny trap", "trap"},
		{"nobody's", "GET", "api.test", "/", []string{"X-Y", mark + strings.Repeat("z", markLetters)}, "", placeholder, "leak deny ", ""},
		{"a placeholder of TRACE", "TRACE", "api.test", "/", []string{"Authorization", "Bearer PH"}, "", placeholder, "leak deny api", "api"},
		{"a placeholder in a body", "POST", "api.test", "/", []string{"Content-Type", "text/plain"}, "it is PH", placeholder, "leak deny api", "api"},
		{"a secret", "GET", "api.test", "/" + realSecret, nil, "", secret, "leak deny api", "api"},
		{"a secret and a placeholder", "GET", "other.test", "/", []string{"X-A", realSecret, "X-B", "PH"}, "", secret, "leak deny api", "api"},
		{"a secret of OPTIONS", "OPTIONS", "api.test", "/?k=" + realSecret, nil, "", secret, "leak deny api", "api"},
		{"a secret in a body", "POST", "other.test", "/", []string{"Content-Type", "text/plain"}, "it is " + realSecret, secret, "leak deny api", "api"},
		{"a placeholder in a body that passes", "POST", "llm.test", "/", []string{"Content-Type", "text/plain"}, "it is PH", "", "leak allow api", "-"},
		{"a secret in such a body", "POST", "llm.test", "/", []string{"Content-Type", "text/plain"}, "it is " + realSecret, secret, "leak deny api", "api"},
		{"SigV4A", "GET", "s3.amazonaws.com", "/b/k", ecdsa, "", signature, "leak deny aws", "-"},
		{"a call that answers with a key", "GET", "sts.amazonaws.com", "/?Action=AssumeRole&Version=2011-06-15", sts, "", issues, "leak deny aws", "-"},
		{"one in a form", "POST", "sts.amazonaws.com", "/", form, "Action=GetSessionToken&Version=2011-06-15", issues, "leak deny aws", "-"},
		{"one that does not", "GET", "sts.amazonaws.com", "/?Action=GetCallerIdentity&Version=2011-06-15", sts, "", "", "credential allow aws", "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alarm := "-"
			b, err := New(t.Context(), Config{
				Entries: []Entry{bearer("api.test"), {ID: "trap", Canary: true, Env: []string{"T"}},
					{ID: "aws", Type: AWSSigV4, AccessKeyID: awsID, Source: &Source{Env: "SK"}, Targets: []Target{{Host: "*.amazonaws.com", Port: 443}}}},
				LeakPass: []string{"llm.test"}, OnLeak: func(entry string) { alarm = entry },
				Sources: newSources(map[string]string{"TOK": realSecret, "SK": awsSecret}),
			})
			if err != nil {
				t.Fatal(err)
			}
			put := strings.NewReplacer("PH", b.Placeholder("api", ""), "TRAP", b.Placeholder("trap", ""), "=ID/", "="+b.Placeholder("aws", partAccessKeyID)+"/")
			r := request(c.method, c.host, put.Replace(c.target))
			for i := 0; i < len(c.fields); i += 2 {
				r.Header.Set(c.fields[i], put.Replace(c.fields[i+1]))
			}
			if c.body != "" {
				body := put.Replace(c.body)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			}
			var noted []string
			_, err = b.RoundTrip(r, func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
			}, func(kind, verdict, credential string) { noted = append(noted, kind+" "+verdict+" "+credential) })
			title := ""
			var titled interface{ Title() string }
			if errors.As(err, &titled) {
				title = titled.Title()
			}
			if title != c.want || strings.Join(noted, ", ") != c.noted || alarm != c.alarm || (err == nil) != (c.want == "") {
				t.Errorf("%q (%v), noted %q, alarm %q", title, err, noted, alarm)
			}
		})
	}
}

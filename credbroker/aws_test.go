package credbroker

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	awsID     = "AKIAMADEUPKEY0000001"
	awsSecret = "madeUpSecretKey/9Kd2x7Qm4x9Zr2Lp8aaBBccDD"
	awsToken  = "stMadeUp9Kd2x7Qm4x9Zr2Lp8Zk31vT0pW5aaQq9"
	noSig     = "0000000000000000000000000000000000000000000000000000000000000000"
)

func awsSigned(id string) []string {
	return []string{"X-Amz-Date", "20261130T120000Z", "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD",
		"Authorization", "AWS4-HMAC-SHA256 Credential=" + id + "/20261130/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + noSig}
}

func awsQuery(id string) string {
	return "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + id + "%2F20261130%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261130T120000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=" + noSig
}

// What becomes of a request to a host with a key: signed anew, bare, the
// client's own, or refused.
func TestAWS(t *testing.T) {
	entry := Entry{ID: "aws", Type: AWSSigV4, AccessKeyID: awsID, Source: &Source{Env: "SK"}, SessionToken: &Source{Env: "ST"},
		Targets: []Target{{Host: "*.amazonaws.com", Port: 443}}}
	const mine, host = "AKIASOMEBODYELSE0001", "s3.amazonaws.com"
	const leak, foreign, plain = "credential_leak", "credential_foreign", "credential_plaintext"
	for _, c := range []struct {
		name, own, method, host, target string
		fields                          []string
		want                            string // anew, bare, mine, or the reason
		noted                           string
	}{
		{"placeholder", "", "", host, "/b/k", awsSigned("ID"), "anew", "credential"},
		{"placeholder, presigned", "", "", host, awsQuery("ID"), nil, "anew", "credential"},
		{"with its session token", "", "", host, "/b/k", append(awsSigned("ID"), "X-Amz-Security-Token", "ST"), "anew", "credential"},
		{"unsigned", "", "", host, "/b/k", nil, "bare", ""},
		{"session token alone", "", "", host, "/b/k", []string{"X-Amz-Security-Token", "ST"}, leak, "leak"},
		{"session token beside another's key", "", "", host, "/b/k", append(awsSigned(mine), "X-Amz-Security-Token", "ST"), leak, "leak"},
		{"the secret key's placeholder", "", "", host, "/b/k", []string{"X-Any", "SK"}, leak, "leak"},
		{"as a bearer token", "", "", host, "/b/k", []string{"Authorization", "Bearer ID"}, leak, "leak"},
		{"another parameter", "", "", host, "/b/k?marker=ID", nil, leak, "leak"},
		{"another parameter beside a signature", "", "", host, "/b/k?marker=ID", awsSigned("ID"), leak, "leak"},
		{"signed twice", "", "", host, awsQuery("ID"), awsSigned("ID"), leak, "leak"},
		{"SigV4A", "", "", host, "/b/k", []string{"Authorization", "AWS4-ECDSA-P256-SHA256 Credential=ID/20261130/s3/aws4_request, SignedHeaders=host, Signature=00"}, leak, "leak"},
		{"another host", "", "", "other.test", "/b/k", awsSigned("ID"), leak, "leak"},
		{"another port", "", "", host + ":8443", "/b/k", awsSigned("ID"), leak, "leak"},
		{"plain http", "", "", "http:" + host, "/b/k", awsSigned("ID"), plain, ""},
		{"OPTIONS", "", "OPTIONS", host, "/b/k", awsSigned("ID"), leak, "leak"},

		{"another's key passes", "", "", host, "/b/k", awsSigned(mine), "mine", ""},
		{"another's key is refused", "refuse", "", host, "/b/k", awsSigned(mine), foreign, ""},
		{"another's presigned request is refused", "refuse", "", host, awsQuery(mine), nil, foreign, ""},
		{"the placeholder is not refused", "refuse", "", host, "/b/k", awsSigned("ID"), "anew", "credential"},
		{"an unsigned request is not refused", "refuse", "", host, "/b/k", nil, "bare", ""},
		{"another's key is replaced", "replace", "", host, "/b/k", awsSigned(mine), "anew", "credential"},
		{"another's presigned request is replaced", "replace", "", host, awsQuery(mine), nil, "anew", "credential"},
		{"the placeholder is replaced", "replace", "", host, "/b/k", awsSigned("ID"), "anew", "credential"},
		{"an unsigned request stays bare", "replace", "", host, "/b/k", nil, "bare", ""},
		{"an old signature is taken off", "replace", "", host, "/b/k", []string{"Authorization", "AWS " + mine + ":abc="}, "bare", ""},
		{"an old presigned request is taken off", "replace", "", host, "/b/k?AWSAccessKeyId=" + mine + "&Signature=a&Expires=1", nil, "bare", ""},
		{"another's key on another port is taken off", "replace", "", host + ":8443", "/b/k", awsSigned(mine), "bare", ""},
		{"another's key on OPTIONS is taken off", "replace", "OPTIONS", host, "/b/k", awsSigned(mine), "bare", ""},
		{"another's key on plain http", "replace", "", "http:" + host, "/b/k", awsSigned(mine), plain, ""},
		{"a cookie and a gateway's key are taken off", "replace", "", host, "/b/k", append(awsSigned("ID"), "Cookie", "a=1", "X-Api-Key", "mine"), "anew", "credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entry.Own = c.own
			b := newBroker(t, map[string]string{"SK": awsSecret, "ST": awsToken}, entry)
			id, sk, st := b.Placeholder("aws", "access_key_id"), b.Placeholder("aws", ""), b.Placeholder("aws", "session_token")
			if id == "" || sk == "" || st == "" {
				t.Fatal("a part has no placeholder")
			}
			put := strings.NewReplacer("ID/", id+"/", "ID%2F", id+"%2F", "r ID", "r "+id, "=ID", "="+id, "SK", sk, "ST", st)
			host, scheme := c.host, "https"
			if rest, ok := strings.CutPrefix(host, "http:"); ok {
				host, scheme = rest, "http"
			}
			r := request("GET", host, put.Replace(c.target))
			r.URL.Scheme = scheme
			if c.method != "" {
				r.Method = c.method
			}
			for i := 0; i < len(c.fields); i += 2 {
				r.Header.Set(c.fields[i], put.Replace(c.fields[i+1]))
			}
			got, noted := "", ""
			_, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
				all := out.Header.Get("Authorization") + out.URL.RawQuery + out.Header.Get("X-Amz-Security-Token") + out.Header.Get("Cookie") + out.Header.Get("X-Api-Key")
				switch {
				case strings.Contains(all, id), strings.Contains(all, st):
					t.Errorf("a placeholder goes out: %s", all)
				case strings.Contains(all, awsID) && strings.Contains(all, awsToken) && !strings.Contains(all, noSig) && !strings.Contains(all, mine) && !strings.HasSuffix(all, "mine"):
					got = "anew"
				case strings.Contains(all, mine) && strings.Contains(all, noSig):
					got = "mine"
				case all == "" || all == "Expires=1":
					got = "bare"
				default:
					got = all
				}
				return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
			}, func(kind, _, _ string) { noted += kind })
			if err != nil {
				got = reasonOf(err)
			}
			if got != c.want || noted != c.noted {
				t.Errorf("%s, noted %q; want %s, %q", got, noted, c.want, c.noted)
			}
		})
	}
}

// A signature of the request is looked for in its answer.
func TestAWSSignatureInAnswer(t *testing.T) {
	entry := Entry{ID: "aws", Type: AWSSigV4, AccessKeyID: awsID, Source: &Source{Env: "SK"}, Targets: []Target{{Host: "s3.test", Port: 443}}}
	b := newBroker(t, map[string]string{"SK": awsSecret}, entry)
	r := request("GET", "s3.test", "/b/k")
	signed := awsSigned(b.Placeholder("aws", "access_key_id"))
	for i := 0; i < len(signed); i += 2 {
		r.Header.Set(signed[i], signed[i+1])
	}
	signature := ""
	res, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
		_, signature, _ = strings.Cut(out.Header.Get("Authorization"), "Signature=")
		body := "signature was " + signature
		return &http.Response{StatusCode: 403, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Header: http.Header{}}, nil
	}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "signature was [redacted]" || len(signature) != 64 {
		t.Errorf("%q, %v", body, err)
	}
}

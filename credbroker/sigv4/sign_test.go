package sigv4_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/secret"
	"github.com/egressd/egressd/credbroker/sigv4"
)

// The key of the cases of the contract, and its placeholders.
const (
	keyID     = "AKIAMADEUPKEY0000001"
	keySecret = "madeUpSecretKey/9Kd2x7Qm4x9Zr2Lp8aaBBccDD"
	keyToken  = "stMadeUp9Kd2x7Qm4x9Zr2Lp8Zk31vT0pW5aaQq9"

	placeID    = "oa_cred_0kJ1b2c3d4e5f6g7h8i9"
	placeToken = "oa_cred_Token2c3d4e5f6g7h8i9"
)

// zeros is the signature of a client that cannot sign.
var zeros = strings.Repeat("0", 64)

func key(id, sk, token string) sigv4.Key {
	return sigv4.Key{ID: id, Secret: secret.New([]byte(sk)), Token: secret.New([]byte(token))}
}

// request makes one as the proxy does. fields are NAME: VALUE lines.
func request(t testing.TB, method, url, body string, fields ...string) *http.Request {
	t.Helper()
	var r *http.Request
	var err error
	if body == "" {
		r, err = http.NewRequest(method, url, nil)
	} else {
		r, err = http.NewRequest(method, url, strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range fields {
		name, value, _ := strings.Cut(line, ":")
		if name == "Host" {
			r.Host = strings.TrimSpace(value)
			continue
		}
		r.Header.Add(name, strings.TrimPrefix(value, " "))
	}
	return r
}

func authorization(id, scope, signed, signature string) string {
	return "AWS4-HMAC-SHA256 Credential=" + id + "/" + scope + "/aws4_request, SignedHeaders=" + signed + ", Signature=" + signature
}

// sign recognises and signs, and fails the test where one of both does not work.
func sign(t testing.TB, r *http.Request, opts sigv4.Options) string {
	t.Helper()
	q, err := sigv4.Recognise(r)
	if err != nil || q == nil {
		t.Fatalf("recognising the signature: %v, %v", q, err)
	}
	signature, err := q.Sign(r, opts)
	if err != nil {
		t.Fatalf("signing: %v", err)
	}
	return signature
}

// The signatures of the contract's cases (cr-aws-*), which were made with
// another implementation.
func TestSignCases(t *testing.T) {
	const date = "X-Amz-Date: 20261130T120000Z"
	form := "Content-Type: application/x-www-form-urlencoded; charset=utf-8"
	tests := []struct {
		name, method, url, body string
		fields                  []string
		scope, signed           string // the client's
		token                   string
		issue                   bool
		wantSigned, want        string
	}{
		{name: "01", method: "GET", url: "https://sts.test/", fields: []string{date}, scope: "20261130/us-east-1/sts", signed: "host;x-amz-date",
			want: "821ebd6d5e4fab73a734fe30ca9b566a229a8b5bc55229190175943eafbdb24e"},
		{name: "02", method: "GET", url: "https://sts.test/?Action=GetCallerIdentity&Version=2011-06-15", fields: []string{date}, scope: "20261130/eu-west-1/sts", signed: "host;x-amz-date",
			want: "a4778937a2339d288e634e37429b39a132675585c5c401b3780701c7d777fc14"},
		{name: "03", method: "GET", url: "https://store.test/bucket/key.txt", fields: []string{date, "x-amz-content-sha256: UNSIGNED-PAYLOAD"}, scope: "20261130/ap-southeast-2/s3", signed: "host;x-amz-content-sha256;x-amz-date",
			want: "80092b6dd2a5c64d6282f250ea42d083b808adc94c9f45001296e1d6046a5666"},
		{name: "05", method: "GET", url: "https://sts.test/?Action=GetCallerIdentity&Version=2011-06-15", fields: []string{date, "X-Amz-Security-Token: " + placeToken}, scope: "20261130/us-east-1/sts", signed: "host;x-amz-date;x-amz-security-token", token: keyToken,
			want: "1c830012591c79314114068bb223b33befad4d79bd96a091c4b01c332003f099"},
		{name: "08", method: "POST", url: "https://sts.test/", fields: []string{date, form}, scope: "20261130/us-east-1/sts", signed: "host;x-amz-date", issue: true,
			body: "Action=AssumeRole&RoleArn=arn%3Aaws%3Aiam%3A%3A000000000000%3Arole%2Fy&Version=2011-06-15",
			want: "4eb707c3e473f587ee1d1e20f9cf350f05d1b0c390d0a10058a8c2d954651364"},
		{name: "11", method: "GET", url: "https://sts.test/", fields: []string{date}, scope: "20261130/eu-central-1/sts", signed: "host;x-amz-date", token: keyToken,
			wantSigned: "host;x-amz-date;x-amz-security-token", want: "3151e015bf303fbf8286541ac549feb54c9a68eb38e19335950292595fa2bcc3"},
		{name: "13", method: "GET", url: "https://dynamodb.eu-west-1.amazonaws.com/ping", fields: []string{date}, scope: "20261130/eu-west-1/dynamodb", signed: "host;x-amz-date",
			want: "e719f12042158c6bb439af40403d0488dcccda4c9e29bf6d8d006d9149036560"},
		{name: "range-04", method: "GET", url: "https://store.test/bucket/big.bin", fields: []string{date, "x-amz-content-sha256: UNSIGNED-PAYLOAD", "Range: bytes=0-99"}, scope: "20261130/us-east-1/s3", signed: "host;range;x-amz-content-sha256;x-amz-date",
			want: "59aab3c7a138efca8b439df345703d66709f769898a5de915b1252953304f058"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, tt.method, tt.url, tt.body, append(tt.fields, "Authorization: "+authorization(placeID, tt.scope, tt.signed, zeros))...)
			got := sign(t, r, sigv4.Options{Key: key(keyID, keySecret, tt.token), Issue: tt.issue})
			if tt.wantSigned == "" {
				tt.wantSigned = tt.signed
			}
			if want := authorization(keyID, tt.scope, tt.wantSigned, tt.want); r.Header.Get("Authorization") != want || got != tt.want {
				t.Errorf("got  %s\nwant %s", r.Header.Get("Authorization"), want)
			}
			if r.Header.Get("X-Amz-Security-Token") != tt.token {
				t.Errorf("token %q", r.Header.Get("X-Amz-Security-Token"))
			}
		})
	}
}

// Case cr-aws-09: a presigned request is rewritten in place, and ends soon.
func TestSignPresigned(t *testing.T) {
	const at = "https://store.test/bucket/a.txt"
	query := func(id, expires, signature string) string {
		return "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + id + "%2F20261130%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261130T120000Z" +
			expires + "&X-Amz-SignedHeaders=host&X-Amz-Signature=" + signature
	}
	const want = "8bb682bd2900d506d4c791dd3f4bcd7af73c1c11da712b612c4abde9677fb41a"
	r := request(t, "GET", at+"?"+query(placeID, "&X-Amz-Expires=604800", zeros), "")
	shared := r.URL
	got := sign(t, r, sigv4.Options{Key: key(keyID, keySecret, "")})
	if r.URL.RawQuery != query(keyID, "&X-Amz-Expires=900", want) || got != want {
		t.Errorf("signed %s", r.URL.RawQuery)
	}
	if strings.Contains(shared.RawQuery, keyID) {
		t.Error("the URL that the caller shares was changed")
	}
	for name, tt := range map[string]struct{ expires, want string }{
		"shorter":  {"&X-Amz-Expires=60", "X-Amz-Expires=60"},
		"absent":   {"", "X-Amz-Expires=900"},
		"negative": {"&X-Amz-Expires=-1", "X-Amz-Expires=900"},
		"a word":   {"&X-Amz-Expires=never", "X-Amz-Expires=900"},
		"huge":     {"&X-Amz-Expires=99999999999999999999", "X-Amz-Expires=900"},
		"escaped":  {"&X-Amz-Expires=%39%30%31", "X-Amz-Expires=900"},
	} {
		r := request(t, "GET", at+"?"+query(placeID, tt.expires, zeros), "")
		sign(t, r, sigv4.Options{Key: key(keyID, keySecret, "")})
		if !strings.Contains("&"+r.URL.RawQuery+"&", "&"+tt.want+"&") || strings.Count(r.URL.RawQuery, "Expires") != 1 {
			t.Errorf("%s: %s", name, r.URL.RawQuery)
		}
	}
}

// The session token is the key's, wherever the client sent which one.
func TestSessionToken(t *testing.T) {
	presigned := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + placeID + "%2F20261130%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261130T120000Z" +
		"&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=" + zeros
	for _, sent := range []string{"", placeToken, "another/token+="} {
		for _, real := range []string{"", "real/token+="} {
			var fields []string
			url := "https://store.test/b/k?" + presigned
			if sent != "" {
				fields = append(fields, "X-Amz-Security-Token: "+sent)
				url += "&X-Amz-Security-Token=" + strings.NewReplacer("/", "%2F", "+", "%2B", "=", "%3D").Replace(sent)
			}
			r := request(t, "GET", url, "")
			sign(t, r, sigv4.Options{Key: key(keyID, keySecret, real)})
			if got := r.URL.Query()["X-Amz-Security-Token"]; strings.Join(got, "|") != real || (len(got) > 0) != (real != "") {
				t.Errorf("sent %q, real %q: query has %q", sent, real, got)
			}
			r = request(t, "GET", "https://store.test/b/k", "", append(fields, "X-Amz-Date: 20261130T120000Z",
				"Authorization: "+authorization(placeID, "20261130/us-east-1/s3", "host;x-amz-date;x-amz-security-token", zeros))...)
			sign(t, r, sigv4.Options{Key: key(keyID, keySecret, real)})
			if got := r.Header["X-Amz-Security-Token"]; strings.Join(got, "|") != real || (len(got) > 0) != (real != "") {
				t.Errorf("sent %q, real %q: header has %q", sent, real, got)
			}
			if strings.Contains(r.Header.Get("Authorization"), "x-amz-security-token") != (real != "") {
				t.Errorf("sent %q, real %q: %s", sent, real, r.Header.Get("Authorization"))
			}
		}
	}
}

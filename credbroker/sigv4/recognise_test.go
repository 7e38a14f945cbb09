package sigv4_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/sigv4"
)

// presigned is the query of a request of S3; change replaces OLD by NEW in it.
func presigned(change ...string) string {
	return strings.NewReplacer(change...).Replace("https://store.test/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + placeID +
		"%2F20261130%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261130T120000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=" + zeros)
}

func TestRecognise(t *testing.T) {
	const scope = "20261130/us-east-1/s3"
	const date = "X-Amz-Date: 20261130T120000Z"
	auth := "Authorization: " + authorization(placeID, scope, "host;x-amz-date", zeros)
	plain := "https://store.test/b/k"
	tests := []struct {
		name, url string
		fields    []string
		how       sigv4.How // 0: none
		word      string    // of the refusal; how is 0
	}{
		{"bare", plain, nil, 0, ""},
		{"a header", plain, []string{date, auth}, sigv4.Header, ""},
		{"without spaces", plain, []string{date, strings.ReplaceAll(auth, ", ", ",")}, sigv4.Header, ""},
		{"by its Date", plain, []string{"Date: Mon, 30 Nov 2026 12:00:00 GMT", auth}, sigv4.Header, ""},
		{"by a basic Date", plain, []string{"Date: 20261130T120000Z", auth}, sigv4.Header, ""},
		{"fields out of order", plain, []string{date, strings.Replace(auth, "host;x-amz-date", "x-amz-date;host;host", 1)}, sigv4.Header, ""},
		{"without host", plain, []string{date, strings.Replace(auth, "host;", "", 1)}, sigv4.Header, ""},
		{"presigned", presigned(), nil, sigv4.Query, ""},
		{"a parameter beside it", plain + "?x-id=GetObject&X-Amz-Meta=1", []string{date, auth}, sigv4.Header, ""},
		{"another scheme", plain, []string{"Authorization: Bearer x"}, 0, ""},

		{"SigV4A", plain, []string{date, "Authorization: AWS4-ECDSA-P256-SHA256 Credential=" + placeID + "/20261130/s3/aws4_request, SignedHeaders=host, Signature=00"}, 0, "SigV4A"},
		{"SigV4A presigned", presigned("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), nil, 0, "SigV4A"},
		{"version 2", plain, []string{"Authorization: AWS " + placeID + ":c2ln"}, 0, "version 2"},
		{"version 2 presigned", plain + "?AWSAccessKeyId=" + placeID + "&Signature=x&Expires=1", nil, 0, "version 2"},
		{"two headers", plain, []string{date, auth, auth}, 0, "more than one"},
		{"another credential beside it", plain, []string{date, auth, "Authorization: Bearer x"}, 0, "more than one"},
		{"another before it, in a line", plain, []string{date, "Authorization: Bearer x, " + strings.TrimPrefix(auth, "Authorization: ")}, 0, "cannot be read"},
		{"another behind it, in a line", plain, []string{date, auth + ", Bearer x"}, 0, "cannot be read"},
		{"header and query", presigned(), []string{date, auth}, 0, "more than one"},
		{"a part of a query", plain + "?X-Amz-Signature=x", []string{date, auth}, 0, "more than one"},
		{"a token in the query", plain + "?X-Amz-Security-Token=x", []string{date, auth}, 0, "more than one"},
		{"another case, escaped", plain + "?%78-amz-security%2Dtoken=x", []string{date, auth}, 0, "more than one"},
		{"Bearer and query", presigned(), []string{"Authorization: Bearer x"}, 0, "more than one"},
		{"a token in the header", presigned(), []string{"X-Amz-Security-Token: x"}, 0, "more than one"},
		{"two tokens", plain, []string{date, auth, "X-Amz-Security-Token: x", "X-Amz-Security-Token: y"}, 0, "cannot be read"},
		{"two dates", plain, []string{date, date, auth}, 0, "cannot be read"},
		{"no date", plain, []string{auth}, 0, "cannot be read"},
		{"no date, but a Date", plain, []string{"Date: yesterday", auth}, 0, "cannot be read"},
		{"a bad date", plain, []string{"X-Amz-Date: 20261330T120000Z", auth}, 0, "cannot be read"},
		{"a signature too short", plain, []string{date, auth[:len(auth)-1]}, 0, "cannot be read"},
		{"a signature of other letters", plain, []string{date, auth[:len(auth)-1] + "g"}, 0, "cannot be read"},
		{"no signature", plain, []string{date, strings.Replace(auth, ", Signature="+zeros, "", 1)}, 0, "cannot be read"},
		{"a second signature", plain, []string{date, auth + ", Signature=" + zeros}, 0, "cannot be read"},
		{"a fourth part", plain, []string{date, auth + ", X=1"}, 0, "cannot be read"},
		{"another algorithm", plain, []string{date, strings.Replace(auth, "SHA256", "SHA512", 1)}, 0, "cannot be read"},
		{"a short scope", plain, []string{date, strings.Replace(auth, "/us-east-1", "", 1)}, 0, "cannot be read"},
		{"another end of the scope", plain, []string{date, strings.Replace(auth, "aws4_request", "aws5_request", 1)}, 0, "cannot be read"},
		{"a day that is none", plain, []string{date, strings.Replace(auth, "/20261130", "/2026113x", 1)}, 0, "cannot be read"},
		{"no service", plain, []string{date, strings.Replace(auth, "/s3/", "//", 1)}, 0, "cannot be read"},
		{"a field in capitals", plain, []string{date, strings.Replace(auth, "host", "Host", 1)}, 0, "cannot be read"},
		{"a line break among the fields", plain, []string{date, strings.Replace(auth, "host", "host\n", 1)}, 0, "cannot be read"},
		{"no fields", plain, []string{date, strings.Replace(auth, "host;x-amz-date", "", 1)}, 0, "cannot be read"},
		{"a parameter twice", presigned() + "&X-Amz-Signature=" + zeros, nil, 0, "cannot be read"},
		{"a parameter in another case", presigned("X-Amz-Date", "x-amz-date"), nil, 0, "cannot be read"},
		{"a parameter again in another case", presigned() + "&x-amz-credential=x", nil, 0, "cannot be read"},
		{"no algorithm", presigned("X-Amz-Algorithm", "Algorithm"), nil, 0, "cannot be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, "GET", tt.url, "", tt.fields...)
			q, err := sigv4.Recognise(r)
			if tt.word != "" {
				if q != nil || err == nil {
					t.Fatalf("%+v, %v", q, err)
				}
				wantRefusal(t, err, "credential_leak", 403, tt.word)
				return
			}
			if err != nil || (q != nil) != (tt.how != 0) {
				t.Fatalf("%+v, %v", q, err)
			}
			if q == nil {
				return
			}
			if q.How != tt.how || q.KeyID != placeID || q.Day != "20261130" || q.Region != "us-east-1" || q.Service != "s3" {
				t.Errorf("%+v", q)
			}
			// Signed once more, as after a 401, it is the same.
			opts := sigv4.Options{Key: key(keyID, keySecret, keyToken)}
			first := sign(t, r, opts)
			url, header := r.URL.String(), strings.Join(r.Header["Authorization"], "|")
			again, err := q.Sign(r, opts)
			if err != nil || again != first || r.URL.String() != url || strings.Join(r.Header["Authorization"], "|") != header {
				t.Errorf("signed again: %v\n%s\n%s", err, url, r.URL)
			}
			if text := url + header; strings.Contains(text, placeID) || !strings.Contains(text, "host") || tt.how == sigv4.Header && !strings.Contains(header, "SignedHeaders=host;") {
				t.Errorf("signed %s", text)
			}
		})
	}
}

// Placeholders belong in one place of the request each.
func TestPlaces(t *testing.T) {
	header := request(t, "GET", "https://store.test/b", "", "X-Amz-Date: 20261130T120000Z", "X-Amz-Security-Token: "+placeToken,
		"Authorization: "+authorization(placeID, "20261130/us-east-1/s3", "host;x-amz-date", zeros))
	query := request(t, "GET", presigned()+"&X-Amz-Security-Token="+placeToken, "")
	none := request(t, "GET", "https://store.test/b", "")
	for _, tt := range []struct {
		name, text   string
		field, param bool
	}{
		{"Authorization", placeID, true, false},
		{"Authorization", placeToken, false, false},
		{"Authorization", "", false, false},
		{"X-Amz-Security-Token", placeToken, true, true},
		{"X-Amz-Security-Token", placeID, false, false},
		{"X-Amz-Credential", placeID, false, true},
		{"X-Amz-Credential", placeID + "x", false, false},
		{"X-Api-Key", placeID, false, false},
	} {
		for _, of := range []struct {
			how          string
			r            *http.Request
			field, param bool
		}{{"header", header, tt.field, false}, {"query", query, false, tt.param}, {"none", none, false, false}} {
			q, err := sigv4.Recognise(of.r)
			if err != nil {
				t.Fatal(err)
			}
			if got := q.Field(tt.name, tt.text); got != of.field {
				t.Errorf("%s: field %s takes %q: %v", of.how, tt.name, tt.text, got)
			}
			if got := q.Param(tt.name, tt.text); got != of.param {
				t.Errorf("%s: parameter %s takes %q: %v", of.how, tt.name, tt.text, got)
			}
		}
	}
}

// What AWS takes for a credential is seen, and can be taken off.
func TestForeign(t *testing.T) {
	const plain = "https://store.test/b/k"
	for _, tt := range []struct {
		name, url string
		fields    []string
		want      bool
		left      string
	}{
		{"bare", plain + "?a=b", nil, false, "a=b"},
		{"an empty field", plain, []string{"Authorization: "}, false, ""},
		{"a signature", plain + "?a=b&&c", []string{"Authorization: " + authorization("AKIA", "d/r/s", "host", zeros)}, true, "a=b&&c"},
		{"Bearer", plain, []string{"Authorization: Bearer x"}, true, ""},
		{"a session alone", plain, []string{"X-Amz-Security-Token: x"}, true, ""},
		{"a session of S3", plain, []string{"X-Amz-S3session-Token: x"}, true, ""},
		{"presigned", plain + "?a=%2f&X-Amz-Signature=x&X-Amz-Credential=y&b", nil, true, "a=%2f&b"},
		{"in another case", plain + "?x-amz-signature=x", nil, true, ""},
		{"version 2", plain + "?AWSAccessKeyId=x&Signature=y&Expires=1", nil, true, "Expires=1"},
	} {
		r := request(t, "GET", tt.url, "", tt.fields...)
		if got := sigv4.Foreign(r); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		shared := r.URL
		before := shared.RawQuery
		sigv4.Strip(r)
		if sigv4.Foreign(r) || r.URL.RawQuery != tt.left || shared.RawQuery != before {
			t.Errorf("%s: left %q, %v", tt.name, r.URL.RawQuery, r.Header)
		}
	}
}

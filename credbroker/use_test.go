package credbroker

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tried is one request of somebody who wants to use the secret elsewhere, or a
// key of their own here.
type tried struct {
	name   string
	method string
	target string
	fields []string
	body   string
	want   string // the reason, or what the origin sees: field, query and what is said of overrides
}

func try(t *testing.T, e Entry, list []tried) {
	t.Helper()
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			b := newBroker(t, oneSecret, e)
			fill := strings.NewReplacer("PH", b.Placeholder("api", "")).Replace
			r := request(c.method, "api.test", fill(c.target))
			r.Header = http.Header{}
			for i := 0; i < len(c.fields); i += 2 {
				key := http.CanonicalHeaderKey(c.fields[i])
				r.Header[key] = append(r.Header[key], fill(c.fields[i+1]))
			}
			if c.body != "" {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
			}
			var got string
			_, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
				if out.Body != nil {
					if _, err := io.Copy(io.Discard, out.Body); err != nil {
						return nil, err
					}
				}
				var parts []string
				for _, name := range []string{"Authorization", "X-Api-Key", "Job-Token", "X-Original-Url", "Sec-Websocket-Protocol"} {
					if lines, ok := out.Header[name]; ok {
						parts = append(parts, strings.Join(lines, ","))
					}
				}
				got = strings.ReplaceAll(strings.Join(append(parts, "?"+out.URL.RawQuery), " "), realSecret, "S")
				return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
			}, quiet)
			if err != nil {
				got = reasonOf(err)
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A field that names another path, or method, is one more reading of the
// request: the secret goes where all of them are bound, and what own says holds
// where one is.
func TestOverridden(t *testing.T) {
	v1 := with(bearer("api.test"), func(e *Entry) { e.Targets[0].Path, e.Own = "/v1", "refuse" })
	try(t, v1, []tried{
		{"away", "GET", "/v1/a", []string{"X-Original-URL", "/admin"}, "", "/admin ?"},
		{"away, by its other name", "GET", "/v1/a", []string{"X_Rewrite_Url", "/admin"}, "", "?"},
		{"away with a placeholder", "GET", "/v1/a", []string{"X-Original-URL", "/admin", "Authorization", "Bearer PH"}, "", "credential_leak"},
		{"away, one of two", "GET", "/v1/a", []string{"X-Original-URL", "/v1/b", "X-Original-URL", "/admin"}, "", "/v1/b,/admin ?"},
		{"away, by dots", "GET", "/v1/a", []string{"X-Original-URL", "/v1/../admin"}, "", "/v1/../admin ?"},
		{"away, whole", "GET", "/v1/a", []string{"X-Original-URL", "https://api.test/admin"}, "", "https://api.test/admin ?"},
		{"within", "GET", "/v1/a", []string{"X-Original-URL", "/v1/b?c"}, "", "Bearer S /v1/b?c ?"},
		{"within, whole", "GET", "/v1/a", []string{"X-Original-URL", "https://api.test/v1/b?c"}, "", "Bearer S https://api.test/v1/b?c ?"},
		{"into it, with a key of one's own", "GET", "/free", []string{"X-Original-URL", "/v1/a", "Authorization", "Bearer mine"}, "", "credential_foreign"},
		{"an echo, by a field", "POST", "/v1/a", []string{"X-HTTP-Method-Override", "trace"}, "", "?"},
		{"an echo, swapped", "POST", "/v1/a", []string{"X_HTTP_Method", "TRACE", "Authorization", "Bearer PH"}, "", "credential_leak"},
		{"an echo in another case", "Trace", "/v1/a", nil, "", "?"},
		{"an echo by its old name", "TRACK", "/v1/a", nil, "", "?"},
		{"another method", "POST", "/v1/a", []string{"X-HTTP-Method-Override", "PUT"}, "", "Bearer S ?"},
	})
}

// Names of parameters as the most forgiving of servers read them.
func TestLooseParameters(t *testing.T) {
	query := with(bearer("api.test"), func(e *Entry) { e.Type, e.Param, e.Own = HTTPSQuery, "api_key", "replace" })
	var list []tried
	for _, text := range []string{"API_KEY=mine", "api.key=mine", "api-key=mine", "+api_key=mine", "api_key[]=mine", "api_key%00=mine", "%2561pi_key=mine", "a=1;api_key=mine", "api_key;api_key=mine"} {
		list = append(list, tried{text, "GET", "/x?" + text + "&b=2", nil, "", "?b=2&api_key=S"})
	}
	list = append(list, tried{"beside the placeholder", "GET", "/x?Api_Key=mine&api_key=PH", nil, "", "?api_key=S"},
		tried{"another name", "GET", "/x?api_keys=1", nil, "", "?api_keys=1&api_key=S"},
		tried{"in a field that names the target", "GET", "/x", []string{"X-Original-URL", "/x?api_key=mine"}, "", "?api_key=S"})
	try(t, query, list)
}

// Places that only a preset knows: fields, parameters, subprotocols and fields
// of a body.
func TestOwnPlaces(t *testing.T) {
	e := with(bearer("api.test"), func(e *Entry) {
		e.Own, e.Also = "replace", Places{Fields: []string{"JOB-TOKEN"}, Params: []string{"token"}, Protocols: []string{"insecure-key."}}
	})
	const (
		form, json, parts = "application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=b"
		foreign, sent     = "credential_foreign", "Bearer S ?"
	)
	part := func(head string) string { return "--b\r\n" + head + "\r\n\r\nmine\r\n--b--\r\n" }
	list := []tried{
		{"a field", "GET", "/x", []string{"Job_Token", "mine"}, "", sent},
		{"a parameter", "GET", "/x?token=mine&a=1", nil, "", sent + "a=1"},
		{"a subprotocol", "GET", "/x", []string{"Sec-WebSocket-Protocol", "realtime, Insecure-Key.mine, v1"}, "", "Bearer S realtime, v1 ?"},
		{"no other subprotocol", "GET", "/x", []string{"Sec-WebSocket-Protocol", "insecure-key.mine"}, "", sent},
		{"a coding", "POST", "/x", []string{"Content-Type", form, "Content-Encoding", "gzip"}, "\x1f\x8b", foreign},
		{"a picture", "POST", "/x", []string{"Content-Type", "image/png", "Content-Encoding", "gzip"}, "token=mine", sent},
	}
	for _, c := range []struct{ kind, body, want string }{
		{form, "token=mine", foreign}, {form, "a=1&token=mine", foreign}, {form, "a=1;TOKEN=mine", foreign}, {form, "%74oken=mine", foreign},
		{form, "a=token&tokens=1", sent}, {form, "text=token%3Dx", sent},
		{form, strings.Repeat("x", mostScanned) + "&token=mine", foreign}, // the service reads on
		{json, `{"token":"mine"}`, foreign}, {json, `{"a":[{"b":"}"}],` + "\n" + `"t\u006fken" : "mine"}`, foreign},
		{json, `{"a":{"token":"x"},"b":"token"}`, sent}, {json, `["token",":"]`, sent}, {json, `{"a":"\"token\":"}`, sent},
		{"application/vnd.api+json", `{"token":1}`, foreign},
		{parts, part(`Content-Disposition: form-data; name="token"`), foreign}, {parts, part(`content-disposition: form-data; name = token; x=y`), foreign},
		{parts, part("Content-Disposition: form-data;\r\n name=\"to\\ken\""), foreign}, {parts, part(`Content-Disposition: form-data; name*=utf-8''token`), foreign},
		{parts, part("X-A: b\nContent-Disposition: form-data; name=\"token\""), foreign},
		{parts, part(`Content-Disposition: form-data; name="file"; filename="token"`), sent}, {parts, part(`Content-Disposition: form-data; name="tokens"`), sent},
		{"text/plain", "token=mine", sent}, {"", "token=mine", foreign}, {"text/plain, " + form, "token=mine", foreign},
	} {
		var fields []string
		if c.kind != "" {
			fields = []string{"Content-Type", c.kind}
		}
		list = append(list, tried{c.kind + " " + c.body[:min(60, len(c.body))], "POST", "/x", fields, c.body, c.want})
	}
	try(t, e, list)
	e.Own = "refuse"
	try(t, e, []tried{
		{"a field, refused", "GET", "/x", []string{"Job-Token", "mine"}, "", foreign},
		{"a parameter, refused", "GET", "/x?token=mine", nil, "", foreign},
		{"a subprotocol, refused", "GET", "/x", []string{"Sec-WebSocket-Protocol", "insecure-key.mine"}, "", foreign},
	})
	e.Own = "pass"
	try(t, e, []tried{{"passed", "POST", "/x?token=mine", []string{"Content-Type", form, "Job-Token", "mine"}, "token=mine", "Bearer S mine ?token=mine"}})
}

// A body whose types are said in one field, and one in no coding twice over, are
// looked through.
func TestListsOfTypes(t *testing.T) {
	for _, c := range []struct {
		name, kind, coding string
		want               bool
	}{{"two types", "image/png, text/plain", "", true}, {"no coding, twice", "text/plain", "identity, identity", true}, {"a coding behind none", "text/plain", "identity, gzip", false}} {
		h := http.Header{"Content-Type": {c.kind}, "Content-Encoding": {c.coding}}
		if got, _ := scannable(h); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Who sends a byte now and then does not hold a request for as long as he likes:
// what was settled of it in the beginning would be settled for a policy of long
// ago.
func TestHoldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, oneSecret, bearer("api.test"))
		d := &drip{pieces: strings.Split(strings.Repeat("a", 400), ""), gap: 200 * time.Millisecond}
		if o := post(t, b, "other.test", d, nil); !o.sent || o.after != longestHold || len(o.body) != 400 {
			t.Errorf("sent %v after %v, %d bytes, %v", o.sent, o.after, len(o.body), o.err)
		}
	})
}

// Another's key in a form of AWS is refused where only the entry's own signs.
func TestFormsOfAWS(t *testing.T) {
	const form, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
	for _, c := range []struct {
		name, own, method, kind, body string
		want                          bool
	}{
		{"version 2", "replace", "POST", form, "Action=X&AWSAccessKeyId=AKIA&Signature=x", true},
		{"a form of S3", "replace", "POST", parts, "--b\r\nContent-Disposition: form-data; name=\"x-amz-credential\"\r\n\r\nAKIA\r\n--b--\r\n", true},
		{"a file of that name", "replace", "PUT", form, "AWSAccessKeyId=AKIA", false},
		{"JSON", "replace", "POST", "application/json", `{"AWSAccessKeyId":"AKIA"}`, false},
		{"passed", "pass", "POST", form, "AWSAccessKeyId=AKIA", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &outgoing{place: place{site: &site{bindings: []binding{{cred: &credential{entry: Entry{Type: AWSSigV4, Own: c.own}, header: "Authorization"}}}}}, r: request(c.method, "x.amazonaws.com", "/")}
			x.r.Header.Set("Content-Type", c.kind)
			if err := x.foreign(); err != nil {
				t.Fatal(err)
			}
			own, unread := x.ownFields()
			if got := own != nil && own.feed([]byte(c.body), true) != nil; got != c.want || unread {
				t.Errorf("refused %v, unread %v", got, unread)
			}
		})
	}
}

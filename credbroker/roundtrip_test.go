package credbroker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func basic(login string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(login))
}

func with(e Entry, change func(*Entry)) Entry {
	change(&e)
	return e
}

// reasonOf is the word of a refusal.
func reasonOf(err error) string {
	var reason interface{ Reason() string }
	switch {
	case err == nil:
		return ""
	case errors.As(err, &reason):
		return reason.Reason()
	}
	return err.Error()
}

// What goes out of a request. PH is the placeholder, S the secret.
func TestRoundTrip(t *testing.T) {
	own := func(how string) func(*Entry) { return func(e *Entry) { e.Own = how } }
	login := with(bearer("api.test"), func(e *Entry) { e.Type, e.Username, e.Own = HTTPSBasic, "bot@corp.test", "replace" })
	key := with(bearer("api.test"), func(e *Entry) { e.Type, e.Header = HTTPSHeader, "x-api-key" })
	query := with(bearer("api.test"), func(e *Entry) { e.Type, e.Param = HTTPSQuery, "key" })
	cookie := with(key, func(e *Entry) { e.Header = "Cookie" })
	v1 := with(bearer("api.test"), func(e *Entry) { e.Targets[0].Path = "/v1" })
	const foreign, leak, plain = "credential_foreign", "credential_leak", "credential_plaintext"

	for _, c := range []struct {
		name   string
		entry  Entry
		method string
		target string // https://api.test/x where it is empty
		fields []string
		want   string // the reason, or what the origin sees of "Authorization|X-Api-Key|Cookie|query"
	}{
		{"a bare request", bearer("api.test"), "", "", nil, "Bearer S|||"},
		{"an empty field is no credential", bearer("api.test"), "", "", []string{"Authorization", ""}, "Bearer S|||"},
		{"two fields, one of them the client's own", bearer("api.test"), "", "", []string{"Authorization", "Bearer PH", "Authorization", "Bearer mine"}, "Bearer S,Bearer mine|||"},
		{"two fields, the own one replaced", with(bearer("api.test"), own("replace")), "", "", []string{"Authorization", "Bearer PH", "Authorization", "Bearer mine"}, "Bearer S|||"},
		{"two fields, the own one refused", with(bearer("api.test"), own("refuse")), "", "", []string{"Authorization", "Bearer PH", "Authorization", "Bearer mine"}, foreign},
		{"both fields", bearer("api.test"), "", "", []string{"Authorization", "Bearer PH", "Authorization", "token PH"}, "Bearer S,token S|||"},
		{"twice in one field", bearer("api.test"), "", "", []string{"Authorization", `Digest a="PH", b="PH"`}, `Digest a="S", b="S"|||`},
		{"user of Basic", bearer("api.test"), "", "", []string{"Authorization", basic("PH:")}, basic("S:") + "|||"},
		{"Basic without padding", bearer("api.test"), "", "", []string{"Authorization", strings.TrimRight(basic("u:PH"), "=")}, basic("u:S") + "|||"},
		{"Basic of the other alphabet", bearer("api.test"), "", "", []string{"Authorization", "basic " + base64.RawURLEncoding.EncodeToString([]byte("\xff\xfe:PH"))}, "basic " + basic("\xff\xfe:S")[6:] + "|||"},
		{"Basic that only lax servers read", bearer("api.test"), "", "", []string{"Authorization", strings.Replace(basic("u:PH"), "d", "!d", 1)}, leak},
		{"Basic whose half is percent-encoded", bearer("api.test"), "", "", []string{"Authorization", basic("u:%6FPH")}, leak},
		{"Basic as the second of two logins", bearer("api.test"), "", "", []string{"Authorization", "Bearer x, " + basic("u:PH")}, leak},
		{"Basic in another field", bearer("api.test"), "", "", []string{"X-Auth", basic("u:PH")}, leak},
		{"glued", bearer("api.test"), "", "", []string{"Authorization", "Bearer PHx"}, leak},
		{"glued in front", bearer("api.test"), "", "", []string{"Authorization", "BearerPH"}, leak},
		{"a real secret", bearer("api.test"), "", "", []string{"X-Any", "a S b"}, leak},
		{"a real secret in its own place", bearer("api.test"), "", "", []string{"Authorization", "Bearer S"}, leak},
		{"a real secret in the query, escaped", bearer("api.test"), "", "/x?a=tok%2Dlive-7Qm4x9Zr2Lp8", nil, leak},
		{"a name of a field", bearer("api.test"), "", "", []string{"X-Ph-PH", "1"}, leak},

		{"user that could be a key, replaced", login, "", "", []string{"Authorization", basic("mine:PH")}, basic("bot@corp.test:S") + "|||"},
		{"user that could be a key, refused", with(login, own("refuse")), "", "", []string{"Authorization", basic("mine:PH")}, foreign},
		{"user of the entry", with(login, own("refuse")), "", "", []string{"Authorization", basic("bot@corp.test:PH")}, basic("bot@corp.test:S") + "|||"},
		{"password beside a placeholder", login, "", "", []string{"Authorization", basic("PH:mine")}, basic("S:") + "|||"},
		{"words around the placeholder", with(bearer("api.test"), own("replace")), "", "", []string{"Authorization", "Bearer sk-mine-12345 PH"}, "Bearer S|||"},
		{"a scheme with a parameter", with(bearer("api.test"), own("refuse")), "", "", []string{"Authorization", `Token token="PH"`}, `Token token="S"|||`},
		{"another spelling of the field", with(bearer("api.test"), own("replace")), "", "", []string{"X_Api_Key", "mine", "Cookie", "a=1"}, "Bearer S|||"},
		{"another spelling, refused", with(bearer("api.test"), own("refuse")), "", "", []string{"X_API-Key", "mine"}, foreign},
		{"another spelling beside an attached key", key, "", "", []string{"X_Api_Key", ""}, "|S||"},
		{"a cookie beside a placeholder", cookie, "", "", []string{"Cookie", "a=1; sid=PH; b=2"}, "||a=1; sid=S; b=2|"},
		{"a cookie beside a placeholder, replaced", with(cookie, own("replace")), "", "", []string{"Cookie", "a=1; sid=PH; b=2"}, "||sid=S|"},
		{"a cookie beside a placeholder, refused", with(cookie, own("refuse")), "", "", []string{"Cookie", "a=1; sid=PH"}, foreign},
		{"swap only, replaced", with(bearer("api.test"), func(e *Entry) { e.Own, e.Inject = "replace", "placeholder" }), "", "", []string{"Authorization", "Bearer mine"}, "|||"},
		{"the client's own on OPTIONS, replaced", with(bearer("api.test"), own("replace")), "OPTIONS", "", []string{"Authorization", "Bearer mine"}, "|||"},

		{"parameter", query, "", "/x?a=1&key=PH", nil, "|||a=1&key=S"},
		{"parameter, escaped", query, "", "/x?k%65y=%6Fa_credREST&b", nil, "|||k%65y=S&b"},
		{"parameter twice", query, "", "/x?key=PH&key=PH", nil, "|||key=S&key=S"},
		{"parameter within a value", query, "", "/x?key=v1:PH:z", nil, "|||key=v1:S:z"},
		{"parameter glued by an escape", query, "", "/x?key=PH%41", nil, leak},
		{"parameter escaped twice", query, "", "/x?key=%256Fa_credREST", nil, leak},
		{"another parameter", query, "", "/x?Key=PH", nil, leak},
		{"a parameter behind a semicolon", query, "", "/x?a=1;key=PH", nil, leak},
		{"a name of a parameter", query, "", "/x?PH=1", nil, leak},
		{"own parameter", query, "", "/x?key=mine", nil, "|||key=mine"},
		{"an empty parameter", query, "", "/x?key=&a=1", nil, "|||a=1&key=S"},
		{"own parameter, replaced", with(query, own("replace")), "", "/x?key=mine&a=1&k%65y=mine", nil, "|||a=1&key=S"},
		{"own parameter beside a placeholder, replaced", with(query, own("replace")), "", "/x?key=mine&key=PH", nil, "|||key=S"},
		{"own parameter, refused", with(query, own("refuse")), "", "/x?key=mine", nil, foreign},
		{"a placeholder in Authorization for a parameter", query, "", "", []string{"Authorization", "Bearer PH"}, leak},

		{"a path", v1, "", "/v1/a?b", nil, "Bearer S|||b"},
		{"a path one of whose readings is outside", v1, "", "/v1%2Fa", nil, "|||"},
		{"an escaped slash below the path", v1, "", "/v1/group%2Fproject", nil, "Bearer S|||"},
		{"a placeholder on a path half outside", v1, "", "/v1%2Fa", []string{"Authorization", "Bearer PH"}, leak},
		{"own on a path half outside, refused", with(v1, own("refuse")), "", "/V1%2Fa", []string{"Authorization", "Bearer mine"}, foreign},
		{"own on another path", with(v1, own("refuse")), "", "/v2", []string{"Authorization", "Bearer mine"}, "Bearer mine|||"},

		{"plain http", bearer("api.test"), "", "http:/x", nil, plain},
		{"plain http to another port", bearer("api.test"), "", "http:8080/x", nil, plain},
		{"a leak comes before plain http", bearer("api.test"), "", "http:/x", []string{"X-A", "PH"}, leak},
		{"foreign comes before plain http", with(bearer("api.test"), own("refuse")), "", "http:/x", []string{"Cookie", "a=1"}, foreign},
		{"own on plain http, replaced: it would carry the secret", with(bearer("api.test"), own("replace")), "", "http:/x", []string{"Cookie", "a=1"}, plain},
		{"swap only, bare on plain http", with(bearer("api.test"), func(e *Entry) { e.Inject = "placeholder" }), "", "http:/x", nil, "|||"},
		{"another port", bearer("api.test"), "", "8443/x", nil, "|||"},
		{"a placeholder on another port", bearer("api.test"), "", "8443/x", []string{"Authorization", "Bearer PH"}, leak},
		{"own on another port, replaced", with(bearer("api.test"), own("replace")), "", "8443/x", []string{"Authorization", "Bearer mine"}, "|||"},
		{"own on another port, refused", with(bearer("api.test"), own("refuse")), "", "8443/x", []string{"Authorization", "Bearer mine"}, foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBroker(t, oneSecret, c.entry)
			ph := b.Placeholder("api", "")
			put := func(s string) string {
				if strings.HasPrefix(strings.ToLower(s), "basic ") && !strings.Contains(s, "!") {
					login, _ := decodeBasic(s[6:])
					login = strings.NewReplacer("%6FPH", "%6F"+ph[1:], "PH", ph).Replace(login)
					pad := base64.StdEncoding
					if !strings.HasSuffix(s, "=") {
						pad = base64.RawStdEncoding
					}
					if strings.ContainsRune(login, 0xFFFD) || login[0] == 0xff {
						pad = base64.RawURLEncoding
					}
					return s[:6] + pad.EncodeToString([]byte(login))
				}
				if strings.Contains(s, "!") {
					return "Basic " + strings.Replace(basic("u:" + ph)[6:], "d", "!d", 1)
				}
				if i := strings.Index(s, ", Basic "); i >= 0 {
					return s[:i] + ", " + basic("u:"+ph)
				}
				s = strings.NewReplacer("%6Fa_credREST", "%6F"+ph[1:], "%256Fa_credREST", "%256F"+ph[1:], "PH", ph).Replace(s)
				if rest, ok := strings.CutSuffix(s, " S"); ok {
					s = rest + " " + realSecret
				}
				return strings.Replace(s, "a S b", "a "+realSecret+" b", 1)
			}
			target, host, scheme := c.target, "api.test", "https"
			if rest, ok := strings.CutPrefix(target, "http:"); ok {
				target, scheme = rest, "http"
			}
			if port, path, ok := strings.Cut(target, "/"); ok && port != "" {
				target, host = "/"+path, "api.test:"+port
			}
			if target == "" {
				target = "/x"
			}
			method := c.method
			if method == "" {
				method = "GET"
			}
			r := request(method, host, put(target))
			r.URL.Scheme = scheme
			for i := 0; i < len(c.fields); i += 2 {
				key := http.CanonicalHeaderKey(put(c.fields[i]))
				r.Header[key] = append(r.Header[key], put(c.fields[i+1]))
			}
			got := ""
			_, err := b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
				h := out.Header
				got = strings.Join([]string{strings.Join(h["Authorization"], ","), strings.Join(h["X-Api-Key"], ","), strings.Join(h["Cookie"], ","), out.URL.RawQuery}, "|")
				for name := range h {
					if folded := foldName(name); folded == "x-api-key" && name != "X-Api-Key" {
						got += " " + name
					}
				}
				return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
			}, quiet)
			if err != nil {
				got = reasonOf(err)
			}
			want := strings.NewReplacer("S|", realSecret+"|", "=S", "="+realSecret, " S", " "+realSecret, `"S"`, `"`+realSecret+`"`, ":S:", ":"+realSecret+":").Replace(c.want)
			if i := strings.Index(want, "asic "); i >= 0 && strings.HasSuffix(want, "|||") {
				login, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(c.want[i+5:], "|||"))
				want = want[:i+5] + base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(login), "S", realSecret, 1))) + "|||"
			}
			if want = strings.Replace(want, "S,", realSecret+",", 1); strings.HasPrefix(want, "|S") {
				want = strings.Replace(want, "S", realSecret, 1)
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// The request that the client shares with us stays as it was: what was put in is
// in lines of its own.
func TestSharedLines(t *testing.T) {
	b := newBroker(t, oneSecret, bearer("api.test"))
	line := "Bearer " + b.Placeholder("api", "")
	lines := []string{line}
	r := request("GET", "api.test", "/x")
	r.Header["Authorization"] = lines
	shared := r.URL
	was := *shared
	if _, err := b.RoundTrip(r, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
	}, quiet); err != nil {
		t.Fatal(err)
	}
	if lines[0] != line || *shared != was {
		t.Errorf("changed: %q %v", lines, shared)
	}
}

// What records say of each request, once.
func TestNotes(t *testing.T) {
	b, err := New(t.Context(), Config{
		Entries:  []Entry{bearer("api.test"), {ID: "trap", Canary: true, Env: []string{"T"}}},
		LeakPass: []string{"model.test"}, Sources: newSources(oneSecret),
	})
	if err != nil {
		t.Fatal(err)
	}
	api, trap := b.Placeholder("api", ""), b.Placeholder("trap", "")
	for _, c := range []struct {
		host, field, body string
		want              []string
	}{
		{"api.test", "", "", []string{"credential allow api"}},
		{"api.test", "Authorization: Bearer " + api, "", []string{"credential allow api"}},
		{"other.test", "", "", nil},
		{"other.test", "X: " + api + " " + api, "", []string{"leak deny api"}},
		{"other.test", "X: " + trap, "", []string{"leak deny trap"}},
		{"other.test", "X: " + live, "", []string{"leak deny "}},
		{"other.test", "X: " + realSecret, "", []string{"leak deny api"}},
		{"other.test", "", "a " + api + " b " + api, []string{"leak deny api"}},
		{"model.test", "", "a " + api + " b " + trap + " c " + api + live, []string{"leak allow api", "leak allow trap"}},
		{"model.test", "", "a " + realSecret, []string{"leak deny api"}},
		{"model.test", "", api + " " + realSecret, []string{"leak allow api", "leak deny api"}},
	} {
		r := request("POST", c.host, "/x")
		if name, value, ok := strings.Cut(c.field, ": "); ok {
			r.Header.Set(name, value)
		}
		if c.body != "" {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
		}
		var got []string
		_, _ = b.RoundTrip(r, func(out *http.Request) (*http.Response, error) {
			if out.Body != nil {
				if sent, err := io.ReadAll(out.Body); err != nil || string(sent) != c.body {
					t.Errorf("%q, %v", sent, err)
				}
			}
			return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
		}, func(kind, verdict, credential string) {
			got = append(got, fmt.Sprintf("%s %s %s", kind, verdict, credential))
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s %s: %q, want %q", c.host, c.field, c.body, got, c.want)
		}
	}
}

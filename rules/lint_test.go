package rules_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/egressd/egressd/rules"
)

func parseAll(t *testing.T, list []any) (parsed []rules.Rule) {
	t.Helper()
	for _, v := range list {
		r, err := parseAny(v)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, r)
	}
	return parsed
}

func TestLint(t *testing.T) {
	for _, c := range []struct {
		rules []any
		want  []string // "INDEX KIND"
	}{
		{[]any{"GET a.test/x/**", "!* a.test/**"}, []string{"0 shadowed_rule"}},
		{[]any{"GET a.test/x/*", "!GET *.test/X/**"}, []string{"0 shadowed_rule"}},
		{[]any{"GET a.test/a/*/c", "!* a.test/a/**/c"}, []string{"0 shadowed_rule"}},
		{[]any{"GET a.test/a/**/c", "!* a.test/a/*/c"}, nil},
		{[]any{"GET a.test/a*b", "!* a.test/a*"}, []string{"0 shadowed_rule"}},
		{[]any{"GET a.test/a*", "!* a.test/a*b"}, nil},
		{[]any{"GET a.test/*", "!* a.test/a"}, nil},
		{[]any{"GET,POST a.test/x", "!GET a.test/x"}, nil},
		{[]any{"GET a.test/x", "!GET https://a.test/x"}, nil},
		{[]any{"GET https://a.test/x", "!GET a.test/x"}, []string{"0 shadowed_rule"}},
		{[]any{"GET a.test:8443/x", "!GET a.test:*/x"}, []string{"0 shadowed_rule"}},
		{[]any{"GET a.test/x", mapping{"rule": "!GET a.test/x", "query": mapping{"a": "b"}}}, nil},
		{[]any{"GET a.test/x", mapping{"rule": "!GET a.test/x", "until": "2027-01-01T00:00:00Z"}}, nil},
		{[]any{mapping{"rule": "GET a.test/x", "until": "2026-12-01T00:00:00Z"}, mapping{"rule": "!GET a.test/x", "until": "2027-01-01T00:00:00Z"}}, []string{"0 shadowed_rule"}},
		{[]any{"CONNECT a.test:22", "!CONNECT *.test:22"}, []string{"0 shadowed_rule"}},
		{[]any{"CONNECT a.test:22", "!* a.test:22"}, nil},
		{[]any{"GET */x", "!* *:*/y"}, []string{"0 any_host"}},
		{[]any{"GET a.test:*/**"}, []string{"0 any_port"}},
		{[]any{"GET a.test/**", "!* a.test/admin/**"}, []string{"1 folder_not_denied"}},
		{[]any{"GET a.test/**", "!* a.test/admin/**", "!* a.test/admin"}, nil},
		{[]any{"GET a.test/**", "!* a.test/admin/**", "!* *.test/ADMIN*"}, nil},
		{[]any{"GET a.test/**", "!* a.test/admin/**", "!POST a.test/admin"}, []string{"1 folder_not_denied"}},
		{[]any{"GET a.test/pub/**", "!* a.test/admin/**"}, nil},
		{[]any{"GET a.test/repos/acme/**", "!* a.test/repos/*/keys/**"}, []string{"1 folder_not_denied"}},
		{[]any{"GET a.test/x", "!* a.test/**"}, []string{"0 shadowed_rule"}},
		{[]any{"GET www.a.test/**", "!* *.a.test/admin/**"}, []string{"1 folder_not_denied"}},
		{[]any{"GET a.test:*/**", "!* a.test/x"}, []string{"0 any_port", "1 deny_port"}},
		{[]any{"GET a.test:*/**", "!* a.test:*/x"}, []string{"0 any_port"}},
		{[]any{"GET *.test:*/**", "!* a.test/x"}, []string{"0 any_port", "1 deny_port"}},
		{[]any{"GET b.test:*/**", "!* a.test/x"}, []string{"0 any_port"}},
		{[]any{"CONNECT *.test:443", "GET a.test/**"}, []string{"1 tunnel_hides_rule"}},
		{[]any{"GET a.test:*/**", "CONNECT a.test:5432"}, []string{"0 any_port", "0 tunnel_hides_rule"}},
		{[]any{"CONNECT a.test:8443", "GET a.test/**"}, nil},
		{[]any{"GET *.test/**", "CONNECT a.test:443"}, []string{"0 tunnel_hides_rule"}},
		{[]any{"!* *.test/x", "CONNECT a.test:443"}, []string{"0 tunnel_hides_rule"}},
		{[]any{"!CONNECT a.test:443", "GET *.test/**"}, nil},
		{[]any{"GET */**", "CONNECT 192.0.2.1:443"}, []string{"0 any_host"}},
		{[]any{"GET https//a.test/**", "!* http//a.test/x", "GET https/a/b", "GET https://a.test//b", "GET http://https//b"}, []string{"0 scheme_as_host", "1 scheme_as_host"}},
	} {
		var got []string
		for _, w := range rules.Lint(parseAll(t, c.rules)) {
			got = append(got, fmt.Sprint(w.Index, " ", w.Kind))
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.rules, got, c.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		rules []any
		want  []int // index and other
	}{
		{[]any{"CONNECT db.test:5432", "GET db.test:5432/**"}, []int{1, 0}},
		{[]any{"GET db.test:5432/**", "CONNECT db.test:5432"}, []int{1, 0}},
		{[]any{"CONNECT a.test:443", "POST c.test/**", "GET A.test/x"}, []int{2, 0}},
		{[]any{"CONNECT a.test:80", "GET a.test/x"}, []int{1, 0}},
		{[]any{"CONNECT a.test:80", "GET https://a.test/x"}, nil},
		{[]any{"CONNECT a.test:8443", "GET a.test/**"}, nil},
		{[]any{"CONNECT db.test:5432", "!* db.test:5432/admin/**"}, []int{1, 0}},
		{[]any{"CONNECT *.db.test:443", "GET *.db.test/**"}, []int{1, 0}},
		{[]any{"CONNECT *.test:443", "GET a.test/**"}, nil},
		{[]any{"CONNECT a.test:443", "GET a.test:*/**"}, nil},
		{[]any{"CONNECT a.test:443", "CONNECT a.test:443", "!CONNECT a.test:443"}, nil},
		{[]any{"!CONNECT a.test:443", "GET a.test/**"}, nil},
	} {
		var got []int
		for _, f := range rules.Conflicts(parseAll(t, c.rules)) {
			got = append(got, f.Index, f.Other)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.rules, got, c.want)
		}
	}
	list := parseAll(t, []any{"CONNECT *.test:443", "CONNECT a.test:443", "!CONNECT b.other:443"})
	for host, want := range map[string]string{"a.test": "1 false", "b.test": "0 true", "b.other": "-1 false"} {
		i, hides := rules.TunnelConflict(list, host, 443)
		if got := fmt.Sprint(i, " ", hides); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

package credbroker

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPathGlob(t *testing.T) {
	for _, c := range []struct {
		target, path    string
		covers, touches bool
	}{
		{"", "/any%2Fthing", true, true},
		{"/**", "/", true, true},
		{"/v1", "/v1", true, true},
		{"/v1", "/v1/", true, true},
		{"/v1", "/v1/a/b", true, true},
		{"/v1/", "/v1/a", true, true},
		{"/v1/", "/v1", false, false},
		{"/v1", "/v10", false, false},
		{"/v1", "/", false, false},
		{"/v1", "//v1", false, true},
		{"/v1", `/v1\a`, false, true},
		{"/v1", "/v1;x/a", false, true},
		{"/v1", "/V1/a", false, true},
		{"/v1", "/%76%31/a", true, true},
		{"/v1", "/v1%2Fa", false, true},
		{"/v1", "/v1%252Fa", false, true},
		{"/v1", "/v1/a%2Fb%252Fc", true, true},
		{"/v1", "/v2%2Fv1", false, false},
		{"/repos/*/issues", "/repos/acme/issues", true, true},
		{"/repos/*/issues", "/repos//issues", false, false},
		{"/repos/*/issues", "/repos/a%2Fb/issues", false, true},
		{"/repos/*/issues", "/repos/acme/issues/1", false, false},
		{"/acme/**", "/acme/", true, true},
		{"/acme/**", "/acme", false, false},
		{"/a/**/z", "/a/z", true, true},
		{"/a/**/z", "/a/b/c/z", true, true},
		{"/a/**/z", "/a/b/c/y", false, false},
		{"/a/**/m/**/z", "/a/m/x/m/y/z", true, true},
		{"/a*c", "/abbc", true, true},
		{"/a*c", "/ac", true, true},
		{"/a*c", "/ab/c", false, false},
		{"/@scope%2Fname", "/@scope%2Fname", true, true},
		{"/@scope%2Fname", "/@scope%2fname/-/x", true, true},
		{"/@scope%2Fname", "/@scope/name", false, true},
		{"/a%2A", "/axx", false, false},
		{"/v1", "/v1/../v2", false, true},
		{"/v1", "/v1/%2e", false, true},
		{"/v1", "/v1/.well-known/..x", true, true},
	} {
		g := newPathGlob(c.target)
		if got := g.covers(c.path); got != c.covers {
			t.Errorf("%s covers %s: %v", c.target, c.path, got)
		}
		if got := g.touches(c.path); got != c.touches {
			t.Errorf("%s touches %s: %v", c.target, c.path, got)
		}
	}
}

// The walk over segments is what an obviously right expression matches.
func FuzzGlob(f *testing.F) {
	f.Add("/a/**/b*/**", "/a/x/bc/d")
	f.Add("/**/a/**/a", "/a/a/a")
	f.Add("/*/", "/x/")
	f.Fuzz(func(t *testing.T, glob, path string) {
		if !strings.HasPrefix(glob, "/") || !strings.HasPrefix(path, "/") || len(glob)+len(path) > 200 || strings.ContainsAny(path+glob, "\x01\x02\n") || !utf8.ValidString(path+glob) {
			return
		}
		segments := strings.Split(glob[1:], "/")
		if slices.ContainsFunc(segments, func(s string) bool { return s != "**" && strings.Contains(s, "**") }) {
			return // the loader refuses it
		}
		want := regexp.MustCompile(`(?s)^` + expression(segments) + `$`).MatchString(path)
		marked := strings.ReplaceAll(strings.ReplaceAll(glob, "**", markStars), "*", string(markStar))
		if got := globMatch(marked, path); got != want {
			t.Errorf("%q on %q: %v", glob, path, got)
		}
	})
}

func expression(segments []string) string {
	var b strings.Builder
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "**" && last:
			b.WriteString(`(/[^/]*)+`)
		case s == "**":
			b.WriteString(`(/[^/]*)*`)
		case s == "*":
			b.WriteString(`/[^/]+`)
		default:
			parts := strings.Split(s, "*")
			for n := range parts {
				parts[n] = regexp.QuoteMeta(parts[n])
			}
			b.WriteString("/" + strings.Join(parts, `[^/]*`))
		}
	}
	return b.String()
}

package token

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const threeProfiles = "[DEFAULT]\nhost = https://def.dbx.test\ntoken = dapi-default-11aa\n\n[dev]\nhost = https://dev.dbx.test\ntoken = dapi-dev-22bb\n\n" +
	"[prod]\nhost = https://prod.dbx.test\ntoken = dapi-prod-33cc\n\n[dev2]\nhost = https://dev.dbx.test/\ntoken = dapi-dev2-44dd\n"

func TestSections(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"a = b", "DEFAULT{a=b}"},
		{"a = b\n[DEFAULT]\nc = d", "DEFAULT{a=b c=d}!the profile stands twice"},
		{"[x]\na=b\n[y]\na:c", "x{a=b} y{a=c}"},
		{"\xef\xbb\xbf[x]\r\n a\t= b \r\n", "x{a=b}"},
		{"[x]\n# a = b\n; a = c\n\n a = d # e\nf = g;h\ni = j#k", "x{a=d f=g i=j}"},
		{"[x]\na = \"b c\"\nd = 'e'\nf = \"g'\nh = \"\"\ni = '", "x{a=b c d=e f=\"g' h= i='}"},
		{"[x]\na = `b # c`\nd = \"\"\"e;f\"\"\"", "x{a=b # c d=e;f}"},
		{"[x]\na = b = c\nd = https://h:1", "x{a=b = c d=https://h:1}"},
		{"[x]\nA = b\na = c", "x{A=b a=c}"},
		{"[x]\na =", "x{a=}"},
		{"[ x ]\na = b", " x {a=b}"},
		{"[x] # y\na = b", "x{a=b}"},
		{"[x\nm", "!"},
		{"[]", "!"},
		{"[x]\na = `b\nc`", "!"},
		{"[x]\na = \"\"\"b\nc\"\"\"", "!"},
		{"[x]\na = b\\\nc", "!"},
		{"[x]\na = b\na = c", "x{a=c}!line 3: a key that stands twice"},
		{"[x]\nnothing\n= a", "x{}!line 2: neither a key nor a section"},
		{"[x]\na = b\n[y]\n[x]\nc = d", "x{a=b c=d}!the profile stands twice y{}"},
	} {
		list, err := sections([]byte(c.text))
		if err != nil {
			if c.want != "!" {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		var got []string
		for _, s := range list {
			var keys []string
			for _, line := range strings.Split(c.text, "\n") {
				line = strings.TrimSpace(strings.TrimPrefix(line, "\xef\xbb\xbf"))
				if i := strings.IndexAny(line, "=:"); i > 0 {
					key := strings.TrimSpace(line[:i])
					if v, ok := s.keys[key]; ok && !strings.Contains(strings.Join(keys, "\n"), key+"=") {
						keys = append(keys, key+"="+v)
					}
				}
			}
			text := s.name + "{" + strings.Join(keys, " ") + "}"
			if s.fault != "" {
				text += "!" + s.fault
			}
			got = append(got, text)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestProfiles(t *testing.T) {
	list, err := Profiles([]byte(threeProfiles), []string{"prod", "DEFAULT", "dev2"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ name, url, token string }{
		{"prod", "https://prod.dbx.test", "dapi-prod-33cc"},
		{"DEFAULT", "https://def.dbx.test", "dapi-default-11aa"},
		{"dev2", "https://dev.dbx.test", "dapi-dev2-44dd"},
	} {
		p := list[i]
		if p.Name != want.name || p.URL() != want.url || string(p.secret.Reveal()) != want.token || !p.HoldsToken() {
			t.Errorf("profile %+v, want %v", p, want)
		}
	}
}

func TestLogin(t *testing.T) {
	for _, c := range []struct {
		keys string
		kind login
		want string // the token endpoint, or what the error holds
	}{
		{"host = dev.test\ntoken = dapi", byToken, ""},
		{"host = dev.test\ntoken = dapi\nclient_id = c\nclient_secret = s", byToken, ""},
		{"host = dev.test\nclient_id = c\nclient_secret = s", byMachine, "https://dev.test/oidc/v1/token"},
		{"host = https://accounts.cloud.test\naccount_id = 1-a\nclient_id = c\nclient_secret = s", byMachine, "https://accounts.cloud.test/oidc/accounts/1-a/v1/token"},
		{"host = accounts-dod.cloud.test:8443\naccount_id = a/b\nclient_id = c\nclient_secret = s", byMachine, "https://accounts-dod.cloud.test:8443/oidc/accounts/a%2Fb/v1/token"},
		{"host = dev.test\nauth_type = oauth-m2m\ntoken = t\nclient_id = c\nclient_secret = s", byMachine, "https://dev.test/oidc/v1/token"},
		{"host = dev.test\nauth_type = pat\ntoken = t\nclient_id = c\nclient_secret = s", byToken, ""},
		{"host = dev.test", byTool, ""},
		{"host = dev.test\nauth_type = databricks-cli\ntoken = t", byTool, ""},
		{"host = dev.test\nauth_type = azure-cli", byTool, ""},
		{"host = dev.test\nclient_id = c", byTool, ""},
		{"host = dev.test\nusername = u\npassword = p", byTool, ""},

		{"token = hush", 0, "no host"},
		{"host = dev.test\nauth_type = pat", 0, "no token"},
		{"host = dev.test\nauth_type = oauth-m2m\nclient_id = hush", 0, "no client_id or no client_secret"},
		{"host = accounts.cloud.test\nclient_id = c\nclient_secret = hush", 0, "no account_id"},
		{"host = http://dev.test\ntoken = hush", 0, "not https"},
		{"host = dev.test\ntoken = hu sh", 0, "cannot be sent"},
		{"host = dev.test\ntoken = hushé", 0, "cannot be sent"},
		{"host = dev.test\ntoken = hush\ntoken = hush", 0, "line 4: a key that stands twice"},
	} {
		list, err := Profiles([]byte("[p]\n"+c.keys), []string{"p"})
		if err != nil {
			if c.want == "" || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"p"`) || strings.Contains(err.Error(), "hu") {
				t.Errorf("%q: %v", c.keys, err)
			}
			continue
		}
		p := list[0]
		if p.kind != c.kind || p.kind == byMachine && p.TokenURL() != c.want {
			t.Errorf("%q: kind %d, %s", c.keys, p.kind, p.TokenURL())
		}
	}
}

func TestHost(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"dev.test", "https://dev.test"},
		{"https://Dev.TEST/", "https://dev.test"},
		{"HTTPS://dev.test.", "https://dev.test"},
		{"https://adb-1.2.azuredatabricks.net/?o=123", "https://adb-1.2.azuredatabricks.net"},
		{"https://dev.test:443", "https://dev.test"},
		{"dev.test:8443/x", "https://dev.test:8443"},
		{"https://192.0.2.1", "https://192.0.2.1"},
		{"https://[2001:DB8::1]", "https://[2001:db8::1]"},
		{"https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"},
		{"", ""},
		{"http://dev.test", ""},
		{"ftp://dev.test", ""},
		{"https://user:secret@dev.test", ""},
		{"https://", ""},
		{"https://dev.test:0", ""},
		{"https://dev.test:65536", ""},
		{"https://dev.test:x", ""},
		{"https://dév.test", ""},
		{"https://dev..test", ""},
		{"https://.test", ""},
		{"https://de v.test", ""},
		{"https://dev%2Etest/", ""},
		{"https://*.test", ""},
		{"https://[fe80::1%25eth0]", ""},
	} {
		host, port, err := hostOf(c.text)
		got := ""
		if err == nil {
			got = Profile{Host: host, Port: port}.URL()
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s (%v)", c.text, got, c.want, err)
		}
	}
}

func TestReadProfiles(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".databrickscfg")
	if got, err := ProfilesPath(func(string) string { return "" }, home); err != nil || got != path {
		t.Errorf("path %s, %v", got, err)
	}
	for _, c := range []struct{ variable, want string }{
		{"~/x", home + "/x"}, {"/a/b", "/a/b"}, {"a/b", ""}, {"~other/x", ""},
	} {
		got, err := ProfilesPath(func(string) string { return c.variable }, home)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %s, %v", c.variable, got, err)
		}
	}
	if _, err := ProfilesPath(func(string) string { return "" }, ""); err == nil {
		t.Error("no home is no error")
	}
	refuses := func(names []string, holds ...string) {
		t.Helper()
		_, err := ReadProfiles(path, names)
		if err == nil {
			t.Fatal("no error")
		}
		for _, s := range append(holds, path) {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%v lacks %q", err, s)
			}
		}
		if strings.Contains(err.Error(), "dapi") {
			t.Errorf("quoted: %v", err)
		}
	}
	refuses([]string{"dev"}, "no such file")
	if err := os.WriteFile(path, []byte(threeProfiles), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses([]string{"dev", "dev2"}, `"dev"`, `"dev2"`, "https://dev.dbx.test")
	refuses([]string{"stage"}, `"stage"`)
	if list, err := ReadProfiles(path, []string{"dev", "prod"}); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if err := os.WriteFile(path, append([]byte(threeProfiles), make([]byte, maxProfiles)...), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses([]string{"dev"}, "longer")
	path = home
	refuses([]string{"dev"}, "not a file")
}

func TestRender(t *testing.T) {
	list, err := Profiles([]byte(`[dev]
host = https://dev.dbx.test/?o=1
token = dapi-dev-22bb
cluster_id = 0123-456789-abcdefgh
warehouse_id = dapi0123456789abcdef0123456789abcdef
serverless_compute_id = auto
username = me
[console]
host = accounts.dbx.test:8443
account_id = 01234567-89ab-cdef-0123-456789abcdef
client_id = cid-1
client_secret = sec-m2m
[prod]
host = https://prod.dbx.test
`), []string{"dev", "console"})
	if err != nil {
		t.Fatal(err)
	}
	want := `[dev]
host = https://dev.dbx.test
cluster_id = 0123-456789-abcdefgh
serverless_compute_id = auto
auth_type = pat
token = place-dev

[console]
host = https://accounts.dbx.test:8443
account_id = 01234567-89ab-cdef-0123-456789abcdef
auth_type = pat
token = place-console
`
	if got := string(Render(list, func(name string) string { return "place-" + name })); got != want {
		t.Errorf("got\n%s", got)
	}
}

// What is rendered reads as the same profiles on the same hosts, with nothing
// of the user's logins.
func FuzzProfiles(f *testing.F) {
	f.Add(threeProfiles, "dev")
	f.Add("host = x\ntoken = \"a b\" # c\n[DEFAULT ]\n", "DEFAULT")
	f.Add("[m]\nhost: https://[::1]:8443/x\nclient_id='c'\nclient_secret=`s`\naccount_id=1", "m")
	f.Add("[x]]\nhost=accounts.a\n", "x]")
	f.Fuzz(func(t *testing.T, text, name string) {
		list, err := Profiles([]byte(text), []string{name})
		if err != nil {
			return
		}
		if strings.ContainsAny(name, "[]\r\n\x00") {
			return // no name of a profile for the policy
		}
		inside := Render(list, func(string) string { return "oa_cred_x" })
		again, err := Profiles(inside, []string{name})
		if err != nil {
			t.Fatalf("%v of\n%s", err, inside)
		}
		p, q := list[0], again[0]
		if p.URL() != q.URL() || q.kind != byToken || string(q.secret.Reveal()) != "oa_cred_x" {
			t.Errorf("%+v became %+v", p, q)
		}
		if n := len(p.secret.Reveal()); n > 40 && strings.Contains(string(inside), string(p.secret.Reveal())) && !strings.Contains(name+p.Host, string(p.secret.Reveal())) {
			t.Errorf("a login is inside:\n%s", inside)
		}
	})
}

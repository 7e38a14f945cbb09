package main

import (
	"os/exec"
	"strings"
	"testing"
)

// curl, Python's requests and Node's fetch with a secret in each place, attached
// and swapped, as an ordinary user and as root.
func TestCredClientsHTTP(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		secrets := map[string]string{"bearer": "tok-live-7Qm4x9Zr2Lp8-bearer", "basic": "tok/live+Kd03nWq81xYt=basic", "header": "tok-live-Zk31vT0pW5aa-header", "query": "tok&live 9Kd2x7Qm4x9Z%query"}
		services := map[string]*wants{
			"bearer": {at: "Authorization", login: bearer}, "basic": {at: "Authorization", login: basic("ann")},
			"header": {at: "X-Api-Key"}, "query": {at: "?key"},
		}
		c := credClient{env: map[string]string{}, rules: []any{"* *.test/**"}}
		for _, id := range []string{"bearer", "basic", "header", "query"} {
			services[id].secret = fixed(secrets[id])
			h.services[id+".test"] = services[id]
			e := map[string]any{"id": id, "type": "https_" + id, "target": id + ".test", "source": map[string]any{"env": "REAL_" + id}, "env": strings.ToUpper(id)}
			switch id {
			case "basic":
				e["username"] = "ann"
			case "header":
				e["header"] = "X-Api-Key"
			case "query":
				e["param"] = "key"
			}
			c.entries = append(c.entries, e)
			c.env["REAL_"+id] = secrets[id]
			c.hosts = append(c.hosts, id+".test")
			c.secrets = append(c.secrets, secrets[id])
		}
		for _, x := range []struct{ name, program, run string }{
			{"curl", "curl", `
curl -sS https://bearer.test/ https://basic.test/ https://header.test/ https://query.test/
curl -sS --oauth2-bearer $BEARER https://bearer.test/?slow=1; curl -sS -u ann:$BASIC https://basic.test/?slow=1
curl -sS -H "x-api-key: $HEADER" https://header.test/; curl -sS -G -d key=$QUERY -d slow=1 https://query.test/`},
			{"curl HTTP/1.1", "curl", `alias curl='curl -sS --http1.1 --compressed'
curl https://bearer.test/?slow=1 https://basic.test/?slow=1 https://header.test/?slow=1 "https://query.test/?slow=1"
curl --oauth2-bearer $BEARER https://bearer.test/; printf 'machine basic.test login ann password %s' $BASIC >/tmp/netrc; curl --netrc-file /tmp/netrc https://basic.test/
curl -H "x-api-key: $HEADER" -d a=b https://header.test/; curl "https://query.test/a?b=c&key=$QUERY"`},
			{"python requests", "/usr/bin/python3", `/usr/bin/python3 -c '
import os, requests
e, s = os.environ, requests.Session()
def show(r): print(r.text, end=""); assert r.headers["x-echo"].startswith("oa_cred_"), r.headers
for host in "bearer", "basic", "header", "query": show(s.get(f"https://{host}.test/"))
show(s.get("https://bearer.test/", headers={"Authorization": "Bearer " + e["BEARER"]}, params={"slow": 1}))
show(s.post("https://basic.test/", auth=("ann", e["BASIC"]), json={"a": 1}))
s.headers["x-api-key"] = e["HEADER"]; show(s.put("https://header.test/", data=b"x" * 3000000))
del s.headers["x-api-key"]; show(s.get("https://query.test/", params={"key": e["QUERY"], "slow": 1}))'`},
			{"node fetch", "node", `node -e '
const e = process.env, show = async r => { process.stdout.write(await r.text()); if (!r.headers.get("x-echo").startsWith("oa_cred_")) throw r.headers }
;(async () => { for (const host of ["bearer", "basic", "header", "query"]) await show(await fetch("https://" + host + ".test/"))
await show(await fetch("https://bearer.test/?slow=1", {headers: {Authorization: "Bearer " + e.BEARER}}))
await show(await fetch("https://basic.test/", {method: "POST", body: "{}", headers: {Authorization: "Basic " + btoa("ann:" + e.BASIC)}}))
await show(await fetch("https://header.test/", {headers: {"x-api-key": e.HEADER}}))
await show(await fetch("https://query.test/?slow=1&key=" + e.QUERY)) })()'`},
		} {
			if _, err := exec.LookPath(x.program); err != nil {
				t.Fatalf("%s is not there: .ci/deps test installs it", x.program)
			}
			c.name, c.run, c.want = x.name, x.run, strings.Repeat(shown, 8)
			for _, c.user = range clientUsers {
				if c.user.uid == 0 { // and by the other door
					c.name, c.run = x.name+" as root", "unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy NODE_USE_ENV_PROXY\n"+x.run
				}
				text := h.try(t, c)
				if other := `"capture":"explicit"`; strings.Contains(text, `"verdict":"deny"`) || c.user.uid == 0 && strings.Contains(text, other) {
					t.Errorf("%s: a request was refused, or came by the other door: %s", c.name, cut(text))
				}
				for _, s := range services {
					s.settle(t, 2, 0)
				}
			}
		}
	})
}

// Clients that look at the form of a token get one that passes, and it is
// swapped whole (FAULTS.md C17).
func TestCredClientsShape(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		c := credClient{name: "shapes", rules: []any{"GET *.test/"}, env: map[string]string{}, run: `set -e
check() { python3 -c 'import re, sys; assert re.fullmatch(sys.argv[1], sys.argv[2]), "not a token: " + sys.argv[2]' "$1" "$2"; }
`}
		for _, x := range []struct{ id, shape, form string }{
			{"GITHUB", "ghp_{36}", "ghp_[A-Za-z0-9]{36}"},
			{"PAT", "github_pat_{22}_{59}", "github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"},
			{"MODEL", "sk-ant-api03-{93}AA", "sk-ant-api03-[A-Za-z0-9_-]{93}AA"},
			{"DATABRICKS", "dapi{32}", "dapi[A-Za-z0-9]{32}"},
		} {
			host, secret := strings.ToLower(x.id)+".test", strings.ReplaceAll(x.shape, "{", "7Qm4x9Zr2Lp8{")
			s := &wants{at: "Authorization", login: bearer, secret: fixed(secret)}
			h.services[host] = s
			c.hosts, c.secrets = append(c.hosts, host), append(c.secrets, secret)
			c.env["REAL_"+x.id] = secret
			c.entries = append(c.entries, map[string]any{"id": x.id, "type": "https_bearer", "target": host, "source": map[string]any{"env": "REAL_" + x.id}, "env": x.id, "shape": x.shape, "inject": "placeholder"})
			c.run += "check '" + x.form + `' "$` + x.id + `"; curl -sS -H "Authorization: Bearer $` + x.id + `" https://` + host + `/ | sed "s/$` + x.id + `/KEY/g"` + "\n"
			c.want += shown
			defer s.settle(t, 1, 0)
		}
		h.try(t, c)
	})
}

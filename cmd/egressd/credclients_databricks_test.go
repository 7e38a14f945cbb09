package main

import (
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/internal/proxytest"
)

// dbxCLI is a command line shaped as that of Databricks: it takes host and token
// from a profile of the file, and calls.
const dbxCLI = `
dbx() {
  p=${2:-$DATABRICKS_CONFIG_PROFILE}
  eval "$(awk -v p="[$p]" '/^\[/ { on = $0 == p; next } on && $1 == "host" { print "host=" $3 } on && $1 == "token" { print "token=" $3 }' "$DATABRICKS_CONFIG_FILE")"
  curl -sS -H "Authorization: Bearer $token" -H "User-Agent: databricks-cli" "$host$1"; shift
}
`

// dbxSDK calls several workspaces at once, each with a client of its own.
const dbxSDK = `node -e '
const { WorkspaceClient } = require("/usr/local/lib/node_modules/@databricks/sdk-experimental");
const ask = async profile => {
  const w = new WorkspaceClient({ profile }), out = [];
  const me = await w.currentUser.me();
  out.push(me.userName, me.displayName);
  for await (const c of w.clusters.list({})) out.push(c.cluster_id, c.cluster_name);
  const run = await w.apiClient.request({ path: "/api/2.1/jobs/run-now", method: "POST", headers: new Headers({ "Content-Type": "application/json" }), payload: { job_id: 7 } });
  return out.concat(run.run_id).join(" ");
};
Promise.all(process.argv.slice(1).map(ask)).then(all => console.log(all.join("\n")), e => { console.error(e); process.exitCode = 1 });
' `

// Two and more profiles at once, of each way to log in: with the SDK for Node
// and with a command line. Tokens of OAuth are made anew at half their life, once
// for however many calls (FAULTS.md K30).
func TestCredClientsDatabricks(t *testing.T) {
	credClients(t, func(t *testing.T, h *credHost) {
		const token, clientSecret, told = "dapi4f0a9c1e77b2d3e8a6c5", "dose7Qm4x9Zr2Lp8Kd03nWq8", "eyJ0b29s.Zk31vT0pW5aa.9Kd2x7Qm4"
		d := &proxytest.Databricks{Workspaces: map[string]*proxytest.Workspace{
			"dev.dbx.test":   {Token: token},
			"robot.dbx.test": {ClientID: "robot", ClientSecret: clientSecret, Bearer: "eyJyb2JvdA.7Qm4x9Zr2Lp8.Kd03nWq8", Life: 4 * time.Second},
			"tool.dbx.test":  {Token: told},
			"wrong.dbx.test": {ClientID: "robot", ClientSecret: "another"},
		}}
		c := credClient{rules: []any{"* *.dbx.test/**"}, secrets: []string{token, clientSecret, told, "eyJyb2JvdA.7Qm4x9Zr2Lp8.Kd03nWq8", "dapi-of-nobody-9Kd2x7"},
			env: map[string]string{"PATH": "${home}/bin:/usr/local/bin:/usr/bin:/bin"}, exec: []string{"~/bin/databricks"},
			files: map[string]string{
				"~/.databrickscfg": `[DEFAULT]
host = https://other.dbx.test
token = dapi-of-nobody-9Kd2x7

[dev]
host = https://dev.dbx.test/
token = ` + token + `

[robot]
host = https://robot.dbx.test
client_id = robot
client_secret = ` + clientSecret + `

[wrong]
host = https://wrong.dbx.test
client_id = robot
client_secret = ` + clientSecret + `

[tool]
host = https://tool.dbx.test
auth_type = databricks-cli
`,
				"~/bin/databricks": "#!/bin/sh\ntest \"$*\" = 'auth token --profile tool' && echo '{\"access_token\": \"" + told + "\", \"token_type\": \"Bearer\", \"expiry\": \"2999-01-01T00:00:00Z\"}'\n",
			},
			entries: []map[string]any{{"id": "dbx", "type": "databricks_cli", "profiles": []string{"dev", "robot", "tool", "wrong"}, "default": "dev"}},
		}
		for host := range d.Workspaces {
			c.hosts = append(c.hosts, host)
			h.services[host] = d
		}
		c.name, c.run = "sdk", "set -e; exec 2>&1\n"+dbxSDK+"dev robot tool\n"+dbxSDK+"robot"
		line := func(name string) string { return "ann@" + name + ".dbx.test KEY one KEY two KEY 70\n" }
		c.want = line("dev") + line("robot") + line("tool") + line("robot")
		h.try(t, c)

		c.name, c.run = "command line", "set -e; exec 2>&1\n"+dbxCLI+`
dbx /api/2.0/preview/scim/v2/Me; dbx /api/2.0/preview/scim/v2/Me dev; dbx /api/2.0/preview/scim/v2/Me robot; dbx /api/2.0/preview/scim/v2/Me tool
sleep 2.1; for i in 1 2 3 4 5 6 7 8; do dbx /api/2.0/preview/scim/v2/Me robot >/tmp/$i & done; wait; sort -u /tmp/?; rm /tmp/?
dbx /api/2.0/preview/scim/v2/Me wrong | grep -o '"code":"[a-z_]*"'
grep -c other "$DATABRICKS_CONFIG_FILE" || :`
		me := func(name string) string { return `{"displayName":"KEY","userName":"ann@` + name + `.dbx.test"}` + "\n" }
		c.want = me("dev") + me("dev") + me("robot") + me("tool") + me("robot") + `"code":"credential_unavailable"` + "\n0\n"
		_, before := d.Calls("robot.dbx.test")
		h.try(t, c)
		if _, after := d.Calls("robot.dbx.test"); after-before != 2 {
			t.Errorf("%d tokens were made for a call and, after the end of the first, eight at once", after-before)
		}
		if f := d.Foreign(); len(f) > 0 {
			t.Errorf("other logins came: %s", strings.Join(f, ", "))
		}
	})
}

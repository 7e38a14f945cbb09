package main

import "testing"

// Package tools, each from a registry of its own protocol.
func TestClientsPackages(t *testing.T) {
	clients(t, func(t *testing.T, h *clientsHost) {
		const npm = "cd && mkdir -p p && cd p && npm --registry https://npm.test/ "
		const pip = "cd && /usr/bin/python3 -m pip --disable-pip-version-check "
		npmDenied := step{run: npm + "install forbidden", fails: true, says: `403 403 Forbidden - GET https://npm\.test/forbidden`}
		runClients(t, h, []clientCase{
			{name: "npm", needs: []string{"node", "npm"}, within: 40, steps: []step{
				// The script of the package asks by itself, as a child of npm (FAULTS.md C6).
				{run: npm + "install --foreground-scripts tiny && cat node_modules/tiny/installed", says: `(?s)added 1 package.*200$`},
				{run: npm + "exec -- tiny", says: `hi from tiny$`},
				npmDenied,
			}, by: map[way][]step{explicit: {
				// npm heeds the variables; its child does not before Node 24, and says so.
				{run: npm + "install --ignore-scripts tiny && node_modules/.bin/tiny", says: `(?s)added 1 package.*hi from tiny$`},
				npmDenied,
			}}},
			{name: "pip", needs: []string{"/usr/bin/pip3"}, within: 40, root: true, steps: []step{
				{run: pip + "install -q --root-user-action=ignore --index-url https://pypi.test/simple --target t tiny && PYTHONPATH=t python3 -c 'import tiny; print(tiny.hi())'", says: `^hi from tiny$`},
				{run: pip + "download --index-url https://pypi.test/simple locked", fails: true,
					says: `ERROR: HTTP error 403 while getting https://pypi\.test/locked/locked-1\.0-py3-none-any\.whl`},
				// Of an index that it may not read pip says no more than that it has nothing.
				{run: pip + "download -vv --index-url https://pypi.test/simple hidden", fails: true,
					says: `(?s)403 Client Error: Forbidden for url: https://pypi\.test/simple/hidden/.*ERROR: No matching distribution found for hidden`},
			}, by: map[way][]step{variables: nil}},
			// What uv and cargo read, which are no Debian packages of every release:
			// each must name the whole bundle (FAULTS.md T13).
			{name: "trust variables", quiet: true, steps: []step{
				{run: `set -e; for v in SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO CARGO_HTTP_CAINFO AWS_CA_BUNDLE DENO_CERT npm_config_cafile
do eval "f=\$$v"; n=$(grep -c BEGIN.CERTIFICATE "$f"); [ "$n" -gt 2 ] || { echo "$v: $n certificates"; exit 1; }; done; echo "$UV_NATIVE_TLS ${NO_PROXY:-unset}"`,
					says: `^1 localhost,127\.0\.0\.1,::1,\[::1\]$`},
			}},
		})
	})
}

package main

import "testing"

// What a refused client shows: the problem document, which names the rule that
// would allow the request.
const problem = `"detail":"Rules know this host.*"code":"path_not_allowed","rule_hint":"GET ok\.test/private"`

// Clients of HTTP, with no setting of their own.
func TestClientsHTTP(t *testing.T) {
	clients(t, func(t *testing.T, h *clientsHost) {
		runClients(t, h, []clientCase{
			{name: "curl", needs: []string{"curl"}, root: true, steps: []step{
				{run: "curl -sS -w ' %{http_version}' https://ok.test/pub/a", says: `^ok 2$`},
				{run: "curl -sS --http1.1 -w ' %{http_version}' https://ok.test/pub/a", says: `^ok 1\.1$`},
				{run: "curl -sS http://ok.test/pub/a", says: `^ok$`},
				{run: "curl -sS --http1.1 https://ok.test/private", says: problem},
				{run: "curl -sS https://ok.test/private", says: problem},
				{run: "curl -fsS https://other.test/", fails: true, says: `curl: \(22\) The requested URL returned error: 403`},
				{run: "curl -sS https://other.test/", says: `"rule_hint":"GET other\.test/"`},
				{run: "curl -sS http://other.test/", says: `"code":"no_rule"`},
				{run: "curl -sS https://" + longName + "/pub/a", says: `^ok$`},
			}},
			{name: "wget", needs: []string{"wget"}, steps: []step{
				{run: "wget -qO- https://ok.test/pub/a", says: `^ok$`},
				{run: "wget -qO- http://ok.test/pub/a", says: `^ok$`},
				{run: "wget -nv -O- https://ok.test/private", fails: true, says: `ERROR 403: Forbidden`},
				{run: "wget -nv --content-on-error -O- https://other.test/", fails: true, says: `"code":"no_rule"`},
			}},
			{name: "python", needs: []string{"/usr/bin/python3"}, root: true, steps: []step{
				{run: `python3 -c "import urllib.request as u; print(u.urlopen('https://ok.test/pub/a').read())"`, says: `b'ok'`},
				{run: `python3 -c "import urllib.request as u; print(u.urlopen('http://ok.test/pub/a').read())"`, says: `b'ok'`},
				{run: `python3 -c "import urllib.request as u; u.urlopen('https://ok.test/private')"`, fails: true, says: `HTTPError: HTTP Error 403: Forbidden`},
				{run: `python3 -c "import requests as r; print(r.get('https://ok.test/pub/a').text, r.get('http://ok.test/pub/a').text)"`, says: `^ok ok$`},
				{run: `python3 -c "import requests as r; a=r.get('https://other.test/x'); print(a.json()['detail'], flush=True); a.raise_for_status()"`, fails: true,
					says: `(?s)^No rule of the policy allows this host.*HTTPError: 403 Client Error: Forbidden for url: https://other\.test/x`},
			}},
			{name: "openssl", needs: []string{"openssl"}, steps: []step{
				{run: `printf 'GET /pub/a HTTP/1.0\r\nHost: ok.test\r\n\r\n' | openssl s_client -quiet -verify_return_error -connect ok.test:443 -servername ok.test`, says: `(?s)verify return:1.*HTTP/1\.[01] 200 OK.*ok`},
				{run: `printf 'GET / HTTP/1.0\r\nHost: other.test\r\n\r\n' | openssl s_client -quiet -verify_return_error -connect other.test:443 -servername other.test`, says: `(?s)HTTP/1\.[01] 403 Forbidden.*"code":"no_rule"`},
			}, by: map[way][]step{explicit: {
				{run: `printf 'GET /pub/a HTTP/1.0\r\nHost: ok.test\r\n\r\n' | openssl s_client -proxy 127.0.0.1:3128 -quiet -verify_return_error -connect ok.test:443 -servername ok.test`, says: `HTTP/1\.[01] 200 OK`},
				{run: `openssl s_client -proxy 127.0.0.1:3128 -connect other.test:5432`, fails: true, says: `403 Forbidden`},
			}}},
			{name: "tunnel of plain http", needs: []string{"curl"}, by: map[way][]step{captured: nil}, steps: []step{
				// FAULTS.md C1: Node's fetch tunnels plain http to port 80 too.
				{run: "curl -sS -p http://ok.test/pub/a", says: `^ok$`},
				{run: "curl -sS -p http://ok.test/private", says: problem},
				// FAULTS.md C3: the refusal of a CONNECT is an answer, not a close.
				{run: "curl -sS https://ok.test:8443/", fails: true, says: `curl: \(56\) CONNECT tunnel failed, response 403`},
				{run: "curl -sS -v https://ok.test:8443/", fails: true, says: `(?is)Proxy-Status: egressd; error=http_request_denied; details="port_not_allowed"`},
			}},
		})
	})
}

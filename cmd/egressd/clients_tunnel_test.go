package main

import "testing"

// speak is a client of a protocol in which the server speaks first; through the
// explicit door it asks for the tunnel itself.
func speak(name, port string) string {
	return `python3 -c "
import os, socket
proxy = os.environ.get('HTTPS_PROXY')
s = socket.create_connection(('127.0.0.1', 3128) if proxy else ('` + name + `', ` + port + `), 5)
f = s.makefile('rwb')
if proxy:
    f.write(b'CONNECT ` + name + `:` + port + ` HTTP/1.1\r\nHost: ` + name + `:` + port + `\r\n\r\n'); f.flush()
    status = f.readline().decode().strip()
    while f.readline().strip(): pass
    if ' 200 ' not in status: raise SystemExit(status)
print(f.readline().decode().strip())
f.write(b'SELECT 1\n'); f.flush()
print(f.readline().decode().strip())
"`
}

// Tunnels that a CONNECT rule allows: what goes through is the client's and the
// server's own, also the certificate.
func TestClientsTunnels(t *testing.T) {
	clients(t, func(t *testing.T, h *clientsHost) {
		secure := func(proxy, rest string) string {
			return "(printf 'SELECT 1\\n'; sleep 0.5) | openssl s_client " + proxy + " -quiet -no_ign_eof -verify_return_error -CAfile origin-ca.pem " + rest
		}
		const viaDoor = "-proxy 127.0.0.1:3128"
		tunnelled := `(?s)CN = proxytest authority.*220 db ready`
		runClients(t, h, []clientCase{
			{name: "database", needs: []string{"openssl", "/usr/bin/python3"}, root: true, steps: []step{
				{run: secure("", "-connect db.test:5432 -servername db.test"), says: tunnelled},
				{run: secure("", "-connect db.test:5432 -servername other.test"), fails: true, says: `unexpected eof`},
				{run: secure("", "-connect db.test:5433 -servername db.test"), fails: true, says: `[Cc]onnection refused`},
				{run: speak("raw.test", "7000"), says: `^220 raw ready\nSELECT 1$`},
				{run: speak("raw.test", "7001"), fails: true, says: `ConnectionRefusedError`},
			}, by: map[way][]step{variables: nil, explicit: {
				{run: secure(viaDoor, "-connect db.test:5432 -servername db.test"), says: tunnelled},
				{run: secure(viaDoor, "-connect db.test:5432 -servername other.test"), fails: true, says: `unexpected eof`},
				{run: secure(viaDoor, "-connect db.test:5433 -servername db.test"), fails: true, says: `403 Forbidden`},
				{run: speak("raw.test", "7000"), says: `^220 raw ready\nSELECT 1$`},
				{run: speak("raw.test", "7001"), fails: true, says: `^HTTP/1\.1 403 Forbidden$`},
			}}},
		})
	})
}

package main

import "testing"

func TestClientsTmp(t *testing.T) {
	clients(t, func(t *testing.T, h *clientsHost) {
		n := func(s step) step { s.run = "export PATH=/var/lib/n24/bin:/var/lib/uv/bin:$PATH; " + s.run; return s }
		runClients(t, h, []clientCase{
			{name: "node24", sandbox: map[string]any{"read_paths": []string{"/var/lib/n24"}}, steps: []step{
				n(step{run: "node -v", says: "v24"}),
				n(step{run: nodeFetch("https://ok.test/pub/a"), says: `^200 ok$`}),
				n(step{run: nodeFetch("http://ok.test/pub/a"), says: `^200 ok$`}),
				n(step{run: nodeHTTPS("https://ok.test/pub/a"), says: `^200 ok$`}),
				n(step{run: nodeHTTPS("http://ok.test/pub/a"), says: `^200 ok$`}),
				n(step{run: nodeFetch("https://ok.test/private"), fails: true, says: `^403 \{.*path_not_allowed`}),
				n(step{run: nodeFetch("https://ok.test:8443/private"), fails: true, says: `XX`}),
				n(step{run: nodeSocket("wss://ok.test/ws"), fails: true, says: `XX`}),
				n(step{run: "node -e 'const w=new WebSocket(\"wss://ok.test/ws\"); w.onopen=()=>w.send(\"hi\"); w.onmessage=m=>{console.log(m.data); w.close()}; w.onerror=e=>console.log(e.message)'", says: `^hi`}),
				n(step{run: "python3 -m http.server -d / -b :: 8000 >/dev/null 2>&1 & sleep 0.5; for u in 127.0.0.1 localhost [::1]; do node -e 'fetch(process.argv[1]).then(async r => console.log(r.status))' http://$u:8000/; done", says: "^200\n200\n200$"}),
			}},
			{name: "uv", sandbox: map[string]any{"read_paths": []string{"/var/lib/uv"}}, steps: []step{
				n(step{run: "cd && uv pip install -q --index-url https://pypi.test/simple --target t tiny && ls t", says: `tiny`}),
				n(step{run: "cd && uv pip install --index-url https://pypi.test/simple --target t hidden", fails: true, says: `403`}),
			}},
		})
	})
}

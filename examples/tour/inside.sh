# Runs inside the sandbox.
say() { printf '\n-- %s\n' "$1"; }
show() { python3 -m json.tool 2>/dev/null || cat; }

say "allowed: a rule says GET api.example.test/v1/**"
curl -sS https://api.example.test/v1/hello

say "a credential: here it is a placeholder; the origin gets the real token, and its echo is scrubbed"
echo "DEMO_TOKEN=$DEMO_TOKEN"
curl -sS -H "Authorization: Bearer $DEMO_TOKEN" https://api.example.test/v1/whoami

say "the placeholder for another host goes nowhere"
curl -sS -H "Authorization: Bearer $DEMO_TOKEN" https://other.example.test/collect | show

say "denied: no rule allows POST, and the answer says which rule would"
curl -sS -X POST -d x=1 https://api.example.test/v1/hello | show

say "denied: a deny rule beats every allow rule"
curl -sS https://api.example.test/v1/admin/keys | show

say "a client that ignores the proxy variables is caught all the same"
curl -sS --noproxy '*' https://telemetry.example.test/collect | show

say "refused: a private address, though a rule names it"
curl -sS http://10.0.0.1/latest/meta-data | show

#!/usr/bin/env bash
# The tour of `make run`: a program in a sandbox, one request allowed, one
# denied, a credential swapped in and scrubbed from what comes back, a client that
# ignores proxies caught, a private address refused, and the record of it all. Nothing leaves the machine: `egressd demo-origin` plays
# api.example.test.
set -euo pipefail

egressd=$(realpath "${1:?usage: run.sh EGRESSD}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
origin=
trap '[ -z "$origin" ] || kill "$origin" 2>/dev/null || true; rm -rf "$work"' EXIT
chmod 755 "$work"
export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config

"$egressd" demo-origin --ca-out "$work/origin-ca.pem" >"$work/ready" &
origin=$!
for _ in $(seq 100); do [ -s "$work/ready" ] && break; sleep 0.05; done
listen=$(sed -n 's/.*"listen":"\([^"]*\)".*/\1/p' "$work/ready")
[ -n "$listen" ] || { echo "the demo origin did not start" >&2; exit 1; }

mkdir "$work/policy" "$work/project"
sed "s/@LISTEN@/$listen/g; s|@CA@|$work/origin-ca.pem|" "$here/egressd.yaml" >"$work/policy/egressd.yaml"
cp "$here/inside.sh" "$work/project/"
cd "$work/project"

echo "The policy (examples/tour/egressd.yaml):"
sed 's/^/    /' "$here/egressd.yaml"
echo
echo "\$ DEMO_TOKEN=... egressd run --policy egressd.yaml -- sh inside.sh"
DEMO_TOKEN=demo-token-that-only-egressd-and-the-origin-know "$egressd" run --policy "$work/policy/egressd.yaml" --audit "$work/record.jsonl" -- sh inside.sh
echo
echo "\$ egressd audit list record.jsonl"
"$egressd" audit list "$work/record.jsonl"
echo
echo "\$ egressd audit verify record.jsonl"
"$egressd" audit verify "$work/record.jsonl"

#!/bin/bash
# bench-masks.sh EGRESSD [RUNS]: the median start to exit of `true` with 1, 1,000
# and 5,000 names in mask_paths, all in one folder and ten to a folder, and in a
# tree of 1,000,000 names, which is walked up to the default bound and whole.
set -e
bin=$(realpath "$1"); runs=${2:-11}
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
median() { # POLICY, in the current folder
	for ((i = 0; i < runs; i++)); do
		a=$(date +%s%N); "$bin" run -q --policy "$1" -- true 2>/dev/null; b=$(date +%s%N)
		echo $(((b - a) / 100000))
	done | sort -n | sed -n "$((runs / 2 + 1))p" | sed 's/.$/.&/'
}
for n in 1 1000 5000; do
	for each in 5000 10; do
		mkdir "$dir/w"; cd "$dir/w"
		{
			printf 'sandbox:\n  write_paths: [.]\n  egress_rules: []\n  mask_paths:\n'
			for ((i = 0; i < n; i++)); do
				d=d$((i / each)); [ -d $d ] || mkdir $d
				: >$d/k$i; echo "    - $d/k$i"
			done
		} >"$dir/p.yaml"
		echo "$n masks, up to $each in a folder: $(median "$dir/p.yaml") ms"
		cd "$dir"; rm -rf "$dir/w"
	done
done
mkdir "$dir/t"; cd "$dir/t"
python3 -c '
import os
for i in range(91000):
    d = f"g{i//1000}/h{i//100%10}/f{i}"; os.makedirs(d)
    for k in range(10): os.close(os.open(f"{d}/some-file-{k}.go", os.O_CREAT | os.O_WRONLY))'
for more in 'cwd_hidden_scan_max_entries: 1' '' 'cwd_hidden_scan_overflow: unlimited'; do
	printf 'sandbox:\n  write_paths: [.]\n  cwd_hidden_scan_recursive: true\n  egress_rules: []\n  %s\n' "$more" >"$dir/p.yaml"
	echo "1,000,000 names, ${more:-the default bound}: $(median "$dir/p.yaml") ms"
done

package main

import "testing"

// gitPush makes a commit of so many megabytes that cannot be packed, so that
// git sends them without a length, and takes the branch back.
func gitPush(mb string) string {
	return `set -e; cd; rm -rf push; git clone -q --single-branch https://git.test/r.git push; cd push; git checkout -qb big
head -c ` + mb + `000000 /dev/urandom >big; git add big; git -c core.compression=0 -c user.name=a -c user.email=a@x.test commit -qm big
git -c core.compression=0 push -q origin big; git ls-remote -q origin big; git push -q origin :big`
}

// git over https, with a push of 50 MB in chunks each way.
func TestClientsGit(t *testing.T) {
	clients(t, func(t *testing.T, h *clientsHost) {
		h.repository(t)
		steps := func(mb string) []step {
			return []step{
				{run: "cd && git clone -q https://git.test/r.git c && cat c/README && cd c && git fetch -v 2>&1", says: `(?s)^hello.*main\s+-> origin/main$`},
				{run: "cd && git -c http.version=HTTP/1.1 clone -q --depth 1 https://git.test/r.git d && cat d/README", says: `^hello$`},
				{run: gitPush(mb), says: `refs/heads/big$`},
				{run: "cd && git clone https://git.test/secret.git", fails: true, says: `fatal: unable to access 'https://git\.test/secret\.git/': The requested URL returned error: 403`},
				{run: "git ls-remote https://other.test/r.git", fails: true, says: `fatal: unable to access .*The requested URL returned error: 403`},
			}
		}
		runClients(t, h, []clientCase{{name: "git", needs: []string{"git"}, within: 40, steps: steps("50")}})
		if got := h.sent.Load(); got < 100_000_000 {
			t.Errorf("git's server got %d bytes of two pushes of 50 MB", got)
		}
		if h.chunked.Load() < 2 {
			t.Errorf("%d pushes came without a length, not 2", h.chunked.Load())
		}
		runClients(t, h, []clientCase{{name: "git again", needs: []string{"git"}, root: true, by: map[way][]step{explicit: nil}, steps: steps("2")}})
	})
}

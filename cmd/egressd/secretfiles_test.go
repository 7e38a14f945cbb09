package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egressd/egressd/internal/proxytest"
)

// A secret that lies behind links is masked where it really lies, and no link
// that the sandbox could turn decides which file of the host is sent out.
func TestSecretBehindLinks(t *testing.T) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		h := newSandboxHost(t)
		write := map[string]any{"write_paths": []string{"."}}
		for i, x := range []struct {
			name, file          string
			links               map[string]string
			sandbox             map[string]any
			run, stdout, stderr string
			code                int
		}{
			{name: "a folder that is a link where the sandbox writes", file: "~/proj/link/tok", links: map[string]string{"~/proj/link": "../keys"}, sandbox: write,
				run: "true", code: 125, stderr: "egressd: credential api: ${home}/proj/link/tok is reached by the link ${home}/proj/link in ${home}/proj, where"},
			{name: "one that leads there", file: "~/out/tok", links: map[string]string{"~/out": "proj/link", "~/proj/link": "../keys"}, sandbox: write,
				run: "true", code: 125, stderr: "is reached by the link ${home}/proj/link in"},
			{name: "one that the sandbox can read", file: "~/proj/link/tok", links: map[string]string{"~/proj/link": "real"},
				run: "cat link/tok real/tok; echo end", stdout: "end\n"},
			{name: "one elsewhere", file: "~/out/tok", links: map[string]string{"~/out": "proj/real"}, sandbox: write,
				run: "cat real/tok; mv real x 2>/dev/null; rm -f real/tok 2>/dev/null; ls real", stdout: "tok\n"},
			{name: "a file that is a link to a link", file: "~/proj/one", links: map[string]string{"~/proj/one": "two", "~/proj/two": "real/tok"}, sandbox: write,
				run: "cat one two real/tok; rm -f one two 2>/dev/null; ls", stdout: "one\nreal\ntwo\n"},
		} {
			t.Run(x.name, func(t *testing.T) {
				c := insideCase{ID: "links" + string(rune('0'+i)), Rules: []any{"GET api.test/**"}, Sandbox: x.sandbox,
					Entries: []map[string]any{{"id": "api", "type": "https_bearer", "target": "api.test", "source": map[string]any{"file": x.file}}}}
				home := filepath.Join("/home", c.ID)
				c.Sources.Files = map[string]string{"~/proj/real/tok": "tok-live-7Qm4x9Zr2Lp8\n", "~/keys/tok": "tok-live-7Qm4x9Zr2Lp8\n"}
				h.layOut(t, home, c)
				for at, to := range x.links {
					if err := os.Symlink(to, strings.Replace(at, "~", home, 1)); err != nil {
						t.Fatal(err)
					}
				}
				out, errs, code := h.runAnn(t, home, c, x.run)
				if out != x.stdout || code != x.code || !strings.Contains(errs, strings.ReplaceAll(x.stderr, "${home}", home)) || x.code == 0 && errs != "" {
					t.Errorf("%d, stdout %q, stderr %s", code, out, errs)
				}
			})
		}
	})
}

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// On a terminal the user is asked; only yes is yes.
func TestTrustAsks(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "egressd.yaml", "sandbox: {egress_rules: [GET api.test/**]}\n")
	for _, x := range []struct {
		answer string
		code   int
		says   string
	}{{"\n", 1, "not trusted"}, {"n\n", 1, "not trusted"}, {"\x04", 1, "reading the answer"}, {"YES\n", 0, "trusted, as it is now"}} {
		cmd := p.command(t, "trust")
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(terminal, x.answer); err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(terminal) // a terminal whose program is gone ends with an error
		_ = cmd.Wait()
		terminal.Close()
		if code := cmd.ProcessState.ExitCode(); code != x.code || !strings.Contains(string(out), "Trust it? [y/N]") || !strings.Contains(string(out), x.says) {
			t.Errorf("%q: %d %s", x.answer, code, out)
		}
	}
}

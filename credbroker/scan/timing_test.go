package scan

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Who can have the origin send a text of his own, again and again, must not
// learn from how long it takes which bytes stand side by side in a secret, which
// he never saw: a part shorter than a gram makes no difference.
func TestPartsTellNothing(t *testing.T) {
	const secret = "ghp_k3VbQ9xW7mTzR4nLc8YpDf2HsJ6gAaUeBt1o"
	// Words may share a place of the gate by chance, and with another key do not.
	var sets [5]*Set
	for k := range sets {
		sets[k] = New([]Secret{{Value: []byte(secret), Replacement: "[redacted]", Entry: "api"}})
	}
	escaped := func(form, text string) string {
		var b strings.Builder
		for _, c := range []byte(text) {
			fmt.Fprintf(&b, form, c)
		}
		return b.String()
	}
	for _, form := range []string{"%%%02x", `\u%04x`, "&#%d;", "=%02X", `\x%02x`, "%02x", "%c\x00", "\x00%c"} {
		for _, c := range []struct{ right, wrong string }{
			{secret[15:17], "9a"},
			{secret[15:18], "9aK"},
			{secret[14:18], "9aKq"},
			{secret[14:20], "9aKq1Z"},
		} {
			texts := [2][]byte{}
			for k, part := range []string{c.right, c.wrong} {
				unit := escaped(form, part) + strings.Repeat(" ", 5)
				texts[k] = []byte(strings.Repeat(unit, 64<<10/len(unit)))
			}
			least := [2]time.Duration{time.Hour, time.Hour}
			for round := range 80 {
				for k, p := range texts {
					begin := time.Now()
					sets[round%len(sets)].Text(p)
					least[k] = min(least[k], time.Since(begin))
				}
			}
			if right, wrong := least[0], least[1]; right > wrong*3/2 {
				t.Errorf("%s: a right part of %d bytes takes %v, a wrong one %v", form, len(c.right), right, wrong)
			}
		}
	}
}

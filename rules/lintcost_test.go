package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/egressd/egressd/rules"
)

// Lint and Conflicts take well under a second however a long policy is laid
// out: the bound is wide for a busy machine, and far below what comparing every
// pair anew took (83 s for the first).
func TestLintCost(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		rule func(i int) [2]string
	}{
		{"one host", 4000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET a.test/pub%d/**", i), fmt.Sprintf("!* a.test/priv%d/**", i)}
		}},
		{"one folder", 4000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET a.test/repos/acme/r%d/**", i), fmt.Sprintf("!* a.test/repos/acme/r%d/keys/**", i)}
		}},
		{"wildcards first", 4000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET a.test/*/r%d/*/**", i), fmt.Sprintf("!* a.test/*/k%d/**", i)}
		}},
		{"any depth", 2000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET a.test/**/r%d/**", i), fmt.Sprintf("!* a.test/**/k%d/**", i)}
		}},
		{"stars", 4000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET a.test/r%d*", i), fmt.Sprintf("!GET a.test/x%d*", i)}
		}},
		{"tunnels", 4000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("CONNECT *.test:%d", 20000+i), fmt.Sprintf("GET a.test:%d/**", 30000+i)}
		}},
		{"any port", 4000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET a.test:*/x%d", i), fmt.Sprintf("!POST a.test/y%d", i)}
		}},
		{"hosts", 50000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET h%d.a.test/**", i), fmt.Sprintf("!* h%d.a.test/admin/**", i)}
		}},
		{"wildcard hosts", 50000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET x.h%d.a.test/pub/**", i), fmt.Sprintf("!* *.h%d.a.test/admin/**", i)}
		}},
		{"every host", 5000, func(i int) [2]string {
			return [2]string{fmt.Sprintf("GET h%d.test/pub/**", i), fmt.Sprintf("!* */admin%d/**", i)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list []rules.Rule
			for i := range c.n {
				for _, text := range c.rule(i) {
					r, err := rules.Parse(text)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, r)
				}
			}
			begin := time.Now()
			rules.Lint(list)
			rules.Conflicts(list)
			if took := time.Since(begin); took > 3*time.Second*slow {
				t.Errorf("%d rules took %v", len(list), took)
			} else {
				t.Logf("%d rules: %v", len(list), took)
			}
		})
	}
}

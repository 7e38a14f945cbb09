package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/egressd/egressd/rules"
)

// spread is a set of n rules over hosts, nine allow rules to a deny rule, and a
// request that the last host's rules allow.
func spread(t testing.TB, n int) (*rules.Set, rules.Request) {
	t.Helper()
	list := make([]rules.Rule, 0, n)
	parse := func(text string) {
		r, err := rules.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	for i := 0; len(list) < n; i++ {
		host := fmt.Sprintf("h%d.example.com", i)
		for j := range 9 {
			parse(fmt.Sprintf("GET,POST %s/repos/org%d/**", host, j))
		}
		parse("!* " + host + "/repos/*/actions/secrets/**")
	}
	return rules.New(list), rules.Request{
		Method: "GET", Scheme: "https", Port: 443, At: someday,
		Host: fmt.Sprintf("h%d.example.com", n/10-1), Target: "/repos/org1/site/contents/README.md?ref=main",
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		set, r := spread(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := set.Decide(r); d.Verdict != rules.Allow {
					b.Fatal(d)
				}
			}
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	set, r := spread(b, 1000)
	header := map[string][]string{"Accept": {"*/*"}, "User-Agent": {"x"}, "X-Requested-With": {"y"}, "Authorization": {"z"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := set.Judge(someday, true, r.Method, r.Scheme, r.Host, r.Port, r.Target, header, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWorstPath decides on paths whose every reading differs, against deny
// rules that have to be walked to the end.
func BenchmarkWorstPath(b *testing.B) {
	list := []any{"GET a.test/**"}
	for i := range 20 {
		list = append(list, fmt.Sprintf("!* a.test/**/x%d/**/y/**/z", i))
	}
	for _, deny := range []int{0, 20} {
		set := compileAny(b, list[:1+deny])
		for _, size := range []int{8 << 10, 16 << 10} {
			path := worstPath(size)
			b.Run(fmt.Sprintf("deny%d/%dKiB", deny, size>>10), func(b *testing.B) {
				for b.Loop() {
					d := set.Decide(rules.Request{Method: "GET", Scheme: "https", Host: "a.test", Target: path, At: someday})
					if d.Verdict != rules.Allow {
						b.Fatal(d)
					}
				}
			})
		}
	}
}

// worstPath holds something for every change in every round.
func worstPath(size int) string {
	const unit = `/A.;p\%2525252f/%5Cb%3B%3F%2541//c%2520`
	return (strings.Repeat(strings.Replace(unit, "%2525252f", "%25252f", 1), size/len(unit)) + strings.Repeat("/a", size))[:size]
}

func TestAllowAllocatesNothing(t *testing.T) {
	set, r := spread(t, 1000)
	wild := compileAny(t, []any{"GET *.example.com/**", "!* *.example.com/admin/**", "GET */pub/*.txt", "!GET */KEYS/*"})
	header := map[string][]string{"Accept": {"*/*"}, "X-Requested-With": {"y"}, "X-Forwarded-Proto": {"https"}}
	w := r
	w.Target = "/Pub/File.txt"
	for name, f := range map[string]func(){
		"Decide": func() {
			if d := set.Decide(r); d.Verdict != rules.Allow {
				t.Fatal(d)
			}
		},
		"wildcards": func() {
			if d := wild.Decide(w); d.Verdict != rules.Allow {
				t.Fatal(d)
			}
		},
		"Judge": func() {
			if _, _, _, err := set.Judge(someday, true, r.Method, r.Scheme, r.Host, r.Port, r.Target, header, 0); err != nil {
				t.Fatal(err)
			}
		},
		"Judge, length unknown": func() {
			if _, _, _, err := set.Judge(someday, true, "POST", r.Scheme, r.Host, r.Port, r.Target, header, -1); err != nil {
				t.Fatal(err)
			}
		},
		"Canonical": func() {
			if _, err := set.Canonical("api.example.com"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// A decision must not grow with the number of hosts. The bound is wide, since
// machines are busy; BenchmarkDecide shows the true figures.
func TestCostStaysFlat(t *testing.T) {
	cost := func(n int) float64 {
		set, r := spread(t, n)
		best := 0.0
		for range 5 {
			res := testing.Benchmark(func(b *testing.B) {
				for range b.N {
					set.Decide(r)
				}
			})
			if ns := float64(res.T) / float64(res.N); best == 0 || ns < best {
				best = ns
			}
			if best < 1000 {
				break
			}
		}
		return best
	}
	few, many := cost(10), cost(100000)
	if many > 3*few+1000 {
		t.Errorf("%.0f ns with 10 rules, %.0f with 100,000", few, many)
	}
}

// The worst path there is takes milliseconds, whatever deny rules walk it.
func TestWorstPathIsBounded(t *testing.T) {
	list := []any{"GET a.test/**"}
	for i := range 20 {
		list = append(list, fmt.Sprintf("!* a.test/**/a/**/a/**/a/**/a*a*a*a/**/z%d", i))
	}
	set := compileAny(t, list)
	for _, path := range []string{worstPath(16 << 10), strings.Repeat("/a", 8<<10), "/" + strings.Repeat("a", 16<<10-1), strings.Repeat("/a%2Fa", 2700)} {
		start := time.Now()
		set.Decide(rules.Request{Method: "GET", Scheme: "https", Host: "a.test", Target: path, At: someday})
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%.20s… took %v", path, took)
		}
	}
}

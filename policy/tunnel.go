package policy

import (
	"fmt"

	"github.com/egressd/egressd/rules"
)

// conflict is a rule that cannot be kept beside an earlier one, by index.
type conflict struct {
	Index, Other int
	Text         string
}

// conflictsOf finds tunnels beside rules that name the same host, as written,
// and a port that both name. Two rules of tunnels never conflict, and only one
// that allows makes a tunnel. Each is told at the later of the two.
func conflictsOf(list []rules.Rule) []conflict {
	type place struct {
		host string
		port int
	}
	tunnels, others := map[place]int{}, map[place]int{}
	var out []conflict
	for i, r := range list {
		if r.Tunnel {
			if r.Deny {
				continue
			}
			at := place{r.Host, r.Port}
			if j, ok := others[at]; ok {
				out = append(out, conflict{i, j, tunnelText(list[j])})
			}
			if _, ok := tunnels[at]; !ok {
				tunnels[at] = i
			}
			continue
		}
		ports := []int{r.Port}
		if r.Port == 0 {
			ports = []int{443, 80}
			if r.Scheme == "https" {
				ports = ports[:1]
			} else if r.Scheme == "http" {
				ports = ports[1:]
			}
		}
		told := false
		for _, p := range ports {
			at := place{r.Host, p}
			if j, ok := tunnels[at]; ok && !told {
				out = append(out, conflict{i, j, tunnelText(list[j])})
				told = true
			}
			if _, ok := others[at]; !ok {
				others[at] = i
			}
		}
	}
	return out
}

func tunnelText(other rules.Rule) string {
	return fmt.Sprintf("what goes through a tunnel is not looked into, so this cannot stand beside %q", other.String())
}

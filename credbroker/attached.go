package credbroker

import (
	"cmp"
	"strings"
)

// Attached is the id of the entry whose secret would go with a request that has
// no credential of its own, or sign it anew; "" for none. It knows what the
// policy says and reads no source, so it cannot tell of databricks_cli, whose
// hosts stand in the user's profiles. host is canonical, target the raw path
// with its query, port 0 the scheme's own.
func Attached(entries []Entry, method, scheme, host string, port int, target string) string {
	if scheme != "https" || echoes(method) {
		return ""
	}
	bound := sites{exact: map[string]*site{}, below: map[string]*site{}}
	for _, e := range entries {
		for _, t := range e.Targets {
			bound.bind(t.Host, binding{cred: &credential{entry: e}, port: t.Port, path: newPathGlob(t.Path)})
		}
	}
	bound.settle(nil)
	path, _, _ := strings.Cut(target, "?")
	p := place{site: bound.host(strings.ToLower(host)), port: cmp.Or(port, 443), path: path}
	for at := range p.covered {
		if at.cred.attaches() || at.cred.entry.Type == AWSSigV4 {
			return at.cred.entry.ID
		}
	}
	return ""
}

// Learned are the places that no policy names and a source told of, the
// workspaces of databricks_cli, by the entry's id.
func (b *Broker) Learned() map[string][]Target {
	learned := map[string][]Target{}
	for _, c := range b.creds {
		if c.profile != nil {
			learned[c.entry.ID] = append(learned[c.entry.ID], c.targets()...)
		}
	}
	return learned
}

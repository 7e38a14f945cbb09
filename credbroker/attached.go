package credbroker

// Attached is the id of the entry whose secret would go with a request that has
// no credential of its own, or sign it anew; "" for none. It knows what the
// policy says and reads no source, so it cannot tell of databricks_cli, whose
// hosts stand in the user's profiles. host is canonical, target the raw path
// with its query, port 0 the scheme's own.
func Attached(entries []Entry, method, scheme, host string, port int, target string) string {
	b := &Broker{sites: sites{exact: map[string]*site{}, below: map[string]*site{}}}
	for _, e := range entries {
		for _, t := range e.Targets {
			b.sites.bind(t.Host, binding{cred: &credential{entry: e}, port: t.Port, path: newPathGlob(t.Path)})
		}
	}
	b.sites.settle(nil)
	return b.Attaches(method, scheme, host, port, target)
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

package rules

import "strings"

// linter compares each rule with those that could matter to it. Every method
// gives the rule that is the cause, nil for none. However many rules there are
// for one host, a rule is compared with those alone whose paths begin alike.
type linter struct {
	all                           []linted
	allow, deny, anyPort, tunnels hosts
}

// linted is a rule with what comparing it takes, worked out once.
type linted struct {
	*Rule
	index  int
	path   shape  // empty for a tunnel
	head   string // of path
	folder *shape // what a deny rule that ends in "/**" is about; nil for others
}

func newLinter(list []Rule) *linter {
	l := &linter{all: make([]linted, len(list))}
	for i := range list {
		r := &l.all[i]
		r.Rule, r.index = &list[i], i
		if !r.Tunnel {
			r.path = lintPattern(r.Path)
			r.head = r.path.head()
		}
		if folder, deep := strings.CutSuffix(r.Path, "/**"); deep && r.Deny && !r.Tunnel && folder != "" {
			shape := lintPattern(folder)
			r.folder = &shape
		}
		if r.Deny {
			l.deny.add(r)
			continue
		}
		l.allow.add(r)
		if r.Tunnel {
			l.tunnels.add(r)
		}
		if r.Port == AnyPort {
			l.anyPort.add(r)
		}
	}
	return l
}

// shadow finds a deny rule that leaves nothing of an allow rule.
func (l *linter) shadow(r *linted) *linted {
	if r.Deny {
		return nil
	}
	return l.deny.first(r.Host, r.head, nil, func(d *linted) bool { return coversRule(d, r) })
}

// openFolder finds what allows the folder of a deny rule that ends in "/**",
// unless the folder is denied as well.
func (l *linter) openFolder(r *linted) (folder string, allow *linted) {
	if r.folder == nil {
		return "", nil
	}
	head := r.folder.head()
	denied := l.deny.first(r.Host, head, nil, func(d *linted) bool {
		return !d.Tunnel && d != r && len(d.Query) == 0 && d.Until.IsZero() && coversPath(&d.path, r.folder) && coversWhere(d.Rule, r.Rule)
	})
	if denied != nil {
		return "", nil
	}
	return strings.TrimSuffix(r.Path, "/**"), l.allow.first(r.Host, head, &below{paths: true}, func(a *linted) bool {
		return !a.Tunnel && meetsPath(&a.path, r.folder) && meetsMethods(a.Rule, r.Rule) && meetsHost(a.Host, r.Host) && meetsPorts(a.Rule, r.Rule)
	})
}

// openPort finds an allow rule for any port beside a deny rule for the default
// ones, unless another deny rule covers the rest.
func (l *linter) openPort(r *linted) *linted {
	if !r.Deny || r.Tunnel || r.Port != 0 {
		return nil
	}
	wide, port := *r, *r.Rule
	port.Port, wide.Rule = AnyPort, &port
	if l.deny.first(r.Host, r.head, nil, func(d *linted) bool { return coversRule(d, &wide) }) != nil {
		return nil
	}
	return l.anyPort.first(r.Host, "", &below{}, func(a *linted) bool {
		return meetsHost(a.Host, r.Host) && meetsMethods(a.Rule, r.Rule) &&
			(a.Scheme == "" || r.Scheme == "" || a.Scheme == r.Scheme)
	})
}

// hidden finds a tunnel whose host and port a rule speaks of by a wildcard on
// either side; where both name them alike it is a Conflict.
func (l *linter) hidden(r *linted) *linted {
	if r.Tunnel {
		return nil
	}
	return l.tunnels.first(r.Host, "", &below{}, func(t *linted) bool {
		return (r.covers("https", t.Port) || r.covers("http", t.Port)) &&
			meetsHost(t.Host, r.Host) && !clash(t.Rule, r.Rule)
	})
}

// Package policy reads the policy file: YAML, strict, with a place for every
// problem and all problems of a file at once. It decides nothing and starts
// nothing; what it hands over is a value in which every key is checked and
// every default filled in.
//
//	data, err := os.ReadFile("egressd.yaml")
//	p, problems := policy.Load("egressd.yaml", data, policy.Options{Home: home, ReadFile: os.ReadFile})
//	for _, problem := range problems {
//		fmt.Println(problem) // egressd.yaml:5:7: error bad_rule: bad_port: …
//	}
//	if p == nil || len(p.Missing) > 0 {
//		return // nothing may be enforced
//	}
//	p, err = p.Select(agent, terminal)     // the environment to run in
//	p, problems = p.Add(allow, deny)       // rules of --allow and --deny
//	set := rules.New(p.Rules)
//
// Load is pure but for Options.ReadFile, which it asks for the files that the
// policy includes and for its agents' files. It looks at no other file and
// resolves no symbolic link: paths of sections come out absolute or below the
// policy file's folder, those of a sandbox as written, and what they lead to
// on this host is the caller's to find (Expand does the spelling).
//
// A file found by Find, rather than named by the user, may have come with a
// cloned repository: Store keeps which of them were accepted (Trusted, Trust),
// and Grants says in words what accepting one means. A Watcher reads a file
// again when it changes, or when told, and hands over a new policy or what is
// wrong with it; which of the two is in force is the caller's decision.
package policy

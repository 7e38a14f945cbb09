package token

import "strings"

// publicKeys are keys of a profile that clients need and that name a thing
// without opening it.
var publicKeys = []string{"account_id", "workspace_id", "cluster_id", "warehouse_id", "serverless_compute_id"}

// identifier says that a value has the form of such a name: small letters and
// digits, no more than 16 of them between two dashes. A token that stands in
// the wrong line has not.
func identifier(s string) bool {
	for part := range strings.SplitSeq(s, "-") {
		if part == "" || len(part) > 16 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return len(s) <= 40
}

// Render writes the .databrickscfg of the sandbox: these profiles with their
// real hosts, and a placeholder in the place of every login. A profile logs in
// by a token there, whatever it does outside: `auth_type = pat` keeps clients
// from asking for another way.
func Render(list []Profile, placeholder func(profile string) string) []byte {
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("[" + p.Name + "]\nhost = " + p.URL() + "\n")
		for _, key := range publicKeys {
			if v := p.public[key]; v != "" {
				b.WriteString(key + " = " + v + "\n")
			}
		}
		b.WriteString("auth_type = pat\ntoken = " + placeholder(p.Name) + "\n")
	}
	return []byte(b.String())
}

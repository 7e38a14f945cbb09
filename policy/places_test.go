package policy

import (
	"slices"
	"testing"
)

// Where a service takes a credential from more places than the usual ones, its
// preset says so, also with a host of one's own; no key of an entry does.
func TestPresetPlaces(t *testing.T) {
	for text, want := range map[string]struct{ field, param, protocol string }{
		"{preset: gemini}": {param: "key"},
		"{preset: slack}":  {param: "token"},
		"{preset: gitlab}": {field: "JOB-TOKEN", param: "private_token"},
		"{preset: gitlab, target: git.corp.test/api}": {field: "JOB-TOKEN", param: "private_token"},
		"{preset: openai}":                            {protocol: "openai-insecure-api-key."},
		"{preset: jira, target: x.test, username: a}": {param: "os_password"},
	} {
		p, problems := Load("egressd.yaml", []byte("sandbox: {egress_rules: [], credential_proxy: ["+text+"]}\n"), Options{Platform: "linux"})
		if p == nil || len(p.Credentials) != 1 {
			t.Errorf("%s: %v", text, problems)
			continue
		}
		also := p.Credentials[0].Also
		if want.field != "" && !slices.Contains(also.Fields, want.field) || want.param != "" && !slices.Contains(also.Params, want.param) ||
			want.protocol != "" && !slices.Contains(also.Protocols, want.protocol) {
			t.Errorf("%s: %+v", text, also)
		}
	}
}

package policy

import (
	"strings"
	"testing"

	"github.com/egressd/egressd/ca"
)

// A placeholder stands in no variable that egressd sets, nor in one that rules
// how programs start.
func TestReservedVariables(t *testing.T) {
	for _, name := range []string{"PATH", "HOME", "https_proxy", "LD_PRELOAD", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "SSL_CERT_FILE"} {
		text := "sandbox:\n  egress_rules: [\"GET a.test/**\"]\n  credential_proxy:\n  - {type: https_bearer, target: a.test, source: {env: S}, env: " + name + "}\n"
		_, problems := Load("egressd.yaml", []byte(text), Options{})
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "4:65: error bad_value: "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"GH_TOKEN", "PATH_TOKEN", "MY_HOME", "ANTHROPIC_API_KEY"} {
		if why := placeholderName(name); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	for _, v := range ca.Variables("b", "d") {
		name, _, _ := strings.Cut(v, "=")
		if placeholderName(name) == "" {
			t.Errorf("%s is set for trust, and may be named", name)
		}
	}
}

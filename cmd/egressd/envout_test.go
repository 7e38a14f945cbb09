package main

import (
	"os"
	"strings"
	"testing"
)

// --env-out follows the policy: a reload that adds an entry writes its
// placeholder, those that were there stay, and a file that need not change is
// left alone. What cannot be written is told, and the policy is in force.
func TestServeEnvOutFollows(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "home/tok", "tok-live-first-7Qm4x9Zr\n")
	p.write(t, "home/.databrickscfg", "[dev]\nhost = https://dev.test\ntoken = dapi-dev-22bb33cc\n")
	file := p.credentialPolicy(t, "")
	out := p.path("out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	s := p.serve(t, "--policy", file, "--env-out", out+"/env")
	defer s.stop(t)
	read := func(name string) (string, os.FileInfo) {
		t.Helper()
		data, err := os.ReadFile(out + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(out + "/" + name)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
		return string(data), info
	}
	reload := func(want int) string {
		t.Helper()
		_, errs, code := p.call(t, "reload")
		if code != want {
			t.Errorf("reload: %d %s", code, errs)
		}
		return errs
	}
	first, info := read("env")
	reload(0)
	if _, again := read("env"); !os.SameFile(info, again) {
		t.Error("a reload that changes nothing makes the file anew")
	}
	policy, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	more := strings.Replace(string(policy), "    - {id: trap,", "    - {id: new, type: https_bearer, target: new.test, source: {file: ~/tok}, env: NEW_TOKEN}\n"+
		"    - {id: dbx, type: databricks_cli, profiles: [dev]}\n    - {id: trap,", 1)
	p.write(t, "policy.yaml", more)
	reload(0)
	second, _ := read("env")
	for line := range strings.Lines(first) {
		if !strings.Contains(second, line) {
			t.Errorf("after the reload --env-out lacks %s", line)
		}
	}
	if !strings.Contains(second, "\nNEW_TOKEN=oa_cred_") || !strings.Contains(second, "\nDATABRICKS_CONFIG_FILE="+out+"/env.databrickscfg\n") || strings.Contains(second, "tok-live") {
		t.Errorf("after the reload --env-out is %s", second)
	}
	if text, _ := read("env.databrickscfg"); !strings.Contains(text, "auth_type = pat\ntoken = oa_cred_") || strings.Contains(text, "dapi-") {
		t.Errorf("the profiles: %s", text)
	}
	if list, err := os.ReadDir(out); err != nil || len(list) != 3 {
		t.Errorf("beside --env-out lies %v, %v", list, err)
	}
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	p.write(t, "policy.yaml", strings.Replace(more, "env: NEW_TOKEN", "env: LAST_TOKEN", 1))
	if errs := reload(1); !strings.Contains(errs, "the new policy is in force, but clients are not told: writing") {
		t.Errorf("a folder that is gone: %s", errs)
	}
}

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egressd/egressd/policy"
)

// errorsOf loads a policy and gives its errors as LINE:COL KIND.
func errorsOf(text string) string {
	_, problems := policy.Load("/etc/egressd/egressd.yaml", []byte(text), policy.Options{Platform: "linux", Home: "/home/u"})
	var list []string
	for _, p := range problems.Errors() {
		line := fmt.Sprintf("%d:%d %s", p.Line, p.Col, p.Kind)
		if p.Problem != "" {
			line += " " + p.Problem
		}
		list = append(list, line)
	}
	return strings.Join(list, ", ")
}

// Sections and sandboxes: what is refused, and where.
func TestSectionErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# nothing\n", ""},
		{"---\n", ""},
		{"{}\n", ""},
		{"[]\n", "1:1 wrong_type"},
		{"5\n", "1:1 wrong_type"},
		{"sandbox:\n", "1:1 wrong_type"},
		{"audit:\n", "1:1 wrong_type"},
		{"sandbox: none\n", ""},
		{"sandbox: inherit\n", "1:10 bad_value"},
		{"sandbox: {type: inherit}\n", "1:17 bad_value"},
		{"os_env: inherit\n", "1:9 bad_value"},
		{"os_env: {sandbox: inherit}\n", "1:19 bad_value"},
		{"os_env: {cwd: .}\nsandbox: {}\n", "2:1 conflict"},
		{"os_env: {type: shell}\n", "1:16 bad_value"},
		{"a: 1\n---\nb: 2\n", "2:1 yaml_syntax"},
		{"sandbox: {}\n...\n---\nsandbox: {}\n", "3:1 yaml_syntax"},
		{"sandbox: {\"type\": none, 'type': none}\n", "1:25 duplicate_key"},
		{"sandbox: {[a]: b}\n", "1:11 wrong_type"},
		{"sandbox: {type: \xff}\n", "1:1 yaml_syntax"},
		{"sandbox: {timeout: 1d}\n", "1:20 bad_value"},
		{"sandbox: {timeout: -5s}\n", "1:20 bad_value"},
		{"sandbox: {timeout: 1h30m}\n", ""},
		{"sandbox: {read_paths: [~, \"~\", ~/x]}\n", ""},
		{"sandbox: {read_paths: [null]}\n", "1:24 wrong_type"},
		{"sandbox: {read_paths: [\"\"]}\n", "1:24 bad_value"},
		{"sandbox: {mask_paths: [\"\"]}\n", "1:24 bad_value"},
		{"sandbox: {env_passthrough: [1X]}\n", "1:29 bad_value"},
		{"sandbox: {cwd_allow_hidden: [.]}\n", "1:30 bad_value"},
		{"sandbox: {cwd_hidden_scan_max_entries: 0}\n", ""},
		{"sandbox: {cwd_hidden_scan_max_entries: 010}\n", "1:40 bad_value"},
		{"sandbox: {cwd_hidden_scan_max_entries: 0x10}\n", "1:40 bad_value"},
		{"sandbox: {cwd_hidden_scan_max_entries: 99999999999999999999}\n", "1:40 bad_value"},
		{"sandbox: {limits: {memory: 0}}\n", "1:28 bad_value"},
		{"sandbox: {limits: {memory: 1GB}}\n", "1:28 bad_value"},
		{"sandbox: {limits: {memory: 1.5GiB}}\n", "1:28 bad_value"},
		{"sandbox: {limits: {memory: 9999999999TiB}}\n", "1:28 bad_value"},
		{"sandbox: {limits: {memory: 1048576}}\n", ""},
		{"sandbox: {limits: {processes: 0}}\n", "1:31 bad_value"},
		{"sandbox: {leak_pass: [LLM.test., 10.0.0.1]}\n", ""},
		{"sandbox: {leak_pass: [\"llm.test:443\"]}\n", "1:23 bad_value"},
		{"sandbox: {egress_allow_private_destinations: [5]}\n", "1:47 wrong_type"},
		{"sandbox: {egress_allow_private_destinations: [\"*.corp.test\"]}\n", "1:47 bad_value"},
		{"sandbox: {egress_allow_private_destinations: false}\n", ""},
		{"os_env: {start_in_scratch: true, sandbox: none}\n", "1:10 conflict"},
		{"os_env: {start_in_scratch: true, fork: true}\n", "1:34 conflict"},
		{"sandbox: {type: firejail, egress_rules: [], credential_proxy: []}\n", "1:27 conflict, 1:45 conflict"},
		{"sandbox: {type: firejail, allow_network: false}\n", ""},
		{"sandbox: {type: none, egress_rules: [], allow_network: false}\n", "1:23 conflict, 1:41 conflict"},
		{"terminals: []\n", "1:12 wrong_type"},
		{"terminals: {t: {os_env: other}}\n", "1:25 bad_value"},
		{"terminals: {t: {cmd: x}}\n", "1:17 unknown_key"},
		{"terminals: {t: {command: sh, args: [-c, 5]}}\n", "1:41 wrong_type"},
		{"terminals: {t: {env: {\"A B\": x, C: 5}}}\n", "1:23 bad_value, 1:36 wrong_type"},
		{"terminals: {t: {env: {HOME: x, PATH: /bin, LD_PRELOAD: a.so, TERM: dumb}}}\n", "1:23 conflict"},
		{"terminals: {t: {env: {https_proxy: x, SSL_CERT_FILE: y}}}\n", "1:23 conflict, 1:39 conflict"},
		{"terminals: {t: {env: {https_proxy: x}, os_env: {sandbox: {type: linux_bwrap}}}}\n", ""},
		{"sandbox: {egress_rules: [GET a.test], credential_proxy: [{type: https_bearer, target: a.test, env: TOK, source: {env: S}}]}\nterminals: {t: {env: {TOK: x}}}\n", "2:23 conflict"},
		{"terminals: {t: {os_env: {sandbox: {type: none}, start_in_scratch: true}}}\n", "1:49 conflict"},
		{"sandbox: none\nterminals: {t: {os_env: {sandbox: inherit, start_in_scratch: true}}}\n", "2:44 conflict"},
		{"upstream: {resolve: {\"a.test:0\": \"10.0.0.1:1\"}}\n", "1:22 bad_value"},
		{"upstream: {resolve: {\"a.test:1\": \"10.0.0.1\"}}\n", "1:34 bad_value"},
		{"upstream: {resolve: {\"A.test:1\": \"10.0.0.1:1\", \"a.test:1\": \"10.0.0.2:1\"}}\n", "1:48 duplicate_key"},
		{"upstream: {resolve: [a]}\n", "1:21 wrong_type"},
		{"upstream: {proxy: proxy.test}\n", "1:19 bad_value"},
		{"upstream: {proxy: \"ftp://proxy.test\"}\n", "1:19 bad_value"},
		{"upstream: {proxy: \"http://proxy.test:0\"}\n", "1:19 bad_value"},
		{"upstream: {proxy: \"http://proxy.test/x\"}\n", "1:19 bad_value"},
		{"upstream: {proxy: \"http://u:p@proxy.test\", no_proxy: [.corp.test, 10.0.0.0/8, \"*.x.test\", localhost, \"::1\"]}\n", ""},
		{"upstream: {no_proxy: [a.test]}\n", "1:12 conflict"},
		{"upstream: {dns: 9.9.9.9}\n", ""},
		{"upstream: {dns: \"9.9.9.9:0\"}\n", "1:17 bad_value"},
		{"upstream: {min_tls: 1.2}\n", "1:21 wrong_type"},
		{"upstream: {client_certificates: {\"*.a.test\": {cert: c, key: k}}}\n", "1:34 bad_value"},
		{"upstream: {timeouts: {connect: 5}}\n", "1:32 wrong_type"},
		{"audit: {otlp: collector.test}\n", "1:15 bad_value"},
		{"audit: {otlp: off, sqlite: off}\n", ""},
		{"audit: {max_size: 10 MiB}\n", "1:19 bad_value"},
		{"audit: {on_failure: ignore}\n", "1:21 bad_value"},
		{"audit: {file: ''}\n", "1:15 bad_value"},
		{"limits: {max_connections: 0}\n", "1:27 bad_value"},
		{"limits: {max_header_bytes: 64KB}\n", "1:28 bad_value"},
		{"tls: {ca: own}\n", "1:11 bad_value"},
		{"tls: {ca: [a]}\n", "1:11 wrong_type"},
		{"tls: {min_version: \"1.1\"}\n", "1:20 bad_value"},
		{"approval: {hook: ./ask}\n", "1:18 bad_value"},
		{"approval: {hook: [env, A=b, ./ask]}\n", "1:29 bad_value"},
		{"approval: {hook: \"ask 'x\"}\n", "1:18 bad_value"},
		{"approval: {max_waiting: 0}\n", "1:25 bad_value"},
		{"approval: {mode: off, hook: none}\n", ""},
		{"metrics: {listen: \"127.0.0.1:99999\"}\n", "1:19 bad_value"},
		{"metrics: {listen: 9464}\n", "1:19 wrong_type"},
		{"tools: {allow: [bash]}\n", "1:17 bad_value"},
		{"tools: {agents: [../x]}\n", "1:18 bad_value"},
		{"tools: shell\n", "1:8 wrong_type"},
		{"tools: {on_call: [ask]}\n", ""},
		{"tests: [GET]\n", "1:9 wrong_type"},
		{"tests:\n  - GET: allow\n", "2:5 bad_value"},
		{"tests:\n  - {}\n", "2:5 missing_key"},
		{"tests:\n  - GET https://a.test/: allow\n    GET https://b.test/: allow\n", "3:5 bad_value"},
		{"tests:\n  - GET https://a.test/: true\n", "2:26 wrong_type"},
		{"include: [no-such-preset]\n", "1:11 bad_value"},
		{"include: [5]\n", "1:11 wrong_type"},
		{"include: [github]\n", ""},
		{"include: [github]\nsandbox: none\n", "1:1 conflict"},
		{"include: [github]\nsandbox: {allow_network: false}\n", "1:1 conflict"},
		{"include: []\nsandbox: none\n", ""},
		{"sandbox: {write_paths: [.]}\naudit: {file: rec.jsonl}\n", "2:9 conflict"},
		{"sandbox: {write_paths: [\"~\"]}\naudit: {sqlite: /home/u/x.db}\n", "2:9 conflict"},
		{"sandbox: {home: ~/h}\naudit: {file: ~/h/rec}\n", "2:9 conflict"},
		{"sandbox: {write_paths: [/etc/egressd/o]}\naudit: {file: o/rec}\n", "2:9 conflict"},
		{"os_env: {cwd: w, sandbox: {write_paths: [.]}}\naudit: {file: w/rec}\n", "2:9 conflict"},
		{"sandbox: {write_paths: [/srv/jo]}\naudit: {file: /srv/job/rec}\n", ""},
		{"terminals: {t: {os_env: {sandbox: {write_paths: [/srv]}}}}\naudit: {file: /srv/rec}\n", "2:9 conflict"},
		{"sandbox: {write_paths: [.]}\nterminals: {t: {os_env: {cwd: /srv, sandbox: inherit}}}\naudit: {file: /srv/rec}\n", "3:9 conflict"},
		{"x: 1\nsandbox: {}\n", "1:1 unknown_key"},
		{"sandbox: {<<: x}\n", "1:15 wrong_type"},
		{"sandbox: {<<: [x]}\n", "1:16 wrong_type"},
		{"sandbox: {\"<<\": {}}\n", "1:11 unknown_key"},
		{"sandbox: {<<: {type: none}, <<: {}}\n", "1:29 duplicate_key"},
		{"sandbox: &s {<<: *s}\n", "1:18 wrong_type"},
		{"sandbox: {<<: [{type: nope}, {type: docker}], type: none}\n", ""},
		{"sandbox: {read_paths: *x}\n", "1:1 yaml_syntax"},
		{"sandbox: {type: none\x00}\n", "1:1 yaml_syntax"},
	} {
		if got := errorsOf(c.text); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

// Rules: kinds and places beside those of the cases.
func TestRuleErrors(t *testing.T) {
	const head = "sandbox:\n  egress_rules:\n"
	for _, c := range []struct{ text, want string }{
		{"    - {rule: GET a.test, when: now}\n", "3:26 unknown_key"},
		{"    - {rule: GET a.test, rate: 60, until: 2027-01-31, note: true}\n", "3:32 wrong_type, 3:43 bad_value, 3:61 wrong_type"},
		{"    - {rule: FETCH a.test, rate: x}\n", "3:14 bad_rule unknown_method, 3:34 bad_value"},
		{"    - {rule: [a], query: [b]}\n", "3:14 wrong_type, 3:26 wrong_type"},
		{"    - {rule: GET a.test, query: {}}\n", "3:33 bad_value"},
		{"    - {rule: GET a.test, max_request_bytes: 1.5}\n", "3:45 wrong_type"},
		{"    - {rule: GET a.test, max_request_bytes: 2048}\n", ""},
		{"    - {rule: \"!GET a.test\", rate: 1/s, max_request_bytes: 1}\n", "3:29 conflict, 3:40 conflict"},
		{"    - rule: \"GET *.egressd.internal/x\"\n", "3:13 bad_value"},
		{"    - \"!* x.egressd.internal\"\n", "3:7 bad_value"},
		{"    - GET *.internal/**\n", ""},
		{"    - [GET a.test]\n", "3:7 wrong_type"},
		{"    - true\n", "3:7 wrong_type"},
		{"    - |\n      FETCH a.test\n", "3:7 bad_rule unknown_method"},
		{"    - CONNECT a.test:443\n    - rule: GET https://a.test/x\n", "4:7 conflict"},
		{"    - CONNECT a.test:80\n    - GET https://a.test/x\n", ""},
		{"    - CONNECT a.test:80\n    - GET http://A.test./x\n", "4:7 conflict"},
	} {
		if got := errorsOf(head + c.text); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

// Credentials: kinds and places beside those of the cases.
func TestCredentialErrors(t *testing.T) {
	const head = "sandbox:\n  egress_rules: [\"* *\"]\n  credential_proxy:\n"
	for _, c := range []struct{ text, want string }{
		{"    - {type: https_bearer, target: a.test, targets: [b.test], source: {env: T}}\n", "4:44 conflict"},
		{"    - {type: https_bearer, target: a.test, source: {env: T, command: x, file: y}}\n", "4:61 conflict, 4:73 conflict"},
		{"    - {type: https_bearer, target: a.test, source: token}\n", "4:52 wrong_type"},
		{"    - {type: https_bearer, target: a.test, source: {}}\n", "4:52 missing_key"},
		{"    - {type: https_bearer, target: a.test, source: {env: T, ttl: 5}}\n", "4:66 wrong_type"},
		{"    - {type: https_bearer, target: a.test, source: {env: T}, ttl: 5m}\n", "4:62 unknown_key"},
		{"    - {type: https_bearer, target: a.test, source: {command: []}}\n", "4:62 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {command: [bin/tok, x]}}\n", "4:63 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {command: ~/bin/tok}}\n", ""},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: kv/x}}}\n", "4:60 missing_key"},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: vault}}}\n", "4:89 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: \"http://vault.test:8200\"}}}\n", "4:89 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: \"http://127.0.0.1.test\"}}}\n", "4:89 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: \"http://10.0.0.1:8200\"}}}\n", "4:89 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: \"https://vault.test/?a=1\"}}}\n", "4:89 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: \"http://[::1]:8200\"}}}\n", ""},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: \"http://localhost:8200\"}}}\n", ""},
		{"    - {type: https_bearer, target: a.test, source: {vault: {path: p, field: f, address: \"https://10.0.0.1:8200/v\"}}}\n", ""},
		{"    - {type: nope, target: a.test, source: {env: T}}\n", "4:14 bad_value"},
		{"    - {type: https_bearer, target: \"*\", source: {env: T}}\n", "4:36 bad_value"},
		{"    - {type: https_bearer, target: \"a.test:*\", source: {env: T}}\n", "4:36 bad_value"},
		{"    - {type: https_bearer, target: a.test/../x, source: {env: T}}\n", "4:36 bad_value"},
		{"    - {type: aws_sigv4, target: \"*.amazonaws.com\", source: {env: T}}\n", "4:7 missing_key"},
		{"    - {type: aws_sigv4, target: \"*.amazonaws.com\", source: {command: creds}}\n", ""},
		{"    - {type: aws_sigv4, target: \"*.x.test\", source: {env: T}, access_key_id: A, session_token: {env: U}, issue: true}\n", ""},
		{"    - {type: oauth2, target: a.test, source: {env: T}}\n", "4:7 missing_key, 4:7 missing_key"},
		{"    - {type: oauth2, target: a.test, source: {env: T}, token_url: \"http://x.test\", client_id: c}\n", "4:67 bad_value"},
		{"    - {type: oauth2, target: a.test, source: {env: T}, token_url: \"https://x.test\", client_id: c, client_secret: {env: U}}\n", "4:99 conflict"},
		{"    - {type: oauth2, target: a.test, source: {env: T}, token_url: \"https://x.test\", client_id: c, grant: refresh_token, client_secret: {env: U}}\n", ""},
		{"    - {type: oauth2, target: a.test, source: {env: T}, token_url: \"https://x.test\", client_id: c, scopes: read}\n", "4:107 wrong_type"},
		{"    - {type: github_app, source: {file: k}, app_id: 5, installation_id: \"x\"}\n", "4:53 wrong_type, 4:73 bad_value"},
		{"    - {type: github_app, source: {file: k}, app_id: \"5\"}\n", "4:7 missing_key"},
		{"    - {type: databricks_cli, profiles: [a, a]}\n", "4:44 bad_value"},
		{"    - {type: databricks_cli, profiles: [a], target: a.test}\n", "4:45 conflict"},
		{"    - {type: databricks_cli}\n", "4:7 missing_key"},
		{"    - {canary: true, env: K}\n", ""},
		{"    - {canary: true}\n", "4:7 missing_key"},
		{"    - {canary: true, env: K, target: a.test}\n", "4:30 conflict"},
		{"    - {canary: false}\n", "4:7 missing_key"},
		{"    - {preset: no-such}\n", "4:16 bad_value"},
		{"    - {preset: huggingface}\n", ""},
		{"    - {preset: huggingface, source: {command: hf token}, own: pass}\n", ""},
		{"    - {type: https_header, header: \"a b\", target: a.test, source: {env: T}}\n", "4:36 bad_value"},
		{"    - {type: https_header, header: te, target: a.test, source: {env: T}}\n", "4:36 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {env: T}, linger: 0s}\n", "4:70 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {env: T}, shape: \"a b{30}\"}\n", "4:69 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {env: T}, shape: \"x-Oa_Cred_{36}\"}\n", "4:69 bad_value"},
		{"    - {type: https_bearer, target: a.test, source: {env: T}, shape: \"ghp_{36}\", env: 5}\n", "4:86 wrong_type"},
		{"    - {type: https_bearer, target: a.test, source: {env: T}}\n    - {type: https_bearer, target: a.test/x, source: {env: U}}\n", "5:7 conflict"},
		{"    - {type: https_bearer, target: a.test/x/*, source: {env: T}}\n    - {type: https_bearer, target: a.test/x/y, source: {env: U}}\n", "5:7 conflict"},
		{"    - {type: https_bearer, target: a.test/x/*.js, source: {env: T}}\n    - {type: https_bearer, target: a.test/x/*.css, source: {env: U}}\n", ""},
		{"    - {type: https_bearer, target: a.test, source: {env: T}}\n    - {type: https_bearer, target: \"a.test:8443\", source: {env: U}}\n", ""},
		{"    - {type: https_bearer, target: a.test, source: {env: T}, env: K}\n    - {type: https_bearer, target: b.test, source: {env: U}, env: [J, K]}\n", "5:71 conflict"},
	} {
		if got := errorsOf(head + c.text); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

// Warnings beside those of the cases, with their lines; NoLint leaves them out.
func TestWarnings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"sandbox: linux_bwrap\n", "1 unfiltered_network"},
		{"sandbox: none\n", ""},
		{"sandbox: {allow_network: false}\n", ""},
		{"terminals:\n  t:\n    os_env:\n      sandbox: {}\n", "4 unfiltered_network"},
		{"sandbox: {}\nterminals: {t: {os_env: inherit}, u: {os_env: {sandbox: inherit}}}\n", "1 unfiltered_network"},
		{"sandbox:\n  egress_rules:\n    - \"* api.github.com/**\"\n", "3 issuing_endpoint"},
		{"sandbox:\n  egress_rules: [POST sts.us-east-1.amazonaws.com/, POST iam.amazonaws.com/]\n", "2 issuing_endpoint, 2 issuing_endpoint"},
		{"sandbox:\n  egress_rules: [POST sts.us-east-1.amazonaws.com/, POST iam.amazonaws.com/]\n  credential_proxy:\n    - {type: aws_sigv4, target: \"*.amazonaws.com\", source: {command: c}}\n", ""},
		{"sandbox:\n  egress_rules: [POST sts.us-east-1.amazonaws.com/, POST iam.amazonaws.com/]\n  credential_proxy:\n    - {type: aws_sigv4, target: \"*.amazonaws.com\", source: {command: c}, issue: true}\n", "2 issuing_endpoint, 2 issuing_endpoint"},
		{"sandbox:\n  egress_rules: [POST sts.us-east-1.amazonaws.com/, POST iam.amazonaws.com/]\n  credential_proxy:\n    - {type: aws_sigv4, target: iam.amazonaws.com, source: {command: c}}\n", "2 issuing_endpoint"},
		{"sandbox:\n  egress_rules: [\"POST *.amazonaws.com/**\"]\n  credential_proxy:\n    - {type: aws_sigv4, target: \"*.amazonaws.com\", source: {command: c}}\n", "2 issuing_endpoint"},
		{"sandbox:\n  egress_rules: [POST iam.amazonaws.com/]\n  credential_proxy:\n    - {type: aws_sigv4, target: iam.amazonaws.com/x, source: {command: c}}\n", "2 issuing_endpoint"},
		{"sandbox:\n  egress_rules:\n    - \"* api.github.com/repos/**\"\n    - \"!POST api.github.com/repos/**\"\n", ""},
		{"sandbox:\n  egress_rules:\n    - GET api.github.com/**\n", ""},
		{"include: [github, pypi, npm, go, crates, debian, ubuntu, alpine, maven, rubygems, huggingface, anthropic, openai, gitlab, openrouter, gemini, mistral, slack]\n", ""},
		{"sandbox:\n  egress_rules: []\n  mask_paths: [secrets]\n  read_paths:\n    - ./secrets/x\n    - secretsy\n", "5 masked_grant"},
		{"sandbox:\n  egress_rules: [GET http://a.test, CONNECT b.test:443, \"GET d.test:8443\"]\n  credential_proxy:\n    - {type: https_bearer, source: {env: T}, targets: [a.test,\n       \"d.test:8443\", d.test]}\n", "4 credential_unreached, 5 credential_unreached"},
		{"sandbox:\n  egress_rules: [GET api.github.com]\n  credential_proxy:\n    - {type: gh_basic, source: {env: T}}\n", ""},
		{"sandbox:\n  egress_rules: []\n  credential_proxy:\n    - {type: gh_basic, source: {env: T}}\n", "4 credential_unreached"},
		{"sandbox:\n  egress_rules: [CONNECT *.test:443]\n  credential_proxy:\n    - {type: https_bearer, target: a.test, source: {env: T}}\n", "4 credential_unreached, 4 tunnel_hides_rule"},
	} {
		p, problems := policy.Load("egressd.yaml", []byte(c.text), policy.Options{Platform: "linux"})
		var got []string
		for _, w := range problems {
			got = append(got, fmt.Sprintf("%d %s", w.Line, w.Kind))
		}
		if s := strings.Join(got, ", "); p == nil || s != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, s, c.want)
		}
		if _, problems := policy.Load("egressd.yaml", []byte(c.text), policy.Options{Platform: "linux", NoLint: true}); len(problems) > 0 {
			t.Errorf("%q: warnings with NoLint: %v", c.text, problems)
		}
	}
}

package audit

// Reasons returns the closed set of reasons of verdicts, in the order of the
// design: those of allow, then deny, then error. session_start and session_end
// have words of their own.
func Reasons() []string {
	return []string{
		"rule", "approved", "learned",
		"no_rule", "port_not_allowed", "method_not_allowed", "path_not_allowed", "query_not_allowed",
		"deny_rule", "expired", "bad_host", "bad_request", "ambiguous_path", "authority_mismatch",
		"private_address", "protocol", "upgrade_not_allowed", "body_too_large", "rate_limited",
		"credential_leak", "credential_plaintext", "credential_unavailable", "approval_denied",
		"approval_timeout", "credential_foreign", "revoked", "overloaded", "audit_unavailable",
		"proxy_auth", "not_granted",
		"dns", "connect", "upstream_tls", "upstream_reset", "timeout", "client_gone", "internal",
	}
}

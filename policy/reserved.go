package policy

import "strings"

// reservedVariables are what egressd itself sets inside, or what would keep
// programs from starting there: a placeholder in one is a slip.
var reservedVariables = strings.Fields(`PATH HOME TMPDIR USER LOGNAME SHELL PWD TERM IFS ENV BASH_ENV
	HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY NODE_USE_ENV_PROXY NODE_OPTIONS JAVA_TOOL_OPTIONS PYTHONPATH PYTHONHOME
	SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO AWS_CA_BUNDLE
	PIP_CERT NPM_CONFIG_CAFILE UV_NATIVE_TLS DENO_CERT CARGO_HTTP_CAINFO NIX_SSL_CERT_FILE BUNDLE_SSL_CA_CERT
	PERL_LWP_SSL_CA_FILE GRPC_DEFAULT_SSL_ROOTS_FILE_PATH CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE ELECTRON_DISABLE_SANDBOX
	GIT_TERMINAL_PROMPT GIT_CONFIG_COUNT DATABRICKS_CONFIG_FILE`)

// placeholderName is the check of the variable that an entry's placeholder is
// in.
func placeholderName(s string) string {
	if why := variableName(s); why != "" {
		return why
	}
	for _, name := range reservedVariables {
		if strings.EqualFold(s, name) {
			return s + " is set by egressd, or rules how programs start: name the variable that the tool reads its token from"
		}
	}
	for _, prefix := range []string{"LD_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "EGRESSD_"} {
		if strings.HasPrefix(s, prefix) {
			return s + " is not a variable for a token"
		}
	}
	return ""
}

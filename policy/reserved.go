package policy

import (
	"slices"
	"strings"
)

// ownVariables are what egressd sets in every sandbox.
var ownVariables = strings.Fields("HOME TMPDIR USER LOGNAME")

// filterVariables are what it sets where the network is filtered: the way to the
// proxy, and whom to trust.
var filterVariables = strings.Fields(`HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_USE_ENV_PROXY
	SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO AWS_CA_BUNDLE
	PIP_CERT NPM_CONFIG_CAFILE UV_NATIVE_TLS DENO_CERT CARGO_HTTP_CAINFO NIX_SSL_CERT_FILE BUNDLE_SSL_CA_CERT
	PERL_LWP_SSL_CA_FILE GRPC_DEFAULT_SSL_ROOTS_FILE_PATH CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE ELECTRON_DISABLE_SANDBOX
	GIT_TERMINAL_PROMPT`)

// startVariables are what would keep programs from starting, or what egressd
// sets for some credentials.
var startVariables = strings.Fields(`PATH SHELL PWD TERM IFS ENV BASH_ENV ALL_PROXY NODE_OPTIONS JAVA_TOOL_OPTIONS
	PYTHONPATH PYTHONHOME GIT_CONFIG_COUNT DATABRICKS_CONFIG_FILE`)

// reservedVariables are all of them: a placeholder in one is a slip.
var reservedVariables = slices.Concat(ownVariables, filterVariables, startVariables)

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

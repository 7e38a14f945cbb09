package ca

// Variables lists, as KEY=VALUE, what the tools that bring roots of their own
// read instead of the system's files, and the switches that make tools heed the
// system's. Bundle is the path of the bundle, dir that of the folder of
// certificates. They must name the whole bundle: most replace, few add.
func Variables(bundle, dir string) []string {
	return []string{
		"AWS_CA_BUNDLE=" + bundle,                      // AWS CLI and SDKs
		"BUNDLE_SSL_CA_CERT=" + bundle,                 // Ruby's bundler
		"CARGO_HTTP_CAINFO=" + bundle,                  // cargo
		"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE=" + bundle, // gcloud
		"CURL_CA_BUNDLE=" + bundle,                     // curl, and requests
		"DENO_CERT=" + bundle,                          // Deno
		"ELECTRON_DISABLE_SANDBOX=1",                   // its own sandbox needs namespaces, which are refused inside
		"GIT_SSL_CAINFO=" + bundle,                     // git
		"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=" + bundle,   // gRPC's C core
		"NIX_SSL_CERT_FILE=" + bundle,                  // programs from Nix
		"NODE_EXTRA_CA_CERTS=" + bundle,                // Node
		"NODE_USE_ENV_PROXY=1",                         // Node 24: fetch heeds the proxy variables
		"PERL_LWP_SSL_CA_FILE=" + bundle,               // Perl's LWP
		"PIP_CERT=" + bundle,                           // pip
		"REQUESTS_CA_BUNDLE=" + bundle,                 // Python's requests
		"SSL_CERT_DIR=" + dir,                          // OpenSSL, Go
		"SSL_CERT_FILE=" + bundle,                      // OpenSSL, Go, rustls-native-certs
		"UV_NATIVE_TLS=1",                              // uv: the system's roots, not its own
		"npm_config_cafile=" + bundle,                  // npm
	}
}

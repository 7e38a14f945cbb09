package credbroker

import (
	"time"

	"github.com/egressd/egressd/credbroker/source"
)

// Types of entries, as `type` spells them. See docs for what each puts on the
// wire and shows inside the sandbox.
const (
	HTTPSBearer   = "https_bearer"
	HTTPSBasic    = "https_basic"
	GitHTTPS      = "git_https"
	GHBasic       = "gh_basic"
	DatabricksCLI = "databricks_cli"
	HTTPSHeader   = "https_header"
	HTTPSQuery    = "https_query"
	AWSSigV4      = "aws_sigv4"
	OAuth2        = "oauth2"
	GitHubApp     = "github_app"
)

// Entry is one element of credential_proxy, checked and with its defaults
// filled in. The zero Entry binds nothing.
type Entry struct {
	// ID is the entry's name in records, metrics and errors: the one written,
	// else TYPE:TARGET, with #2, #3 where that repeats.
	ID string
	// Type is one of the constants above, "" for a canary.
	Type string
	// Targets are the places the secret is bound to. Those of gh_basic and
	// github_app are filled in where none are written. Empty for
	// databricks_cli, whose hosts stand in its profiles, and for a canary.
	Targets []Target
	// Source is where the secret is read from; nil for databricks_cli and for
	// a canary. For oauth2 it is the client secret, or with
	// Grant "refresh_token" the refresh token; for aws_sigv4 the secret key;
	// for github_app the app's key.
	Source *Source
	// Env are the variables that hold the placeholder inside the sandbox, as
	// written (what a type sets by itself is not among them).
	Env []string

	// Username is the user of Basic types, "x-access-token" by default.
	Username string
	// Header is the field name of https_header, as written.
	Header string
	// Param is the parameter name of https_query.
	Param string

	// Profiles and Default are of databricks_cli: the names of the profiles
	// that are shown, and the one of DATABRICKS_CONFIG_PROFILE ("" for none).
	Profiles []string
	Default  string

	// TokenURL, ClientID, Scopes, Grant and ClientSecret are of oauth2. Grant
	// is "client_credentials" or "refresh_token"; ClientSecret is nil where
	// none is written.
	TokenURL     string
	ClientID     string
	Scopes       []string
	Grant        string
	ClientSecret *Source

	// AccessKeyID, SessionToken and Issue are of aws_sigv4. AccessKeyID is ""
	// where Source is a command that prints credential_process JSON, which
	// then stands for all three. Issue lets calls through that answer with a
	// key.
	AccessKeyID  string
	SessionToken *Source
	Issue        bool

	// AppID and InstallationID are of github_app: texts of digits.
	AppID          string
	InstallationID string

	// Shape is the form of placeholders, such as "ghp_{36}"; "" for
	// oa_cred_ and 32 random bytes in base64url.
	Shape string
	// Inject is "missing" (attach when the request carries no credential) or
	// "placeholder" (swap only).
	Inject string
	// Own is what a credential of the client's own means: "pass", "refuse" or
	// "replace".
	Own string
	// Also are further places in which the service takes a credential, known of
	// presets: Own acts on them too.
	Also Places
	// Ranges keeps Range and If-Range.
	Ranges bool
	// Linger is how long a held-back piece of an answer may wait; 0 for no
	// limit.
	Linger time.Duration
	// Preset is the name the entry was expanded from, or "".
	Preset string
	// Canary says that the placeholder is bound to nothing and its use raises
	// the alarm.
	Canary bool
}

// Places are where a service takes a credential from.
type Places struct {
	// Fields are names of header fields.
	Fields []string
	// Params are names of parameters in the query, and in the forms and JSON
	// objects of bodies.
	Params []string
	// Protocols are how names of WebSocket subprotocols begin that carry one.
	Protocols []string
}

// Target is one place a secret is bound to: host[:port][/path-glob].
type Target struct {
	// Text is the target as written.
	Text string
	// Host is the canonical name or address literal (IPv6 without brackets);
	// it begins with "*." only for aws_sigv4.
	Host string
	// Port is 443 unless one was written.
	Port int
	// Path limits where the secret is attached, in the glob form of rules; a
	// path without a glob means itself and everything below it. "" is every
	// path.
	Path string
}

// Where a secret lies is package source's to say and to read.
type (
	// Source names one place of a secret.
	Source = source.Source
	// Keyring is an item of the user's keyring.
	Keyring = source.Keyring
	// Vault is a field of a Vault secret.
	Vault = source.Vault
)

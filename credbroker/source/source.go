package source

import "time"

// Source names where a secret lies: exactly one of Env, File, Command, Keyring
// and Vault is set. It holds no secret.
type Source struct {
	// Env is the name of a variable of egressd's own environment.
	Env string
	// File is a path: absolute, or beginning with ~/ where the loader was not
	// told the home.
	File string
	// Command is an argv of at least one word. Its program is a bare name, an
	// absolute path or one that begins with ~/, never a relative path.
	Command []string
	// Keyring is a place in the user's keyring.
	Keyring *Keyring
	// Vault is a place in a HashiCorp Vault.
	Vault *Vault
	// TTL is how long a value is good before the source is asked again; 0 for
	// the whole run.
	TTL time.Duration
}

// Keyring is an item of the user's keyring.
type Keyring struct{ Service, User string }

// Vault is a field of a Vault secret. Address "" means VAULT_ADDR. Path is as
// `vault kv get` takes it.
type Vault struct{ Address, Namespace, Path, Field string }

// Package source reads real secrets where the user keeps them, and keeps them
// over time.
//
// It runs outside every sandbox. A secret lies in a variable of egressd's own
// environment, in a file, in what a program prints, in the user's keyring or in
// a HashiCorp Vault (Source); Read fetches it once, and a Keeper holds it: by
// its time to live, by its own expiry, and after an origin's 401.
//
// Three things are refused throughout:
//
//   - to say a secret. An error names the place and what was wrong, in words of
//     this package. What a program wrote to stderr is shown at the start, where
//     the user sits, cut, escaped and without what looks like a secret
//     (CommandError.Said); nothing else that a source said is.
//   - to fall back. A source that fails gives no secret, and not an older one.
//   - to run what a sandbox wrote. Programs are looked up by Finder, in folders
//     that no sandbox can write to, and run in / with a fixed environment.
package source

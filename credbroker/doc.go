// Package credbroker keeps the secrets of a sandbox outside of it. Inside there
// are placeholders; a request that leaves gets the real secret where its entry
// binds it, and nowhere else, and what comes back is searched for it.
//
// An Entry is what the policy says of one secret: its type, its source, and the
// hosts, ports and paths it is bound to. New reads every source and mints the
// placeholders; Broker.RoundTrip stands around the sending of every request that
// the rules allow:
//
//	guard    placeholders and whole secrets in every field, login, path, query,
//	         trailer and text body; what is not where it belongs is refused
//	own      what a credential of the client's own means
//	hold     a body that is looked through waits until it is known to be clean
//	swap     the secret in the place of the placeholder, or
//	attach   the secret where there is none, or sigv4, a signature made anew
//	send     (the caller's)
//	refresh  after a 401 the source is asked again, the request sent once more
//	redact   what the answer holds of a secret becomes the placeholder
//
// A request without a placeholder, to a host to which nothing is bound, passes
// for some 300 ns. Nothing is sent, recorded or said before the guard has looked;
// no error, note or text of this package holds a secret, or what an origin said.
//
// The folders below it do one thing each: secret is the type a value lives in,
// source reads and keeps values, token fetches those that are fetched, sigv4
// signs, scan finds secrets in answers and redact makes answers safe with it.
package credbroker

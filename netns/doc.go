// Package netns is the sandbox: a network namespace in which every connection
// ends at a listener that egressd serves from outside, a view of the host's
// files that shows what was granted and nothing more, and the life of the
// program in it.
//
// Six actors make one sandbox, each with one job:
//
//	egressd   on the host: plans, serves the listeners, follows the program
//	helper    pid 1 of its own namespaces: network, listeners, mounts; it becomes
//	bwrap     builds the view in a user namespace below, and reaps
//	keeper    beside bwrap: puts back what the host takes off a hidden or read-only name
//	launcher  inside, without a capability: sockets, terminal, program, signals
//	program   what was asked for
//
// [Start] brings everything up to the launcher and returns a [Session], whose
// listeners ([Session.Explicit], [Session.Captured]) a proxy serves. With
// [Session.Dial] and [Session.Check] the caller looks from inside before
// [Session.Go] lets the program run; [Session.Wait] gives its status.
//
// Nothing is left at the end, however it comes: no file, socket, mount or
// process has a name on the host, and the death of egressd or of the helper is
// that of everything below.
//
// The helper and the launcher are egressd's own binary, so main calls [Child]
// first.
package netns

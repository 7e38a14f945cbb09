// Package shell runs commands for something that is not trusted, one session
// after another or many at a time, wherever they run.
//
// An [Executor] is a place where commands run: it is started, takes commands,
// and is disposed of. Its three methods are the seam for places of others, a
// container or a machine far away. [Local] is the host itself, and no sandbox.
// [Session] is what callers use: it starts its executor before the first
// command and not sooner, holds each command to its time and its output to a
// bound even where the executor does not, and disposes of it once. [Share]
// gives one executor to several users.
//
// An error is about the session, an exit code about the command:
//
//	124     it took too long; what it had written is kept
//	127     it could not be started; Stderr says why
//	128+n   it ended by signal n
//	130     the caller gave it up
//	other   its own
package shell

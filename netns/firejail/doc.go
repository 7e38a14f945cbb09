//go:build linux

// Package firejail says a sandbox's view in firejail's words, for policies
// without rules where bwrap is not wanted or not there.
//
// [Profile] turns a plan of package mount into the text of a firejail profile,
// a plain value that golden tests print. firejail starts from the host's files
// and takes away, where bwrap starts from nothing and adds, so that not all of
// a plan can be said:
//
//	masks       are unreadable, not empty: firejail's blacklist
//	pins        are bound on themselves, by a read-only that is taken back
//	/etc        is a copy of the host's files that every sandbox shows; nothing
//	            of it is made new but passwd and group, which firejail cuts
//	/           shows the names of the host's folders; they cannot be entered
//
// A link that has to be hidden, a grant below a hidden folder, a name that
// firejail would read as a pattern or a macro, and whatever else would show
// more than the plan says, is an error that names the path.
//
// firejail is set-uid root, and so reads nothing here that a sandbox can have
// written: the profile comes by a descriptor, no profile of the user's or the
// distribution's is read beside it, and the program's command line never
// passes through it, only the launcher's.
package firejail

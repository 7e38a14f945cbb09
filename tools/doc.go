// Package tools gives something that is not trusted a shell and files: shell,
// file_read, file_write, file_edit, grep and glob.
//
// A [Set] holds the tools that were granted, none unless it was said. Each call
// is judged, then asked about where somebody wants to be asked, then done, and
// recorded whatever became of it: a call that cannot be recorded is not made.
// The arguments are read strictly, so that who is asked about a call and who
// makes it read the same.
//
// Files are those of a [safepath.FS], commands run in a [shell.Executor].
package tools

package main

import "golang.org/x/sys/unix"

// throughOnly opens a folder to go through it, which need not be readable.
const throughOnly = unix.O_PATH

// renameNew gives a file a name that nothing has yet.
func renameNew(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}

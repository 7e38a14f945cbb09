package main

import (
	"io/fs"
	"syscall"
)

// statOf is what the kernel says of a file.
func statOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

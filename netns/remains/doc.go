// Package remains tells what a sandbox has left in the folders that it could
// write and that could run on the host later: settings and hooks of git, a
// repository where there was none, files that an editor, a shell or a build tool
// runs by their name.
//
// A [Watch] is filled while the folders are walked at the start: each folder
// with the identity of its inode, and of each name that matters the identity of
// the file. [Watch.Look] goes through the same folders at the end. The kernel
// changes a folder's ctime whenever a name in it comes, goes or is replaced, and
// a file's whenever its bytes, mode or links change, and no program can set a
// ctime back; so only folders that changed are read again. A file that changed
// and has the bytes of before again is not named.
//
// What a sandbox left is hostile: no link is followed, nothing but a regular
// file is opened for reading, every read and every walk has a bound, and what was
// not looked at is named. Nothing is run: git's settings and its index are read
// here.
package remains

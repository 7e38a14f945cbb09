// Package safepath is files that a program may have which is not trusted: every
// operation stays in the folders that were granted, whatever the path says and
// whatever somebody does to the folders meanwhile.
//
// An [FS] holds a working folder and grants. A path that is relative starts at
// the working folder; an absolute one must lie in a grant, by its real path or
// by the name the grant was opened by. The most specific grant decides whether
// a path is hidden, readable or writable. Links are followed as far as they
// stay within what is granted, absolute ones too.
//
// Nothing is checked first and opened later. A path is walked name by name on
// open folders ([os.Root]), no step follows a link by itself, and what was
// opened is compared with what was looked at: a folder that is swapped for a
// link in between is noticed, and the walk begins anew. So a path is judged by
// where it leads and not by how it is spelled.
//
// Only regular files are read and written, opened without blocking: a FIFO, a
// socket or a device is refused and never waited for. Writes go to a file
// beside the old one that then takes its name, with its mode: a reader sees the
// old text or the new one.
//
// What it is not: a sandbox for programs. A hard link is the file itself, and
// whoever can make one to a file can read that file anyway. Names are compared
// byte by byte, so on a file system that ignores letter case a hidden name
// needs a folder that is not granted. A folder has to be readable, not only
// searchable, to be walked through.
package safepath

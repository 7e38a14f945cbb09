// Package cgroup puts a sandbox into a cgroup (version 2) of its own, where one
// is delegated to whoever runs egressd.
//
// A place is delegated if the kernel lets this process make a group there, start
// a process into it, and set the limits that are asked for:
//
//   - an ancestor of this process's own group that hands the controllers down to
//     its children, as the slices of a user's systemd do: the new group is a
//     sibling of ours. For root, which may write everywhere, systemd's mark of
//     delegation must be there, or no systemd: what it owns, nobody else changes;
//   - else this process's own group, if it is alone there (a service with
//     Delegate=yes, a container's root). Only leaves may hold processes, so it
//     moves to a leaf below for as long as the sandbox is there.
//
// No process is started and nobody is asked: what is not found here is not there.
//
// Each group is locked (flock) by whoever made it, for as long as they live. One
// that nobody holds and that is empty is left over, and the next [Place.Make] in that
// place removes it.
package cgroup

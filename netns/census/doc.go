// Package census counts what the processes of a sandbox use together, where no
// cgroup does it: memory, processor time, and how many they are.
//
// They are found in a /proc of their own pid namespace: everything in it is
// theirs, and nothing of theirs is outside it. It is read in the order of the
// numbers, which only grow, so a process that forks and dies in time is met
// again further on.
//
// Memory is what is anonymous (RssAnon), and of what is shared or lies in file
// systems in memory the greater of what is mapped and what is there: files of
// the sandbox's own tmpfs, System V segments, memfds that a process has open.
// Pages that a fork left shared stand in RssAnon of both, so before a sum is
// called too much it is taken again by proportion (smaps_rollup), which costs a
// walk through the page tables. What belongs to no process is not seen: buffers
// of sockets and pipes, a memfd that is on its way through a socket.
//
// Processor time of the dead is in their parents' stat, up to pid 1, which
// inherits orphans. A parent that ignores SIGCHLD loses it. So the time is also
// sampled, a new process standing for its like that came and went unseen, and
// half as much again by that measure counts as too much too.
package census

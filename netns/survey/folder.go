package survey

import (
	"slices"

	"golang.org/x/sys/unix"
)

// look is what one folder holds.
type look struct {
	read    bool     // it was looked at
	whole   bool     // to its end
	cut     bool     // not to its end: the bound was hit
	closed  bool     // we may not read it, but the sandbox might come to
	entries int      // names read
	folders []string // to look into, from the root
	hidden  []string // as in Found
	git     []string
	sockets []string
	named   []string
	self    Folder
}

// stamp notes what a folder is before its names are read.
func (l *look) stamp(fd int) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		l.self = Folder{Dev: uint64(st.Dev), Ino: st.Ino, Sec: int64(st.Ctim.Sec), Nsec: int64(st.Ctim.Nsec)}
	}
}

// kind is what a name stands for, as far as a walk cares.
type kind int

const (
	file kind = iota
	folder
	socket
	link
)

// gitMarks are the names by which a folder is known as git's.
type gitMarks struct{ head, more bool }

func (g *gitMarks) see(name []byte) {
	switch string(name) {
	case "HEAD":
		g.head = true
	case "objects", "refs", "config", "commondir":
		g.more = true
	}
}

// sorter judges the names of one folder.
type sorter struct {
	*walk
	look
	rel   string // the folder, from the root
	inGit bool   // it is named .git
	marks gitMarks
}

// see judges one name. The name is only good for the length of the call.
func (s *sorter) see(name []byte, k kind) {
	s.entries++
	dot := name[0] == '.'
	if !dot && k == file && len(s.names) == 0 && !s.at.Write {
		return
	}
	s.marks.see(name)
	if s.names[string(name)] {
		s.named = append(s.named, s.path(join(s.rel, string(name))))
	}
	isGit := string(name) == ".git"
	if s.at.Write && isGit {
		s.git = append(s.git, s.path(join(s.rel, ".git")))
	}
	if k == socket {
		s.sockets = append(s.sockets, s.path(join(s.rel, string(name))))
	}
	if dot && !s.allowed[string(name)] {
		switch {
		case s.rel == ".": // hidden as it is
			return
		case s.config.Recursive:
			s.hidden = append(s.hidden, s.path(join(s.rel, string(name))))
			return
		}
	}
	// What lies in .git/objects is named by its hash and never run or read as a
	// config; it would use up the bound.
	// Of the rest only dot names and sockets matter here; what git heeds in it is
	// looked at by whoever holds it.
	if k != folder || s.inGit && string(name) == "objects" || isGit && !s.config.Recursive && !s.config.Sockets {
		return
	}
	rel := join(s.rel, string(name))
	if !s.apart[s.path(rel)] {
		s.folders = append(s.folders, rel)
	}
}

// end is called when all names were seen.
func (s *sorter) end() {
	if s.at.Write && s.marks.head && s.marks.more && !s.inGit {
		s.git = append(s.git, s.path(s.rel))
	}
	if s.config.MaxEntries > 0 {
		slices.Sort(s.folders) // so that a bound cuts off the same each time
	}
}

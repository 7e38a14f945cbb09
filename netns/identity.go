//go:build linux

package netns

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/egressd/egressd/netns/mount"
)

// identity is who the sandboxed processes are, on the host and inside.
type identity struct {
	uid, gid int  // on the host
	invented bool // nobody on the host has this uid
	root     bool // egressd runs as root
	inside   mount.User
	note     string // for the operator
}

// Range of invented uids. No distribution gives any of it away; systemd's own
// ranges end below.
const (
	inventedFirst = 2_000_000_000
	inventedCount = 100_000_000
)

// whoRuns decides. A user stays who they are. Root becomes whoever called
// sudo, else the owner of the working folder, else an invented user: never a
// process with host uid 0 where the kernel can do without.
func whoRuns(cwd string, invoker Invoker) (identity, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid != 0 {
		return identity{uid: uid, gid: gid, inside: account(uid, gid)}, nil
	}
	id := identity{root: true}
	if invoker.SudoUID > 0 {
		id.uid, id.gid = invoker.SudoUID, invoker.SudoGID
	} else {
		info, err := os.Stat(cwd)
		if err != nil {
			return identity{}, fmt.Errorf("finding the owner of the working folder: %w", err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			id.uid, id.gid = int(st.Uid), int(st.Gid)
		}
	}
	if id.uid != 0 && mapped(id.uid) && mapped(id.gid) {
		if id.gid == 0 {
			id.gid = account(id.uid, 0).GID
		}
		id.inside = account(id.uid, id.gid)
		return id, nil
	}
	id.inside = mount.User{UID: 1000, GID: 1000, Name: "sandbox", Group: "sandbox", Shell: "/bin/sh"}
	invented, err := invent()
	if err != nil {
		return identity{}, err
	}
	if invented == 0 {
		return id.asRoot("this user namespace maps no spare uid"), nil
	}
	id.uid, id.gid, id.invented = invented, invented, true
	return id, nil
}

// asRoot is the last resort: host uid 0, without a capability, in a user
// namespace of its own.
func (id identity) asRoot(why string) identity {
	id.uid, id.gid, id.invented = 0, 0, false
	id.note = "the sandbox runs with uid 0 of the host, without capabilities: " + why
	return id
}

// invent draws an uid that is nobody's, or 0 where our user namespace has none
// to spare. In a container that maps fewer it is one of the last it has.
func invent() (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(rand.Reader, b[:]); err != nil {
		return 0, fmt.Errorf("inventing a uid: %w", err)
	}
	n := int(binary.LittleEndian.Uint32(b[:]))
	if uid := inventedFirst + n%inventedCount; mapped(uid) {
		return uid, nil
	}
	for top := idsMapped(); n%1000 < top-2000; n++ {
		if uid := top - 3 - n%1000; mapped(uid) && entry("/etc/passwd", strconv.Itoa(uid), 7) == nil && uid != nobodyID {
			return uid, nil
		}
	}
	return 0, nil
}

// nobodyID is the kernel's stand-in for every id that is not mapped.
const nobodyID = 65534

// idsMapped is how many ids our user namespace has, from 0 on in one piece.
func idsMapped() int {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return 0
	}
	return idsFrom0(string(data))
}

func idsFrom0(text string) int {
	for line := range strings.Lines(text) {
		var inside, outside, count int
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && inside == 0 {
			return count
		}
	}
	return 0
}

// mapped reports whether our user namespace knows the id, as uid and as gid.
func mapped(id int) bool {
	return inMap("/proc/self/uid_map", id) && inMap("/proc/self/gid_map", id)
}

func inMap(path string, id int) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		var inside, outside, count int
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && id >= inside && id < inside+count {
			return true
		}
	}
	return false
}

// account is the host's entry for a user; one without an entry has a name made
// from the number. A gid of 0 is replaced by the user's own group.
func account(uid, gid int) mount.User {
	u := mount.User{UID: uid, GID: gid, Name: "user" + strconv.Itoa(uid), Shell: "/bin/sh"}
	if f := entry("/etc/passwd", strconv.Itoa(uid), 7); f != nil {
		u.Name, u.Shell = f[0], f[6]
		if own, err := strconv.Atoi(f[3]); err == nil && gid == 0 && uid != 0 {
			u.GID = own
		}
	}
	if u.Shell == "" {
		u.Shell = "/bin/sh"
	}
	u.Group = u.Name
	if f := entry("/etc/group", strconv.Itoa(u.GID), 4); f != nil {
		u.Group = f[0]
	}
	return u
}

// entry is the line of a file such as passwd whose third field is id.
func entry(path, id string, fields int) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	for s := bufio.NewScanner(file); s.Scan(); {
		if f := strings.Split(s.Text(), ":"); len(f) == fields && f[2] == id {
			return f
		}
	}
	return nil
}

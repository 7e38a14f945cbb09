package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dirs are egressd's own folders and the user they belong to: under sudo the
// user who called sudo, so that a root run does not leave root's files in
// their home, nor read another policy than they would.
type dirs struct {
	uid, gid int
	home     string
	config   string // policies that need no trust
	state    string // records and the list of what is trusted
	control  string // sockets of running sessions
}

// findDirs works out the folders from the environment; it makes none.
func findDirs() (dirs, error) {
	d := dirs{uid: os.Getuid(), gid: os.Getgid(), home: os.Getenv("HOME")}
	sudo := false
	if d.uid == 0 {
		if id, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && id > 0 {
			u, err := user.LookupId(strconv.Itoa(id))
			if err != nil {
				return dirs{}, fmt.Errorf("finding the user of SUDO_UID: %w", err)
			}
			gid, err := strconv.Atoi(u.Gid)
			if err != nil {
				return dirs{}, fmt.Errorf("reading the group of SUDO_UID: %w", err)
			}
			d.uid, d.gid, d.home, sudo = id, gid, u.HomeDir, true
		}
	}
	if d.home == "" {
		u, err := user.LookupId(strconv.Itoa(d.uid))
		if err != nil {
			return dirs{}, errors.New("finding the home folder: HOME is not set and the user has no entry in passwd")
		}
		d.home = u.HomeDir
	}
	if !filepath.IsAbs(d.home) {
		return dirs{}, fmt.Errorf("finding the home folder: HOME is %q, not an absolute path", d.home)
	}
	// Under sudo the variables are the caller's or root's, nobody can say
	// which: only the passwd entry counts.
	pick := func(name, fallback string) string {
		if v := os.Getenv(name); !sudo && filepath.IsAbs(v) {
			return filepath.Join(v, "egressd")
		}
		return filepath.Join(d.home, fallback, "egressd")
	}
	d.config = pick("XDG_CONFIG_HOME", ".config")
	d.state = pick("XDG_STATE_HOME", ".local/state")
	// The system makes that one: where it has not, it is not ours to make.
	if run := os.Getenv("XDG_RUNTIME_DIR"); !sudo && filepath.IsAbs(run) && realPath(run) != "" {
		d.control = filepath.Join(run, "egressd")
	} else {
		d.control = filepath.Join(os.TempDir(), "egressd-"+strconv.Itoa(d.uid))
	}
	return d, nil
}

// audit is the folder that holds a file for each session.
func (d dirs) audit() string { return filepath.Join(d.state, "audit") }

// forks is the folder of throw-away copies. Like the whole state folder it shows
// empty in every grant.
func (d dirs) forks() string { return filepath.Join(d.state, "forks") }

// own makes one of the folders, with those above it, as 0700 and the user's.
// Below the home no link is followed: under sudo the user could have planted
// one that leads root elsewhere.
func (d dirs) own(path string) error {
	base, rest := d.home, ""
	if r, err := filepath.Rel(d.home, path); err == nil && r != "." && !strings.HasPrefix(r, "..") {
		rest = r
	} else {
		base, rest = filepath.Dir(path), filepath.Base(path)
		if os.Getuid() == d.uid {
			if err := os.MkdirAll(base, 0o700); err != nil {
				return fmt.Errorf("making %s: %w", base, err)
			}
		}
	}
	fd, err := unix.Open(base, throughOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", base, err)
	}
	defer func() { unix.Close(fd) }()
	at := base
	for _, name := range strings.Split(rest, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		err := unix.Mkdirat(fd, name, 0o700)
		made := err == nil
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making %s: %w", at, err)
		}
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening %s (a link is not followed): %w", at, err)
		}
		unix.Close(fd)
		fd = next
		if made && os.Getuid() != d.uid {
			if err := unix.Fchown(fd, d.uid, d.gid); err != nil {
				return fmt.Errorf("handing %s to its user: %w", at, err)
			}
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", at, err)
	}
	if int(st.Uid) != d.uid && st.Uid != 0 {
		return fmt.Errorf("%s belongs to uid %d, not to %d: move it away", at, st.Uid, d.uid)
	}
	return nil
}

// private makes the control folder, and insists that it is ours, 0700 and no
// link: below a shared temp folder anybody could have made it first.
func (d dirs) private() error {
	if err := d.own(d.control); err != nil {
		return err
	}
	st, err := os.Lstat(d.control)
	if err != nil {
		return fmt.Errorf("looking at the control folder: %w", err)
	}
	sys, ok := statOf(st)
	if !ok || !st.IsDir() || st.Mode().Perm() != 0o700 || (int(sys.Uid) != d.uid) {
		return fmt.Errorf("the control folder %s is not a private folder of uid %d with mode 0700: remove it", d.control, d.uid)
	}
	return nil
}

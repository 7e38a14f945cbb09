package safepath

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file that root made to whom it is for: the owner of the
// file it replaces, or of the folder it is new in. What root leaves in the
// folder of somebody else, that one could not change.
func keepOwner(file *os.File, like fs.FileInfo) error {
	s, ok := like.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	err := file.Chown(int(s.Uid), int(s.Gid))
	if errors.Is(err, fs.ErrPermission) {
		return nil // a thread of root that has laid root's rights down
	}
	return err
}

// inherit does the same for a folder that was made in dir. Somebody may have
// put another folder in its place, so it has to be root's and empty: to be given
// such a one is worth nothing. Where that is not so the folder stays root's.
func inherit(dir *os.Root, name string) {
	if os.Geteuid() != 0 {
		return
	}
	above, err := dir.Stat(".")
	if err != nil {
		return
	}
	made, err := dir.OpenRoot(name + "/.")
	if err != nil {
		return
	}
	defer made.Close()
	info, err := made.Stat(".")
	if err != nil {
		return
	}
	names, err := list(made)
	to, ok := above.Sys().(*syscall.Stat_t)
	of, known := info.Sys().(*syscall.Stat_t)
	if err == nil && len(names) == 0 && ok && known && of.Uid == 0 {
		_ = made.Chown(".", int(to.Uid), int(to.Gid))
	}
}

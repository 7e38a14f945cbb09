package audit

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// prune removes the oldest sessions, so that keep are left, own included. A
// session that runs is never touched; it counts.
func prune(root *os.Root, own string, keep int) error {
	sessions, err := folderFiles(root)
	if err != nil {
		return err
	}
	ids := sortedKeys(sessions)
	surplus := len(ids) - keep
	var errs []error
	for _, id := range ids {
		if surplus <= 0 {
			break
		}
		if id == own {
			continue
		}
		removed, err := removeSession(root, sessions[id])
		if err != nil {
			errs = append(errs, err)
		}
		if removed {
			surplus--
		}
	}
	return errors.Join(errs...)
}

// removeSession removes the files of a session that does not run. The first
// file, with the lock, goes last.
func removeSession(root *os.Root, files []string) (bool, error) {
	first, err := openFile(root, files[0], os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer first.Close()
	if err := tryLock(first, syscall.LOCK_EX); err != nil {
		if errors.Is(err, ErrInUse) {
			return false, nil
		}
		return false, err
	}
	for _, name := range slices.Backward(files) {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// folderFiles returns the files of each session in a folder of records, first
// SESSION.jsonl, then what else bears its name.
func folderFiles(root *os.Root) (map[string][]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	sessions := make(map[string][]string)
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".jsonl"); ok && goodSession(id) {
			sessions[id] = append(sessions[id], name)
		}
	}
	for _, name := range names {
		id, _, _ := strings.Cut(name, ".")
		if files := sessions[id]; len(files) > 0 && name != files[0] {
			sessions[id] = append(files, name)
		}
	}
	return sessions, nil
}

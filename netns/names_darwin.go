package netns

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/seatbelt"
)

// kernelNames gives paths as the kernel names them: a volume that ignores case
// opens a file under any spelling, and asks the profile for the one that is
// stored.
type kernelNames struct {
	folders  map[string]string
	listings map[string][]os.DirEntry
}

func newKernelNames() *kernelNames {
	return &kernelNames{map[string]string{}, map[string][]os.DirEntry{}}
}

// of is the name of a path, whose last part is not followed if it is a link, and
// need not be there.
func (n *kernelNames) of(path string) string {
	path = seatbelt.Canonical(path)
	folder, name := filepath.Split(path)
	if name == "" {
		return path
	}
	folder = n.folder(filepath.Clean(folder))
	info, err := os.Lstat(path)
	if err != nil {
		return filepath.Join(folder, name)
	}
	entries, ok := n.listings[folder]
	if !ok {
		entries, _ = os.ReadDir(folder) // one that cannot be read keeps the name as given
		n.listings[folder] = entries
	}
	best := name
	for _, e := range entries {
		if e.Name() == name {
			return filepath.Join(folder, name)
		}
		if other, err := os.Lstat(filepath.Join(folder, e.Name())); strings.EqualFold(e.Name(), name) && err == nil && os.SameFile(info, other) {
			best = e.Name()
		}
	}
	return filepath.Join(folder, best)
}

// folder asks the kernel for the name of a folder. A folder has one name alone;
// of a file with hard links it could name any.
func (n *kernelNames) folder(path string) string {
	if known, ok := n.folders[path]; ok {
		return known
	}
	real := path
	if fd, err := unix.Open(path, unix.O_EVTONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		var buf [unix.PathMax]byte
		if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), unix.F_GETPATH, uintptr(unsafe.Pointer(&buf))); errno == 0 {
			if end := bytes.IndexByte(buf[:], 0); end > 0 {
				real = seatbelt.Canonical(string(buf[:end]))
			}
		}
		_ = unix.Close(fd)
	}
	n.folders[path] = real
	return real
}

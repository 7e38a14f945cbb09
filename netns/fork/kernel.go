//go:build linux

package fork

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// kernelTypes are file systems whose files are the kernel's own: reading one may
// wait, never end, or do something.
var kernelTypes = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
	unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC,
	unix.PSTOREFS_MAGIC, unix.BINFMTFS_MAGIC, unix.SELINUX_MAGIC, unix.NSFS_MAGIC, unix.HUGETLBFS_MAGIC,
}

// ofKernel says whether a folder is of such a file system.
func ofKernel(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && slices.Contains(kernelTypes, int64(st.Type))
}

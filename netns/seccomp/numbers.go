//go:build linux

package seccomp

// absent is the number of a call that an architecture does not have.
const absent = -1

// number is a system call's, by architecture.
type number struct{ amd64, arm64 int }

// numbers holds the calls that the filter speaks of, from the kernel's tables
// (arch/x86/entry/syscalls/syscall_64.tbl, scripts/syscall.tbl). A test compares
// them with x/sys.
var numbers = map[string]number{
	// The host: its clock, modules, devices, accounting, log, power.
	"acct":            {163, 89},
	"clock_adjtime":   {305, 266},
	"clock_settime":   {227, 112},
	"settimeofday":    {164, 170},
	"create_module":   {174, absent},
	"delete_module":   {176, 106},
	"finit_module":    {313, 273},
	"init_module":     {175, 105},
	"get_kernel_syms": {177, absent},
	"query_module":    {178, absent},
	"ioperm":          {173, absent},
	"iopl":            {172, absent},
	"kexec_file_load": {320, 294},
	"kexec_load":      {246, 104},
	"nfsservctl":      {180, 42},
	"quotactl":        {179, 60},
	"quotactl_fd":     {443, 443},
	"reboot":          {169, 142},
	"sethostname":     {170, 161},
	"setdomainname":   {171, 162},
	"swapoff":         {168, 225},
	"swapon":          {167, 224},
	"syslog":          {103, 116},
	"_sysctl":         {156, absent},
	"sysfs":           {139, absent},
	"uselib":          {134, absent},
	"ustat":           {136, absent},
	"vhangup":         {153, 58},

	// Mounts and roots.
	"chroot":         {161, 51},
	"fsconfig":       {431, 431},
	"fsmount":        {432, 432},
	"fsopen":         {430, 430},
	"fspick":         {433, 433},
	"mount":          {165, 40},
	"mount_setattr":  {442, 442},
	"move_mount":     {429, 429},
	"open_tree":      {428, 428},
	"open_tree_attr": {467, 467},
	"pivot_root":     {155, 41},
	"umount2":        {166, 39},

	// Other namespaces and other processes.
	"kcmp":              {312, 272},
	"listns":            {470, 470},
	"pidfd_getfd":       {438, 438},
	"process_madvise":   {440, 440},
	"process_vm_readv":  {310, 270},
	"process_vm_writev": {311, 271},
	"ptrace":            {101, 117},
	"setns":             {308, 268},

	// Keys, which know no namespace.
	"add_key":     {248, 217},
	"keyctl":      {250, 219},
	"request_key": {249, 218},

	// Large and often broken parts of the kernel.
	"bpf":               {321, 280},
	"fanotify_init":     {300, 262},
	"io_uring_enter":    {426, 426},
	"io_uring_register": {427, 427},
	"io_uring_setup":    {425, 425},
	"lookup_dcookie":    {212, 18},
	"lsm_set_self_attr": {460, 460},
	"open_by_handle_at": {304, 265},
	"perf_event_open":   {298, 241},
	"userfaultfd":       {323, 282},

	// The placement of memory, which is the host's.
	"get_mempolicy":           {239, 236},
	"mbind":                   {237, 235},
	"migrate_pages":           {256, 238},
	"move_pages":              {279, 239},
	"set_mempolicy":           {238, 237},
	"set_mempolicy_home_node": {450, 450},

	// Calls that no kernel has carried out for long.
	"afs_syscall":    {183, absent},
	"epoll_ctl_old":  {214, absent},
	"epoll_wait_old": {215, absent},
	"getpmsg":        {181, absent},
	"putpmsg":        {182, absent},
	"security":       {185, absent},
	"tuxcall":        {184, absent},
	"vserver":        {236, absent},

	// Calls that are looked into.
	"chmod":       {90, absent},
	"clone":       {56, 220},
	"creat":       {85, absent},
	"fchmod":      {91, 52},
	"fchmodat":    {268, 53},
	"fchmodat2":   {452, 452},
	"ioctl":       {16, 29},
	"mkdir":       {83, absent},
	"mkdirat":     {258, 34},
	"mknod":       {133, absent},
	"mknodat":     {259, 33},
	"mq_open":     {240, 180},
	"open":        {2, absent},
	"openat":      {257, 56},
	"personality": {135, 92},
	"socket":      {41, 198},
	"socketpair":  {53, 199},
	"unshare":     {272, 97},

	// Calls that cannot be looked into.
	"clone3":  {435, 435},
	"openat2": {437, 437},
}

package mount

// own are the parts of the view that are always egressd's: no grant shows the
// host's. A grant above them shows everything else.
var own = []string{"/dev", "/proc", "/sys", "/run", "/etc"}

// open are folders in them that only hold what users put there.
var open = []string{"/run/media", "/dev/shm"}

// system are the folders of the host's system.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap"}

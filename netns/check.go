package netns

// Check is something that must hold inside before the program starts.
type Check struct {
	Kind CheckKind
	Path string // of the file checks
}

// CheckKind says what is checked.
type CheckKind string

const (
	CheckAbsent   CheckKind = "absent"   // Path is not there
	CheckReadOnly CheckKind = "readonly" // no file can be made in the folder Path
	CheckDevices  CheckKind = "devices"  // no network device but lo
	CheckRoutes   CheckKind = "routes"   // no route but local ones
	CheckConfined CheckKind = "confined" // no capability, none to be had, and a filter of system calls that refuses
)

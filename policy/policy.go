package policy

import (
	"time"

	"github.com/egressd/egressd/credbroker"
	"github.com/egressd/egressd/netguard"
	"github.com/egressd/egressd/rules"
)

// Policy is a file that loaded: checked whole, with its defaults filled in. It
// is never changed; Select and Add give changed copies.
type Policy struct {
	// Path is the file's path as it was given to Load.
	Path string
	// Hash is the SHA-256, in hex, of the file and of every file it includes
	// or names as an agent, and of the rules that flags added.
	Hash string
	// Files are the file itself and every file that was read for it, in the
	// order of reading: what is trusted, pinned and watched.
	Files []File
	// Missing are files that the policy names and that could not be read. It
	// loads without them (it can be checked elsewhere than where it is used),
	// but must not be enforced: an included file may hold deny rules. A
	// missing agent's file is not among them: that agent cannot be selected.
	Missing Problems
	// Notes are remarks that are no warnings, of the kinds of Note constants.
	Notes Problems

	// Environment is what the file says at its top, or after Select the chosen
	// terminal's or agent's.
	Environment
	// Terminals are the file's terminals by name.
	Terminals map[string]*Terminal
	// Agents are the policies of the agents named in tools.agents whose file
	// could be read, by name.
	Agents map[string]*Policy
	// Terminal is the chosen terminal, nil where none was.
	Terminal *Terminal

	Upstream Upstream
	Audit    Audit
	Limits   Limits
	TLS      TLS
	Approval Approval
	Metrics  Metrics
	Tools    Tools
	Tests    []Test

	// absent are the paths of included and agents' files that could not be read.
	absent []string
	// sections are the top-level keys that the file holds.
	sections map[string]bool
	// records are the files of audit, with the places of their keys.
	records []grant
	// agentSpots are the places of Tools.Agents.
	agentSpots []spot
	// added tells rules of flags from those of files in Hash.
	added []string
}

// File is a file that belongs to a policy.
type File struct {
	// Path is where it was read from.
	Path string
	// Role is "policy", "include" or "agent".
	Role string
	// Sum is the SHA-256 of its bytes.
	Sum [32]byte
}

// Environment is an os_env with its sandbox: where and how a program runs.
type Environment struct {
	// Cwd is "" for the caller's folder, else a path: absolute, below the
	// policy file's folder, or with a leading ~ where Options.Home was "".
	// Symbolic links in it are not followed yet.
	Cwd            string
	Fork           bool
	StartInScratch bool
	// HasSandbox says that the file holds a sandbox. Without one nothing is
	// unfiltered: HasRules is set and Rules is empty.
	HasSandbox bool
	Sandbox    Sandbox
	// HasRules says that everything goes through the proxy. Without it, and
	// with Sandbox.AllowNetwork, the network is not filtered.
	HasRules bool
	// Rules are the rules of the file, then those of includes, then those of
	// flags. RulePos has the place of each.
	Rules   []rules.Rule
	RulePos []Position
	// Private is egress_allow_private_destinations.
	Private netguard.Allow
	// PrivateList is the same as written, nil for true and false.
	PrivateList []string
	Credentials []credbroker.Entry

	// inherited says that the sandbox is the parent's, checked there.
	inherited bool
	// pos has the places that cross checks name.
	pos places
}

// Sandbox is the sandbox mapping. Paths are as written: relative ones are
// below the working folder and ~ is the user's home (see Expand).
type Sandbox struct {
	// Type is linux_bwrap, firejail, darwin_seatbelt or none; "" where the
	// platform has no default backend.
	Type string
	// TypeGiven says that the policy names it; else it is the platform's.
	TypeGiven  bool
	ReadPaths  []string
	WritePaths []string
	WriteFiles []string
	// AllowHidden are the dot names that stay visible, [.venv] by default.
	AllowHidden []string
	MaskPaths   []string
	// ScanRecursive, ScanMaxEntries and ScanOverflow (warn, error, unlimited)
	// are the cwd_hidden_scan_ keys.
	ScanRecursive  bool
	ScanMaxEntries int
	ScanOverflow   string
	// Home is "" for a private home, else the host folder that is kept.
	Home           string
	AllowNetwork   bool
	EnvPassthrough []string
	// OnLeak is deny or kill; Redact is on or strict.
	OnLeak   string
	LeakPass []string
	Redact   string
	// Timeout of the whole run, 0 for none.
	Timeout time.Duration
	Limits  SandboxLimits
}

// SandboxLimits are the limits of the sandboxed tree; 0 is no limit.
type SandboxLimits struct {
	// Memory in bytes.
	Memory     int64
	Processes  int
	OpenFiles  int
	CPUSeconds int
}

// Terminal is a way to start a program, by name.
type Terminal struct {
	Name string
	// Command is the program, "" for the user's shell; Args follow it.
	Command string
	Args    []string
	// Env are variables that are set inside.
	Env map[string]string
	// Inherit says that Environment is the parent's, unchanged.
	Inherit     bool
	Environment Environment
}

// Unfiltered says that the program has the host's network.
func (e *Environment) Unfiltered() bool {
	return !e.HasRules && e.Sandbox.AllowNetwork && e.Sandbox.Type != BackendNone
}

// Backends, as sandbox.type spells them.
const (
	BackendBwrap    = "linux_bwrap"
	BackendFirejail = "firejail"
	BackendSeatbelt = "darwin_seatbelt"
	BackendNone     = "none"
)

package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/netns/mount"
)

// Config is what a sandbox is made from. All paths are absolute, clean and
// without links.
type Config struct {
	// Argv is the program and its arguments. Without one the session stands until
	// Close and runs commands, by Exec; it has no Streams then, and no Go.
	Argv []string
	Env  []string // its whole environment, but for HOME, TMPDIR, USER and LOGNAME, which Start sets; PATH loses what does not exist inside
	// EnvExplicit is more of the environment where capture is explicit only, and
	// replaces what Env says of the same variables.
	EnvExplicit []string
	// EnvLate is still more of the environment, asked for after Texts and
	// replacing what Env says of the same variables: what is only known then.
	// nil: there is none.
	EnvLate func() []string `json:"-"`
	Cwd     string          // where it starts; shown read-only unless a grant opens it

	Grants      []mount.Grant
	GrantNames  []string      // paths that lead to grants by links, which are made inside where no grant shows them
	AllowHidden []string      // dot names that are not hidden at the top of a grant; nil is .venv alone
	Hidden      []string      // folders that show empty in any grant: egressd's own, ~/.gnupg and their kin
	Masks       []string      // what is hidden whatever is granted; what is not there is left out
	Dots        []string      // dot names below the top of a grant that are hidden but where they are granted
	ReadOnly    []string      // files and folders that stay as they are: policies
	Files       []mount.Entry // made inside: trust bundles. In /etc anywhere, elsewhere only over a file of the host
	// Texts are those of Files that have none, by path; nil: there are none. It
	// is asked while the helper starts, so it may take its time. It must give the
	// same again.
	Texts      func() (map[string][]byte, error) `json:"-"`
	Home       string                            // HOME, inside and out
	HomeSource string                            // host folder that HOME is; empty: private and gone at the end
	Scratch    bool                              // the program starts in TMPDIR; Cwd is shown as it would be
	// Forked is the folder, commonly Cwd, whose throw-away copy ForkAt is (see
	// netns/fork): what is granted at or below it is shown from there. Hidden and
	// ReadOnly speak of both. Empty: none.
	Forked, ForkAt string

	Invoker Invoker
	Network Network
	Capture Capture
	Names   Namer // which names get addresses; nil: none
	Limits  Limits
	Streams Streams
	Path    string // PATH of the caller, where bwrap is looked for
	// Firejail is firejail's file, to be used in the place of bwrap; empty: bwrap.
	// It goes with no captured network.
	Firejail string
	Ahead    *Ahead `json:"-"` // a helper that was started before; nil: none
	Publish  []Publish
	Event    func(Event)
	// Early is called, with capture alone, when the network is up and there is
	// nothing inside yet, beside the rest of the start: to serve the listeners
	// and to try them by Dial, Refuses and Resolve (four TCP and two UDP sockets
	// of IPv4, one of each of IPv6). Start waits for it, and fails with it.
	Early func(context.Context, *Session) error `json:"-"`
}

// check refuses a configuration that no sandbox could be made from.
func (c *Config) check() error {
	if len(c.Argv) == 0 && c.Streams != (Streams{}) {
		return errors.New("making a sandbox: there are streams and no program")
	}
	for _, path := range []string{c.Cwd, c.Home} {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return fmt.Errorf("making a sandbox: the path %q is not absolute and clean", path)
		}
	}
	return nil
}

// Invoker is what is known of who called, beyond the process's own uid.
type Invoker struct {
	SudoUID, SudoGID int // of a run under sudo; 0: none
}

// Network is what the sandbox has of one.
type Network int

const (
	NoNetwork   Network = iota // a loopback and nothing else
	Captured                   // everything ends at egressd's listeners
	HostNetwork                // the host's, unfiltered
)

// Capture is how much of the traffic egressd must catch.
type Capture int

const (
	CaptureAuto        Capture = iota // transparent where the host allows it, else explicit
	CaptureTransparent                // an error where the host does not allow it
	CaptureExplicit                   // only clients that honour proxy variables
)

// Namer says which names and addresses the rules speak of. *rules.Set is one.
type Namer interface {
	Knows(host string) bool      // some rule could allow it: it gets an address of its own
	Ports(host string) []int     // ports beside 80 and 443 that rules name for it
	Addresses() []netip.AddrPort // address literals that rules name
}

// Streams are the program's standard streams, as netns/streams makes them:
// none of them is a file or a terminal of the host. Start hands copies over
// and closes them.
type Streams struct {
	Pty                   bool // a terminal made inside stands for each that is nil
	Stdin, Stdout, Stderr *os.File
}

// Names of limits that a sandbox can meet as a whole.
const (
	LimitMemory     = "memory"
	LimitProcesses  = "processes"
	LimitCPUSeconds = "cpu_seconds"
)

// Limits are what the sandboxed processes may take together; those of a tree
// that takes more are ended, or refused. Zero is no limit beyond what egressd
// itself was started with. Session.Bounds says what holds them.
type Limits struct {
	Memory     uint64 // bytes; where no cgroup counts it also RLIMIT_DATA of each process
	Processes  uint64 // processes and threads
	OpenFiles  uint64 // of each process: RLIMIT_NOFILE
	CPUSeconds uint64 // where no cgroup counts it also RLIMIT_CPU of each process
}

// Publish opens a loopback port of the host to one inside.
type Publish struct {
	Port     int // on 127.0.0.1 inside
	HostPort int // on 127.0.0.1 of the host
}

// Event is something that happened inside and is not the end. Events come
// from several goroutines at a time; whoever gets one must not wait.
type Event struct {
	Kind    EventKind
	Signal  int            // of Stopped
	Name    string         // of PortTaken and Asked
	At      netip.AddrPort // of PortTaken
	Type    string         // of Asked: A, AAAA, TXT
	Verdict string         // of Asked: a verdict of netns/stub
	Err     error          // of Asked: what failed
}

// EventKind names an event.
type EventKind string

const (
	Stopped   EventKind = "stopped"    // the program stopped, as on Ctrl-Z
	Continued EventKind = "continued"  // and went on
	PortTaken EventKind = "port_taken" // a port that a rule names is held by the sandbox itself: the name is not answered
	Uncovered EventKind = "uncovered"  // the host took the cover off a hidden or read-only Name, and it could not be put back: the sandbox ends
	Asked     EventKind = "asked"      // a name was looked up, for the first time
)

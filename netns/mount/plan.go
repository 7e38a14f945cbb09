// Package mount decides what the sandbox sees of the host's files, and makes
// it so.
//
// [Make] looks at the host and returns a [Plan], a plain value that says what
// is shown, what is hidden in it, what is read-only and what is made new. The
// helper, which owns a mount namespace, carries the plan out by descriptor
// ([Apply]): nothing can be swapped between the check and the mount, a link is
// hidden as a link, and bwrap's arguments ([Plan.Arguments]) do not grow with
// the number of masks. Where only bwrap can mount, [Plan.Fallback] says the
// same in bwrap's words alone, and refuses a plan that cannot be said so.
//
// The most specific path wins, whatever its kind; what is hidden beats what is
// granted.
package mount

import (
	"cmp"
	"strings"
)

// Plan is everything the sandbox sees. It holds no descriptor and travels to
// the helper as JSON.
type Plan struct {
	UID, GID int    // inside
	Cwd      string // where the program starts
	Home     string // HOME inside
	Temp     string // TMPDIR inside
	Launcher string // the binary that is bound at [LauncherPath]

	Base  []Base  // /usr and its kin, as on the host, read-only
	Links []Link  // links of the host that a path shown here leads through
	Fresh []Fresh // folders that are empty, writable and gone at the end
	Etc   []Entry // /etc, made new
	Files []Entry // files that lie over the host's, outside /etc
	Roots []Root  // what is granted, shallow first
	// Covers are names of the host's system, or of what is shown of its /etc, that
	// read as empty: no root holds them.
	Covers []Cover
}

// LauncherPath is where the launcher lies inside.
const LauncherPath = "/run/egressd/launcher"

// Base is a folder of the host's system, or a link of the merged-usr kind.
type Base struct {
	Path   string
	Target string // of a link; empty for a folder
}

// Link is a symbolic link that is made inside.
type Link struct{ Path, Target string }

// Fresh is a folder in memory.
type Fresh struct {
	Path string
	Mode uint32
}

// Entry is one name of the new /etc, or a file over one of the host's.
type Entry struct {
	Path   string
	Host   string `json:",omitempty"` // shown from there, read-only
	Target string `json:",omitempty"` // a link with this target
	Dir    bool   `json:",omitempty"` // Host is a folder; without Host an empty one
	Mode   uint32 `json:",omitempty"` // of Data
	Blank  bool   `json:",omitempty"` // the text is written later, by whoever [Blanks] hands the file to
	Data   []byte `json:"-"`          // the text, where neither Host nor Target is set; it travels apart
}

// Cover is an empty folder or file over one that is not in a root.
type Cover struct {
	Path string
	Dir  bool
}

// Root is one granted folder or file. Paths of spots are relative to it.
type Root struct {
	Source string // on the host, without links
	Path   string // inside
	Write  bool
	Dir    bool
	Empty  bool     `json:",omitempty"` // nothing of Source is shown: it is hidden whole
	Clone  int      `json:",omitempty"` // 1 + the number of the handed-over mount of it
	Pins   []string `json:",omitempty"` // folders bound on themselves, so that nothing renames them
	Parts  []string `json:",omitempty"` // read-only in a writable root
	Masks  []Mask   `json:",omitempty"` // shown empty and read-only
	// LatePins are more pins, which [Late] makes.
	LatePins []string `json:",omitempty"`
}

// Mask hides one name. What a deeper root shows below it is left as a hole.
type Mask struct {
	Path  string
	Dir   bool
	Link  bool   `json:",omitempty"`
	Late  bool   `json:",omitempty"` // [Late] makes it
	Holes []Hole `json:",omitempty"`
}

// Hole is a place below a mask that a deeper root is bound to.
type Hole struct {
	Path string // relative to the mask
	Dir  bool
}

// depth counts the names of a clean absolute path.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// byDepth sorts paths shallow first, then by name.
func byDepth(a, b string) int {
	return cmp.Or(cmp.Compare(depth(a), depth(b)), strings.Compare(a, b))
}

// Below reports whether path is folder or lies in it. Both are clean and
// absolute.
func Below(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

// rel is path as seen from folder, which holds it.
func rel(path, folder string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, folder), "/")
}

// between lists the folders from the first name of rel down to the one that
// holds it, shallow first: "a", "a/b" for "a/b/c".
func between(rel string) []string {
	var out []string
	for i, c := range rel {
		if c == '/' {
			out = append(out, rel[:i])
		}
	}
	return out
}

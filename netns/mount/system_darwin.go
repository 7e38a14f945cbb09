package mount

// own are the parts of the view that are always egressd's: no grant shows the
// host's. A grant above them shows everything else.
var own = []string{"/dev", "/private/var/run"}

// open are folders in them that only hold what users put there.
var open = []string{}

// system are the folders of the host's system. Below /System/Volumes lies the
// whole disk under other names, so of that only what the loader needs.
var system = []string{
	"/usr", "/bin", "/sbin", "/opt", "/nix",
	"/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes",
	"/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java",
	"/Applications/Xcode.app/Contents",
}

// shared are the names of the host's own settings that are shown as they are.
var shared = []string{
	"/private/etc/hosts", "/private/etc/passwd", "/private/etc/group", "/private/etc/services", "/private/etc/protocols",
	"/private/etc/networks", "/private/etc/rpc", "/private/etc/shells", "/private/etc/localtime", "/private/etc/profile",
	"/private/etc/bashrc", "/private/etc/zshrc", "/private/etc/zprofile", "/private/etc/zshenv", "/private/etc/paths",
	"/private/etc/paths.d", "/private/etc/manpaths", "/private/etc/manpaths.d", "/private/etc/man.conf", "/private/etc/gitconfig",
	"/private/etc/ssl", "/private/var/db/timezone", "/private/var/db/xcode_select_link", "/private/var/select",
}

// etc are the host's settings: nothing can be laid over them.
func (m *maker) etc() []Entry {
	var out []Entry
	for _, path := range shared {
		out = append(out, Entry{Path: path, Host: path})
	}
	return out
}

// files cannot lie over the host's here. Those that are given lie in the
// session's scratch folder, where whoever starts the sandbox writes them.
func (m *maker) files(*Plan) ([]Entry, error) { return m.Files, nil }

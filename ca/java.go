package ca

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// storesBelow are the truststores of hosts, and of the JDKs below the folders
// where distributions and installers put them.
var storesBelow = []string{
	"/etc/ssl/certs/java/cacerts",                     // Debian: what its JDKs link to
	"/etc/pki/java/cacerts",                           // Fedora
	"/etc/pki/ca-trust/extracted/java/cacerts",        // Fedora: the file behind it
	"/var/lib/ca-certificates/java-cacerts",           // SUSE
	"/etc/ca-certificates/extracted/java-cacerts.jks", // Arch
}

var jdkFolders = []string{
	"/usr/lib/jvm/*", "/usr/lib64/jvm/*", "/usr/java/*", "/usr/local/java/*", "/usr/local/openjdk*", "/usr/local/jdk*",
	"/usr/local/*jdk*", "/opt/*", "/opt/java/*", "/opt/*/jbr", "/snap/*/current/jbr",
	"/nix/var/nix/profiles/default/lib/openjdk", "/home/linuxbrew/.linuxbrew/opt/openjdk*/libexec",
}

// ideFolders are where packages of development tools bring a JDK of their own
// below /usr/share, by name: that folder has too many to look into each at
// every start.
var ideFolders = []string{
	"idea", "intellij-idea", "intellij-idea-ce", "intellij-idea-community-edition", "intellij-idea-ultimate-edition",
	"pycharm", "pycharm-community", "pycharm-professional", "android-studio", "clion", "goland", "webstorm",
	"phpstorm", "rider", "rubymine", "datagrip", "dataspell", "rustrover", "aqua",
}

var homeFolders = []string{
	".sdkman/candidates/java/*", ".jdks/*", ".asdf/installs/java/*", ".local/share/mise/installs/java/*", ".jenv/versions/*",
	".gradle/jdks/*", ".jabba/jdk/*", ".cache/coursier/arc/*/*/*/*/*/*/*/*", ".local/share/JetBrains/Toolbox/apps/*/jbr",
}

// JavaStores finds the truststores to replace below the folder root ("/" for
// this host): the host's own, and each JDK's lib/security/cacerts, by their real
// paths (as seen from root), sorted, each once. Home is a home folder to look
// in, and jdks are folders of further JDKs (JAVA_HOME); both as seen from root.
func JavaStores(root, home string, jdks []string) []string {
	candidates := slices.Clone(storesBelow)
	folders := slices.Clone(jdkFolders)
	if home != "" {
		for _, f := range homeFolders {
			folders = append(folders, filepath.Join(home, f))
		}
	}
	for _, ide := range ideFolders {
		jdks = append(slices.Clip(jdks), filepath.Join("/usr/share", ide, "jbr"))
	}
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(root, folder))
		if err != nil {
			continue // the pattern held a home with a bracket in it
		}
		for _, f := range found {
			jdks = append(slices.Clip(jdks), "/"+strings.TrimPrefix(strings.TrimPrefix(f, filepath.Clean(root)), "/"))
		}
	}
	for _, jdk := range jdks {
		candidates = append(candidates, filepath.Join(jdk, "lib/security/cacerts"), filepath.Join(jdk, "jre/lib/security/cacerts"))
	}
	var stores []string
	for _, c := range candidates {
		// Nearly none is there, and that is quick to ask.
		if _, err := os.Stat(c); filepath.Clean(root) == "/" && err != nil {
			continue
		}
		if path, ok := realPath(root, c); ok {
			stores = append(stores, path)
		}
	}
	slices.Sort(stores)
	return slices.Compact(stores)
}

// realPath follows the links of path as a process whose root is root would, and
// says whether a file is there.
func realPath(root, path string) (string, bool) {
	rest := strings.Split(path, "/")
	at := "/"
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(filepath.Join(root, next))
		if err != nil {
			return "", false
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(filepath.Join(root, next))
		if links++; err != nil || links > 40 { // the kernel's own bound
			return "", false
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	info, err := os.Lstat(filepath.Join(root, at))
	return at, err == nil && info.Mode().IsRegular()
}

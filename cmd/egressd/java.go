package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/egressd/egressd/ca"
	"github.com/egressd/egressd/netns/mount"
)

// javaStore is the truststore for a JDK whose own is not replaced, at the place
// that Debian's JDKs link to.
const javaStore = "/etc/ssl/certs/java/cacerts"

const javaOptions = "JAVA_TOOL_OPTIONS="

// javaStores are the truststores that a program inside could meet: the
// system's, and those of JDKs that a grant shows. One that lies where the
// sandbox may write is not replaced but pointed past, which is what loose says.
func javaStores(home string, grants []mount.Grant) (stores []string, loose bool) {
	var jdks []string
	if j := os.Getenv("JAVA_HOME"); filepath.IsAbs(j) {
		jdks = append(jdks, j)
	}
	if java, err := exec.LookPath("java"); err == nil && realPath(java) != "" {
		java = realPath(java)
		jdks = append(jdks, filepath.Dir(filepath.Dir(java)))
	}
	for _, g := range grants {
		jdks = append(jdks, unpackedJDKs(g.Path)...)
	}
	visible := visibleIn(grants)
	for _, path := range ca.JavaStores("/", home, jdks) {
		switch {
		case slices.ContainsFunc(grants, func(g mount.Grant) bool { return g.Write && within(path, g.Path) }):
			loose = true
		case within(path, "/etc"), visible(filepath.Dir(path)):
			stores = append(stores, path)
		}
	}
	// There too for a JDK that comes later, where anybody here uses Java.
	if (loose || len(stores) > 0) && !slices.Contains(stores, javaStore) {
		stores = append(stores, javaStore)
	}
	return stores, loose
}

// unpackedJDKs finds JDKs in a grant: the folder itself, or one in it. A look
// for a single folder in each keeps the start fast where there are thousands.
func unpackedJDKs(grant string) []string {
	folders := []string{grant}
	entries, err := os.ReadDir(grant)
	if err != nil {
		return nil // netns says what cannot be shown
	}
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' {
			folders = append(folders, filepath.Join(grant, e.Name()))
		}
	}
	return slices.DeleteFunc(folders, func(dir string) bool {
		for _, lib := range []string{"lib/security", "jre/lib/security"} {
			if _, err := os.Stat(filepath.Join(dir, lib)); err == nil {
				return false
			}
		}
		return true
	})
}

// javaTrust are the options of a JDK whose truststore is not replaced.
func javaTrust(at layout) []string {
	return []string{"-Djavax.net.ssl.trustStore=" + at.java, "-Djavax.net.ssl.trustStoreType=PKCS12"}
}

// javaExplicit leads a JDK, which reads no proxy variable, to the explicit
// door. It is given only where nothing is captured, since every java says on
// stderr that it has been given options.
func javaExplicit(env []string, at layout) []string {
	host, port := at.port()
	options := []string{
		"-Dhttp.proxyHost=" + host, "-Dhttp.proxyPort=" + port,
		"-Dhttps.proxyHost=" + host, "-Dhttps.proxyPort=" + port,
	}
	env = withJavaOptions(env, options)
	return env[len(env)-1:]
}

// withJavaOptions adds options to the variable that every JDK reads, or leaves
// the environment as it is where there are none.
func withJavaOptions(env, options []string) []string {
	if len(options) == 0 {
		return env
	}
	value := strings.Join(options, " ")
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		old, ok := strings.CutPrefix(kv, javaOptions)
		if ok && old != "" {
			value = old + " " + value
		}
		return ok
	})
	return append(out, javaOptions+value)
}

package netns

// FindFirejail looks firejail up in path as FindProgram does.
func FindFirejail(path string, avoid []string) (string, error) {
	if at, ok := FindProgram("firejail", path, avoid); ok {
		return at, nil
	}
	return "", &Unavailable{Problem: "firejail is not installed", Advice: "install the package firejail"}
}

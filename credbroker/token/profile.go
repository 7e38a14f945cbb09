package token

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/egressd/egressd/credbroker/secret"
)

// maxProfiles bounds a .databrickscfg, in bytes.
const maxProfiles = 1 << 20

// Profile is one profile of a .databrickscfg.
type Profile struct {
	// Name is the section's.
	Name string
	// Host is the workspace's or account console's, a lower-case name or an
	// address (IPv6 without brackets); Port is 443 unless one was written.
	Host string
	Port int
	// Account is account_id, or "".
	Account string

	kind     login
	clientID string
	secret   secret.Value      // the token, or the client secret
	public   map[string]string // what the file inside keeps
}

// login is how a profile gets its token.
type login int

const (
	byTool login = iota
	byToken
	byMachine
)

// URL is the host as a profile has it, https://HOST.
func (p Profile) URL() string {
	switch {
	case p.Port != 443:
		return "https://" + net.JoinHostPort(p.Host, strconv.Itoa(p.Port))
	case strings.Contains(p.Host, ":"):
		return "https://[" + p.Host + "]"
	}
	return "https://" + p.Host
}

// HoldsToken says that the token stands in the profile: a Fetch asks nobody,
// and may be called at the start.
func (p Profile) HoldsToken() bool { return p.kind == byToken }

// TokenURL is the token endpoint of a machine's login: the workspace's own, or
// that of an account under its console.
func (p Profile) TokenURL() string {
	if p.console() {
		return p.URL() + "/oidc/accounts/" + url.PathEscape(p.Account) + "/v1/token"
	}
	return p.URL() + "/oidc/v1/token"
}

// console says that the host is an account console.
func (p Profile) console() bool {
	return strings.HasPrefix(p.Host, "accounts.") || strings.HasPrefix(p.Host, "accounts-dod.")
}

// ProfilesPath is where the user's profiles stand: DATABRICKS_CONFIG_FILE, or
// .databrickscfg in the home. A relative path is refused, since programs are
// started in another folder.
func ProfilesPath(getenv func(string) string, home string) (string, error) {
	path := getenv("DATABRICKS_CONFIG_FILE")
	if path == "" {
		path = "~/.databrickscfg"
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home == "" {
			return "", errors.New("finding .databrickscfg: the home is not known")
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("finding .databrickscfg: DATABRICKS_CONFIG_FILE is a relative path")
	}
	return path, nil
}

// ReadProfiles reads the profiles of these names from a file, in this order. An
// error names the file or the profile, and quotes nothing of it.
func ReadProfiles(path string, names []string) ([]Profile, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading Databricks profiles: %w", err)
	}
	list, err := Profiles(data, names)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return list, nil
}

// readFile reads a regular file; the open does not wait for the other end of a
// pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxProfiles+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxProfiles {
		return nil, fmt.Errorf("%s is longer than 1 MiB", path)
	}
	return data, nil
}

// Profiles reads the profiles of these names from the text of a
// .databrickscfg, in this order. Two of one workspace are refused: the host
// alone says whose token a request gets.
func Profiles(data []byte, names []string) ([]Profile, error) {
	all, err := sections(data)
	if err != nil {
		return nil, err
	}
	var list []Profile
	at := map[string]string{}
	for _, name := range names {
		var found *section
		for _, s := range all {
			if s.name == name {
				found = s
			}
		}
		if found == nil {
			return nil, fmt.Errorf("profile %q is not there", name)
		}
		p, err := found.profile()
		if err != nil {
			return nil, fmt.Errorf("profile %q: %w", name, err)
		}
		if other, twice := at[p.URL()]; twice {
			return nil, fmt.Errorf("profiles %q and %q are of one workspace, %s", other, name, p.URL())
		}
		at[p.URL()] = name
		list = append(list, p)
	}
	return list, nil
}

// profile reads a section.
func (s *section) profile() (Profile, error) {
	if s.fault != "" {
		return Profile{}, errors.New(s.fault)
	}
	p := Profile{Name: s.name, Account: s.keys["account_id"], public: map[string]string{}}
	var err error
	if p.Host, p.Port, err = hostOf(s.keys["host"]); err != nil {
		return Profile{}, err
	}
	for _, key := range publicKeys {
		if v := s.keys[key]; identifier(v) {
			p.public[key] = v
		}
	}
	how := s.keys["auth_type"]
	switch {
	case how == "pat", how == "" && s.keys["token"] != "":
		p.kind, p.secret = byToken, secret.New([]byte(s.keys["token"]))
		if p.secret.IsZero() {
			return Profile{}, errors.New("no token")
		}
	case how == "oauth-m2m", how == "" && s.keys["client_id"] != "" && s.keys["client_secret"] != "":
		p.kind, p.clientID, p.secret = byMachine, s.keys["client_id"], secret.New([]byte(s.keys["client_secret"]))
		if p.clientID == "" || p.secret.IsZero() {
			return Profile{}, errors.New("no client_id or no client_secret")
		}
		if p.console() && p.Account == "" {
			return Profile{}, errors.New("no account_id, which the console of accounts needs")
		}
	}
	for _, b := range p.secret.Reveal() {
		if b <= ' ' || b > '~' {
			return Profile{}, errors.New("a secret that cannot be sent")
		}
	}
	return p, nil
}

// hostOf reads `host` as the tools do: https where no scheme is written, and
// nothing but name and port of what a browser's address bar had.
func hostOf(s string) (host string, port int, err error) {
	if s == "" {
		return "", 0, errors.New("no host")
	}
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil {
		return "", 0, errors.New("a host that cannot be read")
	}
	if !strings.EqualFold(u.Scheme, "https") {
		return "", 0, errors.New("a host that is not https, and a token never travels in clear")
	}
	host, port = strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), 443
	if text := u.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
			return "", 0, errors.New("a host that cannot be read")
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		return addr.String(), port, nil
	}
	if host == "" || len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" ||
		strings.HasPrefix(host, ".") || strings.Contains(host, "..") {
		return "", 0, errors.New("a host that cannot be read")
	}
	return host, port, nil
}

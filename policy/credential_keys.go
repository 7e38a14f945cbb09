package policy

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/egressd/egressd/credbroker"
)

// typed reads the keys that belong to some types only.
func (c *credential) typed() {
	m, x := c.m, &c.entry
	if !credentialTypes[x.Type].takesKey("username") {
		x.Username = ""
	} else if x.Username == "" {
		x.Username = "x-access-token"
	}
	if v, ok := m.get("username"); ok {
		if s := c.filled(v); strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == ':' }) {
			c.fail(v.spot(), KindValue, "a user of Basic has no colon and no control character")
		} else if s != "" {
			x.Username = s
		}
	}
	if v, ok := m.get("header"); ok {
		if s, ok := c.text(v); ok {
			if why := secretHeader(s); why != "" {
				c.fail(v.spot(), KindValue, "%s", why)
			}
			x.Header = s
		}
	}
	x.Param = orElse(m.filled("param"), x.Param)
	c.databricks()
	c.oauth2()
	x.AccessKeyID = m.filled("access_key_id")
	if m.has("session_token") {
		x.SessionToken = c.source("session_token")
	}
	m.flag("issue", &x.Issue)
	x.AppID, x.InstallationID = c.number("app_id"), c.number("installation_id")
}

func (t credentialType) takesKey(key string) bool {
	for _, k := range t.takes {
		if k == key {
			return true
		}
	}
	return false
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// notForSecrets are fields that egressd or the connection needs (RFC 9110,
// sections 7.2, 7.6.1, 8.6 and 10.1; RFC 9112, section 6.1).
var notForSecrets = []string{"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "keep-alive"}

// secretHeader looks at the name of a field that is to carry a secret.
func secretHeader(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) {
		return quoted(s) + " is no name of a header"
	}
	lower := strings.ToLower(s)
	if strings.HasPrefix(lower, "proxy-") {
		return quoted(s) + " belongs to the connection, which a secret must not"
	}
	for _, h := range notForSecrets {
		if h == lower {
			return quoted(s) + " belongs to the connection, which a secret must not"
		}
	}
	return ""
}

// number reads text of digits.
func (c *credential) number(name string) string {
	v, ok := c.m.get(name)
	if !ok {
		return ""
	}
	s, ok := c.text(v)
	if ok && (s == "" || len(s) > 20 || strings.Trim(s, "0123456789") != "") {
		c.fail(v.spot(), KindValue, "%s is not a number in quotes", quoted(s))
	}
	return s
}

func (c *credential) databricks() {
	m, x := c.m, &c.entry
	if v, ok := m.get("profiles"); ok {
		seen := map[string]bool{}
		x.Profiles, _ = c.strings(v, "names of profiles", func(s string) string {
			if s == "" || strings.ContainsAny(s, "[]\r\n\x00") || seen[s] {
				return quoted(s) + " is no name of a profile, or stands here twice"
			}
			seen[s] = true
			return ""
		})
		if v.node.Kind == sequenceKind && len(v.node.Content) == 0 {
			c.fail(v.spot(), KindValue, "no profile")
		}
	}
	if v, ok := m.get("default"); ok {
		x.Default = c.filled(v)
		known := x.Default == "" || !m.has("profiles")
		for _, p := range x.Profiles {
			known = known || p == x.Default
		}
		if !known {
			c.fail(v.spot(), KindValue, "%s is none of the profiles", quoted(x.Default))
		}
	}
}

func (c *credential) oauth2() {
	m, x := c.m, &c.entry
	if v, ok := m.get("token_url"); ok {
		s, ok := c.text(v)
		u, err := url.Parse(s)
		if ok && (err != nil || u.Scheme != "https" || !webURL(u)) {
			c.fail(v.spot(), KindValue, "not the URL of a token endpoint: https, for the secret travels there")
		}
		x.TokenURL = s
	}
	x.ClientID = m.filled("client_id")
	x.Scopes, _ = m.strings("scopes", "scopes", func(s string) string {
		if s == "" || strings.ContainsAny(s, " \"\\\t\r\n\x00") { // RFC 6749, section 3.3
			return quoted(s) + " is no scope"
		}
		return ""
	})
	if x.Type == credbroker.OAuth2 {
		x.Grant = "client_credentials"
	}
	m.word("grant", &x.Grant, "client_credentials", "refresh_token")
	if !m.has("client_secret") {
		return
	}
	x.ClientSecret = c.source("client_secret")
	// A grant that is wrong was told already.
	if g, ok := m.get("grant"); x.Type == credbroker.OAuth2 && (!ok || g.node.Value == "client_credentials") {
		c.fail(m.key("client_secret"), KindConflict, "source is the client secret already; client_secret goes with grant: refresh_token")
	}
}

// noSecrets are words for keys with which a secret itself is written down.
var noSecrets = map[string]string{"value": noSecret, "secret": noSecret, "token": noSecret, "key": noSecret, "password": noSecret, "text": noSecret}

const noSecret = "a policy holds no secret, but says where it lies: env, file, command, keyring or vault"

// source reads where a secret lies.
func (c *credential) source(name string) *credbroker.Source {
	v, ok := c.m.get(name)
	if !ok {
		return nil
	}
	if isText(v) {
		c.mistyped(v, "a mapping such as {env: NAME}")
		return nil
	}
	m := c.mapping(v, name)
	if m == nil {
		return nil
	}
	s := &credbroker.Source{}
	m.duration("ttl", &s.TTL)
	if ev, ok := m.get("env"); ok {
		if s.Env, ok = c.text(ev); ok {
			if why := variableName(s.Env); why != "" {
				c.fail(ev.spot(), KindValue, "%s", why)
			}
			c.secrets = append(c.secrets, s.Env)
		}
	}
	s.File = m.path("file")
	if cv, ok := m.get("command"); ok {
		s.Command = c.command(cv)
	}
	if kv, ok := m.get("keyring"); ok {
		if k := c.mapping(kv, "keyring"); k != nil {
			k.need("service", "the service's name")
			k.need("user", "the user's name")
			s.Keyring = &credbroker.Keyring{Service: k.filled("service"), User: k.filled("user")}
			k.done(nil)
		}
	}
	if vv, ok := m.get("vault"); ok {
		s.Vault = c.vault(vv)
		c.secrets = append(c.secrets, "VAULT_TOKEN") // opens it
	}
	var first string
	for _, e := range m.entries {
		switch e.name {
		case "env", "file", "command", "keyring", "vault":
			if first != "" {
				c.fail(e.key, KindConflict, "a secret lies in one place: %s is written already", first)
			}
			first = e.name
		}
	}
	unknown := len(c.problems)
	m.done(noSecrets)
	if first == "" && len(c.problems) == unknown && !m.partial {
		c.fail(m.first(), KindMissing, "a source needs one of env, file, command, keyring, vault")
	}
	return s
}

func (c *credential) vault(v value) *credbroker.Vault {
	m := c.mapping(v, "vault")
	if m == nil {
		return nil
	}
	m.need("path", "the secret's path")
	m.need("field", "the secret's field")
	x := &credbroker.Vault{Namespace: m.filled("namespace"), Path: m.filled("path"), Field: m.filled("field")}
	if av, ok := m.get("address"); ok {
		s, ok := c.text(av)
		u, err := url.Parse(s)
		switch {
		case !ok:
		case err != nil || !webURL(u) || u.RawQuery != "":
			c.fail(av.spot(), KindValue, "not the URL of a Vault, such as https://vault.corp.test:8200")
		case u.Scheme == "http" && !thisMachine(u.Hostname()):
			c.fail(av.spot(), KindValue, "the Vault's token travels there: https, or http to this machine")
		}
		x.Address = s
	}
	m.done(nil)
	return x
}

// thisMachine says that a host is localhost or an address of loopback.
func thisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

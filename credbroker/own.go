package credbroker

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// foreign looks for credentials of the client's own where an entry says that
// they are refused or replaced, and does it: a field or parameter of another is
// taken out, beside a placeholder too. Where both are said, it is refused.
func (x *outgoing) foreign() error {
	if x.site == nil {
		return nil
	}
	refuse := false
	var names, params, protocols []string
	for b := range x.owners {
		e := &b.cred.entry
		if e.Own != "refuse" && e.Own != "replace" {
			continue
		}
		refuse = refuse || e.Own == "refuse"
		if names == nil {
			names = []string{"authorization", "cookie", "x-api-key"}
		}
		if e.Type == HTTPSQuery {
			params = append(params, e.Param)
		} else {
			names = append(names, foldName(b.cred.header))
		}
		for _, name := range e.Also.Fields {
			names = append(names, foldName(name))
		}
		params, protocols = append(params, e.Also.Params...), append(protocols, e.Also.Protocols...)
		x.foreignFields = append(x.foreignFields, e.Also.Params...)
		x.foreignAWSForm = x.foreignAWSForm || e.Type == AWSSigV4 && x.r.Method == http.MethodPost
	}
	if names == nil {
		return nil
	}
	x.foreignNames = names
	if (!x.purgeOverrides(params) || !x.purgeProtocols(protocols)) && refuse {
		return errForeign
	}
	if err := x.foreignAWS(refuse); err != nil {
		return err
	}
	for key, lines := range x.r.Header {
		if !slices.Contains(names, foldName(key)) {
			continue
		}
		if key == "Authorization" && x.aws.again != nil {
			continue
		}
		f := x.field(key)
		if f == nil {
			if blank(lines) {
				continue
			}
			if refuse {
				return errForeign
			}
			delete(x.r.Header, key)
			continue
		}
		if !f.purge(x.swaps) && refuse {
			return errForeign
		}
		if len(f.values) == 0 {
			delete(x.r.Header, key)
		}
	}
	if len(params) > 0 && !x.purgeQuery(params) && refuse {
		return errForeign
	}
	return nil
}

// foldName is the name of a field as the servers read it that make a variable
// of it (RFC 3875 section 4.1.18): without case, and "_" as "-".
func foldName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

func blank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool { return strings.Trim(line, " \t") != "" })
}

// purge leaves in the field what is the entry's own, and says whether that was
// all there was.
func (f *field) purge(c *credential) bool {
	pure, kept := true, f.values[:0:0]
	for _, v := range f.values {
		own, same := v.purged(f.key, c)
		if own {
			kept = append(kept, v)
		}
		pure = pure && own && same || strings.Trim(v.text, " \t") == ""
	}
	f.values = kept
	return pure
}

// purged takes out of a line what might be another's credential. own is false
// where nothing is left, same where nothing had to go.
func (v *fieldValue) purged(key string, c *credential) (own, same bool) {
	if len(v.placeholders) == 0 {
		return false, false
	}
	if c.entry.Type == AWSSigV4 {
		return true, true // a signature names one key, and is made anew
	}
	text := v.text
	if v.basic {
		prefix, token, _ := basicToken(text)
		login, _ := decodeBasic(token)
		if clean := cleanLogin(login, v.placeholders[0].text, c.entry.Username); clean != login {
			v.text, text = prefix+base64.StdEncoding.EncodeToString([]byte(clean)), ""
		}
		return true, text != ""
	}
	if key == "Cookie" {
		var crumbs []string
		for crumb := range strings.SplitSeq(text, ";") {
			crumb = strings.Trim(crumb, " \t")
			if name, value, ok := strings.Cut(crumb, "="); ok && value == v.placeholders[0].text && len(name) <= 64 || crumb == v.placeholders[0].text {
				crumbs = append(crumbs, crumb)
			}
		}
		if clean := strings.Join(crumbs, "; "); clean != text {
			v.text, text = clean, ""
		}
		return len(crumbs) > 0, text != ""
	}
	own = bareScheme(strings.Replace(text, v.placeholders[0].text, "", 1))
	return own, own
}

// cleanLogin is a login with the placeholder and nothing in its other half that
// could be a credential: some servers take a token for a user.
func cleanLogin(login, placeholder, username string) string {
	user, password, _ := strings.Cut(login, ":")
	switch {
	case password == placeholder && (user == "" || user == username || user == placeholder):
		return login
	case user == placeholder && (password == "" || password == "x-oauth-basic"):
		return login
	case user == placeholder:
		return placeholder + ":"
	}
	return username + ":" + placeholder
}

// bareScheme says that what stands around a placeholder is no more than a
// scheme and perhaps the name of a parameter, as in `Token token="…"`.
func bareScheme(rest string) bool {
	rest = strings.Trim(rest, " \t")
	scheme, param, _ := strings.Cut(rest, " ")
	param = strings.TrimRight(strings.Trim(param, " \t"), `"`)
	param, ok := strings.CutSuffix(param, "=")
	return letters16(scheme) && (param == "" && !ok || ok && letters16(param))
}

// letters16 says that s is letters and hyphens, at most 16: too little for a key.
func letters16(s string) bool {
	return len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-')
	})
}

// purgeQuery takes parameters of those names out that hold more than the
// placeholder, and says whether there were none.
func (x *outgoing) purgeQuery(names []string) bool {
	list := x.query
	if list == nil {
		list = pairs(x.r.URL.RawQuery)
	}
	kept := slices.DeleteFunc(slices.Clone(list), func(p pair) bool {
		if !namesAny(p.text, names) {
			return false
		}
		whole := len(p.at) == 1 && p.at[0].end == len(p.text) && p.at[0].start == len(p.text)-len(p.value()) && slices.Contains(names, p.name)
		return !whole
	})
	if len(kept) == len(list) {
		return true
	}
	x.query = kept
	return false
}

// present says that the request has a credential in the entry's own place,
// which is what keeps the secret from being attached.
func (x *outgoing) present(c *credential) bool {
	if c.entry.Type == HTTPSQuery {
		list := x.query
		if list == nil {
			list = pairs(x.r.URL.RawQuery)
		}
		return slices.ContainsFunc(list, func(p pair) bool { return p.name == c.entry.Param && p.value() != "" })
	}
	if lines, ok := x.r.Header[c.header]; ok && !blank(lines) {
		return true
	}
	folded := foldName(c.header)
	for key, lines := range x.r.Header {
		if len(key) == len(folded) && foldName(key) == folded && !blank(lines) {
			return true
		}
	}
	return false
}

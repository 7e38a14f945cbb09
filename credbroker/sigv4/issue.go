package sigv4

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// harmless are the calls of sts that answer with no key and no token. All others
// are taken for ones that do, since new ones of that kind are added every year.
var harmless = []string{"GetCallerIdentity", "GetAccessKeyInfo", "DecodeAuthorizationMessage"}

// issuing are the calls of iam that answer with a key, a password or a seed, or
// set one that the caller chose: either way the caller has a credential then
// that the placeholder does not stand for.
var issuing = []string{
	"CreateAccessKey",
	"CreateServiceSpecificCredential", "ResetServiceSpecificCredential",
	"CreateLoginProfile", "UpdateLoginProfile", "ChangePassword",
	"CreateVirtualMFADevice",
	"UploadSSHPublicKey", "UploadSigningCertificate",
	"SendDelegationToken",
}

// issues says that calls of a service may answer with a key.
func issues(service string) bool {
	return strings.EqualFold(service, "sts") || strings.EqualFold(service, "iam")
}

// judgedAs is the service whose calls are looked at: the one that is signed for,
// and at the hosts of sts and iam theirs, whatever the signature says.
func judgedAs(service, host string) string {
	first, rest, _ := strings.Cut(strings.ToLower(host), ".")
	if strings.HasPrefix(rest, "s3") { // a bucket may have any name
		return service
	}
	switch first = strings.TrimSuffix(first, "-fips"); first {
	case "sts", "iam":
		return first
	}
	return service
}

// judge refuses a call that answers with a key, and one of which that cannot be
// told. The action is looked for wherever one of the protocols of AWS has it:
// in the query and the form (Query), in X-Amz-Target (JSON) and in the path (RPC
// v2). All that are named count, since it is the server that picks one.
func judge(service string, r *http.Request, body []byte) error {
	actions, ok := actionsOf(r, body)
	if !ok || len(actions) == 0 && len(body) > 0 {
		return errUnread
	}
	for _, action := range actions {
		if !isWord(action) {
			return errUnread
		}
		same := func(known string) bool { return strings.EqualFold(known, action) }
		if strings.EqualFold(service, "sts") && !slices.ContainsFunc(harmless, same) || slices.ContainsFunc(issuing, same) {
			return errIssues
		}
	}
	return nil
}

// actionsOf are the actions that a request names. ok is false where there may be
// others that cannot be read.
func actionsOf(r *http.Request, body []byte) (actions []string, ok bool) {
	if path := rawPath(r.URL); path != "" && path != "/" {
		parts := strings.Split(path, "/") // /service/NAME/operation/ACTION
		if len(parts) != 5 || parts[0] != "" || parts[1] != "service" || !isWord(parts[2]) || parts[3] != "operation" {
			return nil, false
		}
		actions = append(actions, parts[4])
	}
	switch target := r.Header["X-Amz-Target"]; len(target) {
	case 0:
	case 1:
		version, action, _ := strings.Cut(target[0], ".")
		if !isWord(strings.ReplaceAll(version, "_", "")) {
			return nil, false
		}
		actions = append(actions, action)
	default:
		return nil, false
	}
	form, ok := readable(r.Header)
	if len(body) > 0 && (!ok || form && bytes.IndexByte(body, 0) >= 0 || !form && len(actions) == 0) {
		return nil, false
	}
	actions = append(actions, named(r.URL.RawQuery)...)
	if ok {
		actions = append(actions, named(string(body))...)
	}
	return actions, true
}

// readable says whether a body can be read: it is a form in ASCII, or something
// in JSON or CBOR whose action stands elsewhere, and in no coding.
func readable(h http.Header) (form, ok bool) {
	for _, coding := range h["Content-Encoding"] {
		if coding = strings.Trim(coding, " \t"); coding != "" && !strings.EqualFold(coding, "identity") {
			return false, false
		}
	}
	lines := h["Content-Type"]
	if len(lines) > 1 {
		return false, false
	}
	media, rest, _ := strings.Cut(strings.ToLower(strings.Join(lines, "")), ";")
	if rest = strings.Trim(rest, " \t;"); rest != "" {
		charset, ok := strings.CutPrefix(rest, "charset=")
		if !ok || !slices.Contains([]string{"utf-8", "us-ascii", "iso-8859-1"}, strings.Trim(charset, `"`)) {
			return false, false
		}
	}
	switch strings.Trim(media, " \t") {
	case "", "application/x-www-form-urlencoded":
		return true, true
	case "application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1", "application/cbor":
		return false, true
	}
	return false, false
}

// named are the values of all parameters Action of a query or form, by whatever
// separator, in whatever case, after up to three rounds of decoding.
func named(form string) (actions []string) {
	for text := range strings.FieldsFuncSeq(form, func(c rune) bool { return c == '&' || c == ';' || c == '\n' || c == '\r' }) {
		p := paramOf(text)
		name := p.name
		for range 3 {
			if isAction(name) {
				actions = append(actions, p.value)
				break
			}
			name = unescape(name, true)
		}
	}
	return actions
}

// isAction says that a server may read name as Action: case and what is no
// letter around it (a mark of byte order, a space, NUL) do not count.
func isAction(name string) bool {
	return strings.EqualFold("Action", strings.TrimFunc(name, func(c rune) bool { return c > '~' || !isLetter(byte(c)) }))
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isWord says that s is letters and digits, as every action is.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c > '~' || !isLetter(byte(c)) && (c < '0' || c > '9')
	})
}

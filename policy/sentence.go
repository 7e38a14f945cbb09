package policy

import (
	"slices"
	"strings"

	"github.com/egressd/egressd/credbroker"
)

// Sentence says in one line what an entry does: which hosts get what, from
// where, and what the sandbox sees of it. It is printable.
func Sentence(x credbroker.Entry) string {
	inside := "the sandbox sees nothing of it"
	// GH_HOST holds a name, and a key that is written out has a session token
	// only where one is named too.
	if names := slices.DeleteFunc(InsideVariables(x), func(n string) bool {
		return n == "GH_HOST" || n == "AWS_SESSION_TOKEN" && x.AccessKeyID != "" && x.SessionToken == nil
	}); len(names) > 0 {
		inside = "the sandbox sees a placeholder in " + strings.Join(names, ", ")
	}
	if x.Canary {
		return printable(x.ID + ": a canary, bound to nothing: " + inside + ", and its use raises the alarm")
	}
	var hosts []string
	for _, t := range x.Targets {
		hosts = append(hosts, t.Text)
	}
	to, gets := strings.Join(hosts, ", "), " gets "
	if len(hosts) > 1 {
		gets = " get "
	}
	if x.Type == credbroker.DatabricksCLI {
		gets = " get "
		to, inside = "the workspaces of its profiles", "the sandbox sees a .databrickscfg with placeholders"
	}
	return printable(x.ID + ": " + to + gets + carried(x) + ", from " + sourceText(x) + "; " + attached(x) + "; " + inside)
}

// carried is what travels, by type.
func carried(x credbroker.Entry) string {
	switch x.Type {
	case credbroker.HTTPSBasic, credbroker.GitHTTPS:
		return "Authorization: Basic with the user " + x.Username
	case credbroker.GHBasic:
		return "the login of git and gh"
	case credbroker.GitHubApp:
		return "a token of the GitHub app " + x.AppID + ", installation " + x.InstallationID
	case credbroker.HTTPSHeader:
		return "the field " + x.Header
	case credbroker.HTTPSQuery:
		return "the query parameter " + x.Param
	case credbroker.AWSSigV4:
		return "requests signed by AWS Signature Version 4"
	case credbroker.OAuth2:
		return "Authorization: Bearer with a token of " + x.TokenURL
	}
	return "Authorization: Bearer"
}

// attached says when the secret goes on a request.
func attached(x credbroker.Entry) string {
	when := "attached where a request has none"
	switch {
	case x.Type == credbroker.AWSSigV4:
		when = "in place of the placeholder's signature"
	case x.Inject == "placeholder":
		when = "only in place of the placeholder"
	}
	switch x.Own {
	case "refuse":
		when += ", one of the client's own is refused"
	case "replace":
		when += ", one of the client's own is replaced"
	}
	return when
}

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
	} else if x.Inject == "placeholder" && x.Type != credbroker.DatabricksCLI {
		inside = "no variable holds that, so it is never used: name one with env"
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
	return printable(x.ID + ": " + to + gets + carried(x) + sourceText(x) + "; " + attached(x) + "; " + inside)
}

// carried is what travels, by type, up to where the secret comes from.
func carried(x credbroker.Entry) string {
	switch x.Type {
	case credbroker.HTTPSBasic, credbroker.GitHTTPS:
		return "Authorization: Basic with the user " + x.Username + ", from "
	case credbroker.GHBasic:
		return "the login of git and gh, from "
	case credbroker.GitHubApp:
		return "a token of the GitHub app " + x.AppID + ", installation " + x.InstallationID + ", had with the key in "
	case credbroker.HTTPSHeader:
		return "the field " + x.Header + ", from "
	case credbroker.HTTPSQuery:
		return "the query parameter " + x.Param + ", from "
	case credbroker.AWSSigV4:
		return "signatures of AWS (version 4), made with "
	case credbroker.OAuth2:
		return "Authorization: Bearer with a token of " + x.TokenURL + ", had with "
	}
	return "Authorization: Bearer, from "
}

// attached says when the secret goes on a request.
func attached(x credbroker.Entry) string {
	when := "attached where a request has none"
	switch {
	case x.Type == credbroker.AWSSigV4:
		when = "in place of those made with the placeholder"
		if x.Issue {
			when += ", for calls that answer with a key too"
		}
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

package credbroker

import (
	"errors"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/source"
)

// printed is what prints as the JSON of a credential_process.
func printed(text string) *Source { return &Source{Command: []string{"printf", "%s", text}} }

// The variables of a session stand inside only where the key has one: a client
// that signs with a token which means nothing is refused by AWS.
func TestAWSVariables(t *testing.T) {
	json := `{"Version":1,"AccessKeyId":"` + awsID + `","SecretAccessKey":"` + awsSecret + `"`
	for _, c := range []struct {
		name   string
		entry  Entry
		tokens int
	}{
		{"an id and a secret", Entry{AccessKeyID: awsID, Source: &Source{Env: "SK"}}, 0},
		{"with a session token", Entry{AccessKeyID: awsID, Source: &Source{Env: "SK"}, SessionToken: &Source{Env: "ST"}}, 1},
		{"a credential_process", Entry{Source: printed(json + "}")}, 0},
		{"one with an empty token", Entry{Source: printed(json + `,"SessionToken":""}`)}, 0},
		{"one with a token", Entry{Source: printed(json + `,"SessionToken":"` + awsToken + `"}`)}, 1},
	} {
		c.entry.ID, c.entry.Type, c.entry.Targets = "aws", AWSSigV4, targets("s3.test")
		b, err := New(t.Context(), Config{Entries: []Entry{c.entry}, Sources: awsSources()})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		env := strings.Join(b.Inside().Env, " ")
		if n := strings.Count(env, "AWS_SESSION_TOKEN=oa_cred_"); n != c.tokens || strings.Count(env, "oa_cred_") != 2+c.tokens {
			t.Errorf("%s: %s", c.name, env)
		}
	}
}

// A key that nothing can be signed with stops the start, however it is written.
func TestAWSKeyForm(t *testing.T) {
	for _, e := range []Entry{
		{AccessKeyID: "AKIA/MADEUP", Source: &Source{Env: "SK"}},
		{AccessKeyID: awsID, Source: &Source{Env: "SPACE"}},
		{AccessKeyID: awsID, Source: &Source{Env: "SK"}, SessionToken: &Source{Env: "SPACE"}},
		{Source: printed(`{"Version":1,"AccessKeyId":"a b","SecretAccessKey":"` + awsSecret + `"}`)},
		{Source: printed("not JSON " + awsSecret)},
	} {
		e.ID, e.Type, e.Targets = "aws", AWSSigV4, targets("s3.test")
		_, err := New(t.Context(), Config{Entries: []Entry{e}, Sources: awsSources()})
		var start *StartError
		if !errors.As(err, &start) || start.Entry != "aws" || strings.Contains(err.Error(), "madeUp") || !strings.Contains(err.Error(), "reading the key: ") {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

func awsSources() source.Config {
	const path = "/usr/bin:/bin"
	cfg := newSources(map[string]string{"SK": awsSecret, "ST": awsToken, "SPACE": "madeUp with spaces"})
	cfg.Env, cfg.LookPath = source.Environment(nil, path), source.Finder(path, nil)
	return cfg
}

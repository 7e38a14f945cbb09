package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressd/egressd/policy"
	"github.com/egressd/egressd/rules"
)

func explainCommand() *cobra.Command {
	var flags policyFlags
	var asJSON bool
	var batch string
	cmd := &cobra.Command{
		Use:   "explain METHOD URL",
		Short: "say what the rules make of a request, and why",
		Long: `Say what the rules make of a request, and why. The rules alone answer: no name
is resolved and the address guard is not asked. URL is taken as it stands; for
CONNECT it is HOST:PORT.

With --batch every line of a file is a request, {"id","method","url"} or
{"id","method","scheme","host","port","path"}, with "rules" to judge it by other
rules than the policy's and "now" for another time; each is answered with a
line {"id","verdict","reason","rule","hint"}.

Exit status: 0 allowed, 1 denied, 2 the question could not be answered.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case batch == "" && len(args) != 2:
				return usageError{errors.New("explain takes a METHOD and a URL, or --batch FILE")}
			case batch != "" && len(args) != 0:
				return usageError{errors.New("explain --batch takes no further argument")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			var err error
			if batch != "" {
				err = explainBatch(out, flags, batch)
			} else {
				err = explainOne(out, flags, args[0], args[1], asJSON)
			}
			var code exitCode
			if err != nil && !errors.As(err, &code) {
				return failCode{2, err}
			}
			return err
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&batch, "batch", "", "judge every line of this `FILE` of JSON Lines (- for standard input)")
	return cmd
}

// policyOf loads the policy that flags lead to, for questions about it.
func policyOf(flags policyFlags) (*policy.Policy, error) {
	src, err := newSource(flags)
	if err != nil {
		return nil, err
	}
	p, problems, err := src.load(false)
	if err != nil {
		return nil, err
	}
	if err := whole(p, problems); err != nil {
		return nil, err
	}
	return p, nil
}

func explainOne(out io.Writer, flags policyFlags, method, url string, asJSON bool) error {
	p, err := policyOf(flags)
	if err != nil {
		return err
	}
	req, spelled, err := rawRequest(method, url)
	if err != nil {
		return err
	}
	req.At = time.Now()
	e := rules.Explanation{Decision: malformed, Differs: malformedWhy(method)}
	if spelled {
		e = rules.New(p.Rules).Explain(req)
	}
	credential, plain := "", ""
	if e.Verdict == rules.Allow {
		credential, plain = attached(p, req), inPlain(p, req)
	}
	if asJSON {
		err = json.NewEncoder(out).Encode(explanationJSON(e, credential))
	} else {
		err = printExplanation(out, e, credential, plain)
	}
	if err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	if e.Verdict != rules.Allow {
		return exitCode(1)
	}
	return nil
}

// malformed is the decision about a URL whose authority cannot be read: the
// proxy answers it 400.
var malformed = rules.Decision{Verdict: rules.Deny, Reason: "bad_request", Index: -1, Limit: -1}

func malformedWhy(method string) string {
	if method == "CONNECT" {
		return "for CONNECT the URL is HOST:PORT, the port from 1 to 65535"
	}
	return "no request could have this scheme, host and port"
}

// rawRequest takes a URL apart without cleaning anything: the authority ends
// at the first "/", "?" or "#", and no path is "/". spelled is false where the
// authority or the scheme is none that a request could have.
func rawRequest(method, url string) (req rules.Request, spelled bool, err error) {
	req = rules.Request{Method: method, Length: -1}
	authority := url
	if method != "CONNECT" {
		scheme, rest, ok := strings.Cut(url, "://")
		if !ok {
			return req, false, fmt.Errorf("the URL %q has no scheme: write https://%s", url, url)
		}
		req.Scheme = strings.ToLower(scheme)
		if req.Scheme != "http" && req.Scheme != "https" {
			return req, false, nil
		}
		i := strings.IndexAny(rest, "/?#")
		if i < 0 {
			i = len(rest)
		}
		authority, req.Target = rest[:i], rest[i:]
		if !strings.HasPrefix(req.Target, "/") {
			req.Target = "/" + req.Target
		}
		req.Port = map[string]int{"http": 80, "https": 443}[req.Scheme]
	}
	req.Host = authority
	if host, port, ok := splitPort(authority); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return req, false, nil
		}
		req.Host, req.Port = host, int(n)
	} else if method == "CONNECT" {
		return req, false, nil
	}
	// The brackets of an IPv6 address are the URL's, not the address's.
	if strings.HasPrefix(req.Host, "[") && strings.HasSuffix(req.Host, "]") && strings.Contains(req.Host, ":") {
		req.Host = req.Host[1 : len(req.Host)-1]
	}
	return req, true, nil
}

// splitPort takes the port off an authority, where one is written.
func splitPort(authority string) (host, port string, ok bool) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.LastIndexByte(authority, ']') > i {
		return authority, "", false
	}
	return authority[:i], authority[i+1:], true
}

type ruleJSON struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
}

func ruleOf(d rules.Decision) *ruleJSON {
	if d.Rule == nil {
		return nil
	}
	return &ruleJSON{d.Index, d.Rule.String()}
}

func explanationJSON(e rules.Explanation, credential string) any {
	type nearest struct {
		Text    string `json:"text"`
		Differs string `json:"differs"`
	}
	answer := struct {
		Verdict    string    `json:"verdict"`
		Reason     string    `json:"reason"`
		Rule       *ruleJSON `json:"rule"`
		Note       string    `json:"note,omitempty"`
		Hint       string    `json:"hint"`
		Why        string    `json:"why,omitempty"`
		Readings   []string  `json:"readings"`
		Nearest    *nearest  `json:"nearest"`
		Credential *string   `json:"credential"`
	}{Verdict: e.Verdict, Reason: e.Reason, Rule: ruleOf(e.Decision), Note: e.Note, Hint: e.Hint, Readings: e.Readings}
	if answer.Readings == nil {
		answer.Readings = []string{}
	}
	if credential != "" {
		answer.Credential = &credential
	}
	if e.Nearest != nil {
		answer.Nearest = &nearest{e.Nearest.String(), e.Differs}
	} else {
		answer.Why = e.Differs
	}
	return answer
}

func printExplanation(out io.Writer, e rules.Explanation, credential, plain string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Verdict, e.Reason)
	if e.Rule != nil {
		fmt.Fprintf(&b, "  rule %d: %s\n", e.Index, e.Rule)
	}
	if e.Note != "" {
		fmt.Fprintf(&b, "  note: %q\n", e.Note)
	}
	if e.Nearest != nil {
		fmt.Fprintf(&b, "  nearest rule: %s (%s)\n", e.Nearest, e.Differs)
	} else if e.Differs != "" {
		fmt.Fprintf(&b, "  why: %s\n", e.Differs)
	}
	if _, err := rules.Parse(e.Hint); err == nil {
		fmt.Fprintf(&b, "  would be allowed by: %s\n", e.Hint)
	} else if e.Hint != "" && e.Rule == nil {
		fmt.Fprintf(&b, "  hint: %s\n", e.Hint)
	}
	if credential != "" {
		fmt.Fprintf(&b, "  credential: %s\n", plainText(credential))
	}
	if plain != "" {
		fmt.Fprintf(&b, "  but refused: credential_plaintext: %s goes by https only\n", plainText(plain))
	}
	for _, r := range e.Readings {
		fmt.Fprintf(&b, "  read as: %q\n", r)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// batchLine is a request of --batch. A path is raw, as on the wire.
type batchLine struct {
	ID     string              `json:"id"`
	Rules  *[]any              `json:"rules"`
	Method string              `json:"method"`
	URL    *string             `json:"url"`
	Scheme string              `json:"scheme"`
	Host   string              `json:"host"`
	Port   int                 `json:"port"`
	Path   string              `json:"path"`
	Header map[string][]string `json:"headers"`
	Now    *time.Time          `json:"now"`
}

func explainBatch(out io.Writer, flags policyFlags, file string) error {
	in := io.Reader(os.Stdin)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("opening the batch: %w", err)
		}
		defer f.Close()
		in = f
	}
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	var own *rules.Set
	var unanswered []error
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 16<<20)
	for n := 1; scanner.Scan(); n++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		answer, err := explainLine(scanner.Bytes(), func() (*rules.Set, error) {
			if own == nil {
				p, err := policyOf(flags)
				if err != nil {
					return nil, err
				}
				own = rules.New(p.Rules)
			}
			return own, nil
		})
		if err != nil {
			unanswered = append(unanswered, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if err := enc.Encode(answer); err != nil {
			return fmt.Errorf("printing an answer: %w", err)
		}
	}
	if err := scanner.Err(); err != nil {
		unanswered = append(unanswered, fmt.Errorf("reading the batch: %w", err))
	}
	return errors.Join(w.Flush(), errors.Join(unanswered...))
}

type batchAnswer struct {
	ID      string    `json:"id"`
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason"`
	Rule    *ruleJSON `json:"rule"`
	Hint    string    `json:"hint"`
}

func explainLine(line []byte, own func() (*rules.Set, error)) (batchAnswer, error) {
	var l batchLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return batchAnswer{}, fmt.Errorf("reading the request: %w", err)
	}
	req := rules.Request{Method: l.Method, Scheme: l.Scheme, Host: l.Host, Port: l.Port, Target: l.Path, Header: l.Header, Length: -1}
	if l.URL != nil {
		var spelled bool
		var err error
		if req, spelled, err = rawRequest(l.Method, *l.URL); err != nil {
			return batchAnswer{}, err
		} else if !spelled {
			return batchAnswer{l.ID, malformed.Verdict, malformed.Reason, nil, ""}, nil
		}
		req.Header = l.Header
	}
	req.At = time.Now()
	if l.Now != nil {
		req.At = *l.Now
	}
	var set *rules.Set
	if l.Rules != nil {
		list, err := parseRules(*l.Rules)
		if err != nil {
			return batchAnswer{}, err
		}
		set = rules.New(list)
	} else {
		var err error
		if set, err = own(); err != nil {
			return batchAnswer{}, err
		}
	}
	d := set.Decide(req)
	return batchAnswer{l.ID, d.Verdict, d.Reason, ruleOf(d), d.Hint}, nil
}

// parseRules reads a bare set: each a text or a mapping.
func parseRules(items []any) ([]rules.Rule, error) {
	var list []rules.Rule
	for i, item := range items {
		var r rules.Rule
		var err error
		switch v := item.(type) {
		case string:
			r, err = rules.Parse(v)
		case map[string]any:
			r, err = rules.ParseMapping(v)
		default:
			err = errors.New("neither a text nor a mapping")
		}
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i, err)
		}
		list = append(list, r)
	}
	return list, nil
}

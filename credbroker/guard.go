package credbroker

import (
	"net/http"
	"slices"
	"strings"
)

// outgoing is one request on its way out: where it goes, and what was found in
// its head.
type outgoing struct {
	*Broker
	place
	r    *http.Request
	note func(kind, verdict, credential string)
	look *finder
	host string
	// echoes says that the method may be answered with what was sent, and so
	// never carries a secret.
	echoes bool

	leaks  []string // ids of the entries whose placeholders are out of place, "" for nobody's
	secret bool     // one of them is a real secret
	fields []field  // those that hold placeholders where they belong
	query  []pair   // nil where the query stays as it is
	swaps  *credential
	aws    awsRequest
	// foreignNames are the fields, folded, that hold credentials of the client's
	// own which are not to pass.
	foreignNames []string
	// foreignFields are names in forms and objects of a body, of which the same
	// is true.
	foreignFields []string
	// foreignAWSForm says that the form of a POST may name no key of AWS.
	foreignAWSForm bool
}

// inspect looks for placeholders and secrets everywhere in the head, sorts
// those that belong where they stand from leaks, and says which it was.
func (x *outgoing) inspect() {
	x.recognise()
	for key, lines := range x.r.Header {
		if !x.look.clean(key) {
			x.leaked(key, true)
		}
		for i, line := range lines {
			if !x.look.clean(line) || couldBeBasic(line) || key == "Authorization" {
				x.line(key, i, line)
			}
		}
	}
	for key := range x.r.Trailer { // those announced
		if !x.look.clean(key) {
			x.leaked(key, true)
		}
	}
	if !x.look.clean(x.r.Method) {
		x.leaked(x.r.Method, false)
	}
	x.target()
	if !x.look.clean(x.host) {
		x.leaked(x.host, true)
	}
	if x.r.Host != x.r.URL.Host && !x.look.clean(x.r.Host) {
		x.leaked(x.r.Host, true)
	}
}

func couldBeBasic(line string) bool {
	return len(line) > 8 && line[0]|0x20 == 'b' && line[1]|0x20 == 'a'
}

// leaked notes every find in a text where nothing may stand.
func (x *outgoing) leaked(text string, fold bool) {
	x.look.look(text, fold, func(f find) bool {
		x.leak(f)
		return true
	})
}

func (x *outgoing) leak(f find) {
	x.secret = x.secret || f.secret
	if !slices.Contains(x.leaks, f.id) {
		x.leaks = append(x.leaks, f.id)
	}
}

// line looks through one line of a field. A login of Basic is looked through as
// it is read by servers: those that take it strictly, those that skip what is
// no letter, and those that decode its halves once more (RFC 6749 section
// 2.3.1). A placeholder counts as standing there only for the first.
func (x *outgoing) line(key string, i int, line string) {
	takes := func(p *placeholder) bool { return x.takesHeader(p, key) }
	if at := x.sort(line, takes); len(at) > 0 {
		x.keep(key, i, fieldValue{text: line, placeholders: at})
		takes = nil
	}
	parts := []string{line}
	if key == "Authorization" {
		parts = strings.Split(line, ",") // several logins, of which a server picks one
	}
	for n, part := range parts {
		_, token, ok := basicToken(part)
		if !ok {
			continue
		}
		login, strict := "", false
		if len(parts) == 1 {
			login, strict = decodeBasic(token)
		}
		if loose := decodeLoosely(token); !strict || loose != login {
			x.leaked(loose, false)
		}
		if !strict {
			continue
		}
		at := x.sort(login, takes)
		if len(at) > 0 && n == 0 {
			x.keep(key, i, fieldValue{text: line, placeholders: at, basic: true})
		}
		for _, p := range at {
			login = strings.ReplaceAll(login, p.text, "!")
		}
		x.rounds(login)
	}
}

// sort notes every find in a text as a leak but for the placeholders that takes
// lets stand, which it gives, each once.
func (x *outgoing) sort(text string, takes func(*placeholder) bool) (stands []*placeholder) {
	x.look.look(text, false, func(f find) bool {
		switch {
		case f.placeholder == nil || takes == nil || !takes(f.placeholder):
			x.leak(f)
		case !slices.Contains(stands, f.placeholder):
			stands = append(stands, f.placeholder)
		}
		return true
	})
	return stands
}

// rounds notes as leaks what shows only after up to three rounds of
// percent-decoding.
func (x *outgoing) rounds(text string) {
	for range 3 {
		next := decodeOnce(text)
		if next == text {
			return
		}
		if text = next; !x.look.clean(text) {
			x.leaked(text, false)
		}
	}
}

// keep notes that placeholders stand in a line of a field where they belong.
func (x *outgoing) keep(key string, i int, v fieldValue) {
	f := x.field(key)
	if f == nil {
		lines := x.r.Header[key]
		x.fields = append(x.fields, field{key: key, values: make([]fieldValue, len(lines))})
		f = &x.fields[len(x.fields)-1]
		for n, line := range lines {
			f.values[n].text = line
		}
	}
	f.values[i] = v
}

func (x *outgoing) field(key string) *field {
	if i := slices.IndexFunc(x.fields, func(f field) bool { return f.key == key }); i >= 0 {
		return &x.fields[i]
	}
	return nil
}

// bound is the credential that a placeholder stands for in this request, nil
// where it is not bound to where the request goes or does not belong where it
// stands.
func (x *outgoing) bound(p *placeholder, belongs func(*credential) bool) bool {
	if x.echoes {
		return false
	}
	for b := range x.covered {
		if b.cred.owns(p) && belongs(b.cred) {
			x.swaps = b.cred
			return true
		}
	}
	return false
}

func (x *outgoing) takesHeader(p *placeholder, key string) bool {
	return x.bound(p, func(c *credential) bool {
		if c.entry.Type == AWSSigV4 {
			return x.takesAWS(c, p, key, false)
		}
		return key == c.header
	})
}

func (x *outgoing) takesParam(p *placeholder, name string) bool {
	return x.bound(p, func(c *credential) bool {
		if c.entry.Type == AWSSigV4 {
			return x.takesAWS(c, p, name, true)
		}
		return c.entry.Type == HTTPSQuery && name == c.entry.Param
	})
}

// target looks through path and query, as sent and after each of three rounds
// of decoding. A placeholder belongs in the value of a parameter, where it may
// be escaped once; the rest is looked through without it.
func (x *outgoing) target() {
	u := x.r.URL
	if !x.look.clean(x.path) {
		x.leaked(x.path, false)
	}
	x.rounds(x.path)
	query := u.RawQuery
	if query == "" {
		return
	}
	if escaped := strings.Contains(query, "%"); !escaped && x.look.clean(query) {
		return
	}
	if x.takesParams() {
		if list := pairs(query); x.mark(list) {
			x.query = list
			query = joinPairs(list, func(*placeholder) string { return "!" })
		}
	}
	x.leaked(query, false)
	x.rounds(query)
}

// takesParams says that a placeholder may stand in a parameter at all.
func (x *outgoing) takesParams() bool {
	if x.echoes {
		return false
	}
	for b := range x.covered {
		if b.cred.entry.Type == HTTPSQuery || b.cred.entry.Type == AWSSigV4 {
			return true
		}
	}
	return false
}

// mark notes the placeholders that belong in the parameters where they stand,
// and says whether there are any.
func (x *outgoing) mark(list []pair) bool {
	any := false
	for i := range list {
		p := &list[i]
		value := p.value()
		if value == "" {
			continue
		}
		d, _ := asSent(value).next(true)
		offset := len(p.text) - len(value)
		x.look.look(d.text, false, func(f find) bool {
			if f.placeholder != nil && x.takesParam(f.placeholder, p.name) {
				p.at = append(p.at, pairPlace{offset + d.start[f.start], offset + d.start[f.end], f.placeholder})
				any = true
			}
			return true
		})
	}
	return any
}

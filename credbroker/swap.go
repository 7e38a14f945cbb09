package credbroker

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// field is a header field of a request that holds placeholders, as the client
// sent it. Its secrets are put in on every way out, so that a request that goes
// out again has the new one.
type field struct {
	key    string
	values []fieldValue
}

// fieldValue is one line of a field. The placeholders are in it as they stand,
// or with basic in the login that it encodes.
type fieldValue struct {
	text         string
	placeholders []*placeholder
	basic        bool
}

// swapped is the line with secrets in the place of its placeholders. What
// stands around them is as the client sent it: scheme, other half of a login,
// other cookies.
func (v *fieldValue) swapped(secret func(*placeholder) string) string {
	text := v.text
	if v.basic {
		prefix, token, _ := basicToken(v.text)
		login, _ := decodeBasic(token)
		return prefix + base64.StdEncoding.EncodeToString([]byte(v.swap(login, secret)))
	}
	return v.swap(text, secret)
}

func (v *fieldValue) swap(text string, secret func(*placeholder) string) string {
	for _, p := range v.placeholders {
		text = strings.ReplaceAll(text, p.text, secret(p))
	}
	return text
}

// write puts the field into h. The lines are new ones, since those of h may be
// shared with the client's request.
func (f *field) write(h http.Header, secret func(*placeholder) string) {
	lines := make([]string, len(f.values))
	for i := range f.values {
		lines[i] = f.values[i].swapped(secret)
	}
	if len(lines) == 0 {
		delete(h, f.key)
		return
	}
	h[f.key] = lines
}

// pair is one parameter of a query as sent, and the placeholders that may stand
// in its value.
type pair struct {
	text string // name=value
	name string // decoded
	at   []pairPlace
}

// pairPlace is where in the text of a pair a placeholder stands, as sent: it
// may be escaped.
type pairPlace struct {
	start, end  int
	placeholder *placeholder
}

// pairs are the parameters of a query (WHATWG URL, application/x-www-form-urlencoded).
func pairs(query string) []pair {
	if query == "" {
		return nil
	}
	var out []pair
	for text := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(text, "=")
		out = append(out, pair{text: text, name: unescapeForm(name)})
	}
	return out
}

func unescapeForm(s string) string {
	d, _ := asSent(s).next(true)
	return d.text
}

// written is the pair with other texts in the place of its placeholders.
func (p *pair) written(other func(*placeholder) string) string {
	if len(p.at) == 0 {
		return p.text
	}
	var b strings.Builder
	from := 0
	for _, place := range p.at {
		b.WriteString(p.text[from:place.start])
		b.WriteString(other(place.placeholder))
		from = place.end
	}
	b.WriteString(p.text[from:])
	return b.String()
}

// value is what stands behind the name.
func (p *pair) value() string {
	_, v, _ := strings.Cut(p.text, "=")
	return v
}

func joinPairs(list []pair, other func(*placeholder) string) string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].written(other)
	}
	return strings.Join(texts, "&")
}

// escapeQuery writes a value as a query has it; a space is %20, which every
// server reads.
func escapeQuery(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

package credbroker

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// ownFields looks in a body for a credential of the client's own, where an entry
// names fields in which the service takes one: names of a form, of the parts of
// a multipart body, of the outermost object of JSON. A body is not rewritten, so
// one that has such a field is refused, whatever Own says. All of the body is
// looked through, since it is the service that says where it stops.
type ownFields struct {
	names     []string
	form      *formNames
	multipart *partNames
	object    *objectNames
}

// longestName is how much of a name, or of a line in the head of a part, is
// kept, in bytes: longer ones are none of ours.
const longestName = 4 << 10

// formsOfAWS are the names by which a form brings a key: signature version 2, and
// the POST of S3 (in a policy that somebody signed before).
var formsOfAWS = []string{"AWSAccessKeyId", "X-Amz-Credential"}

// ownFields looks for what the head said is not to pass. unread says that the
// body may have it and cannot be read.
func (x *outgoing) ownFields() (f *ownFields, unread bool) {
	if len(x.foreignFields) > 0 {
		return newOwnFields(x.foreignFields, x.r.Header)
	}
	if !x.foreignAWSForm {
		return nil, false
	}
	f, coded := newOwnFields(formsOfAWS, x.r.Header)
	if f == nil || coded { // metrics are sent that way, and S3 reads no such form
		return nil, false
	}
	if f.object = nil; f.form == nil && f.multipart == nil {
		return nil, false
	}
	return f, false
}

// newOwnFields is nil where there is nothing to look for. coded says that it
// cannot be read.
func newOwnFields(names []string, h http.Header) (f *ownFields, isCoded bool) {
	if len(names) == 0 {
		return nil, false
	}
	f = &ownFields{names: names}
	types := mediaTypes(h)
	any := len(types) != 1 // none, or several: the service picks one
	for _, media := range types {
		switch {
		case strings.HasPrefix(media, "multipart/"):
			f.multipart = &partNames{}
		case strings.HasSuffix(media, "json") || strings.HasSuffix(media, "jsonrequest"):
			f.object = &objectNames{}
		case media == "application/x-www-form-urlencoded":
			f.form = &formNames{}
		}
	}
	if any {
		f.form, f.multipart, f.object = &formNames{}, &partNames{}, &objectNames{}
	}
	if f.form == nil && f.multipart == nil && f.object == nil {
		return nil, false
	}
	return f, coded(h)
}

// feed looks through the next bytes, the last ones if end. An error is a field
// that was found.
func (f *ownFields) feed(p []byte, end bool) error {
	found := f.form != nil && f.form.feed(p, end, f.names) ||
		f.multipart != nil && f.multipart.feed(p, f.names) ||
		f.object != nil && f.object.feed(p, f.names)
	if found {
		return errForeignBody
	}
	return nil
}

// formNames reads the names of a form.
type formNames struct {
	name    []byte
	inValue bool
}

func (s *formNames) feed(p []byte, end bool, names []string) bool {
	for _, c := range p {
		switch {
		case c == '&' || c == ';':
			s.name, s.inValue = s.name[:0], false
		case s.inValue:
		case c == '=':
			if isAnyOf(string(s.name), names) {
				return true
			}
			s.inValue = true
		case len(s.name) < longestName:
			s.name = append(s.name, c)
		}
	}
	return false
}

// partNames reads the heads of the parts of a multipart body. A line that begins
// with "--" begins one: which boundary is meant is not asked.
type partNames struct {
	line   []byte
	head   []byte
	inHead bool
}

func (s *partNames) feed(p []byte, names []string) bool {
	for _, c := range p {
		if c != '\n' {
			if len(s.line) < longestName && c != '\r' {
				s.line = append(s.line, c)
			}
			continue
		}
		switch {
		case len(s.line) >= 2 && s.line[0] == '-' && s.line[1] == '-':
			s.head, s.inHead = s.head[:0], true
		case s.inHead && len(s.line) == 0:
			s.inHead = false
		case s.inHead && len(s.head) < 4*longestName:
			if s.head = append(append(s.head, s.line...), ';'); partNamesAny(string(s.head), names) {
				return true
			}
		}
		s.line = s.line[:0]
	}
	return false
}

// partNamesAny says whether the head of a part names one of those fields, quoted,
// escaped, folded or not. A name in the coding of RFC 8187 is taken for one: no
// form has it (RFC 7578 section 4.2).
func partNamesAny(head string, names []string) bool {
	clean := strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "", `\`, "").Replace(strings.ToLower(head))
	for {
		i := strings.Index(clean, "name")
		if i < 0 {
			return false
		}
		file := strings.HasSuffix(clean[:i], "file")
		clean = clean[i+len("name"):]
		if file {
			continue
		}
		if strings.HasPrefix(clean, "*") {
			return true
		}
		if value, ok := strings.CutPrefix(clean, "="); ok {
			value, _, _ = strings.Cut(value, ";")
			if isAnyOf(value, names) {
				return true
			}
		}
	}
}

// objectNames reads the names of the outermost object of JSON, which need not be
// well formed.
type objectNames struct {
	depth    int
	inText   bool
	escaped  bool
	text     []byte
	complete bool // text is a whole one, and may turn out to be a name
}

func (s *objectNames) feed(p []byte, names []string) bool {
	for _, c := range p {
		switch {
		case s.inText:
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				s.inText, s.complete = false, true
				continue
			}
			if s.depth == 1 && len(s.text) < longestName {
				s.text = append(s.text, c)
			}
		case c == '"':
			s.inText, s.complete, s.text = true, false, s.text[:0]
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			s.depth--
		case c == ':':
			if s.depth == 1 && s.complete && isAnyOf(unquoted(s.text), names) {
				return true
			}
		}
		if c > ' ' {
			s.complete = false
		}
	}
	return false
}

// unquoted is a text of JSON without its escapes.
func unquoted(text []byte) string {
	var plain string
	if json.Unmarshal(slices.Concat([]byte{'"'}, text, []byte{'"'}), &plain) != nil {
		return string(text)
	}
	return plain
}

package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// text gives a value's text. A plain number, switch or null is no text: `30`
// may have been meant as seconds and `1.2` may have lost a nought. A plain
// moment (2027-01-31T00:00:00Z) is text, for only YAML 1.1 thinks otherwise.
func (d *doc) text(v value) (string, bool) {
	if !isText(v) {
		d.mistyped(v, "text")
		return "", false
	}
	return v.node.Value, true
}

func isText(v value) bool {
	return v.node.Kind == scalarKind && (v.node.Style != 0 || v.node.Tag == "!!str" || v.node.Tag == "!!timestamp" || v.node.Tag == "!!merge")
}

// filled is text that is not empty.
func (m *mapping) filled(name string) string {
	v, ok := m.get(name)
	if !ok {
		return ""
	}
	return m.d.filled(v)
}

func (d *doc) filled(v value) string {
	s, ok := d.text(v)
	if ok && s == "" {
		d.fail(v.spot(), KindValue, "an empty text")
	}
	if strings.ContainsRune(s, 0) {
		d.fail(v.spot(), KindValue, "a NUL in a text")
		return ""
	}
	return s
}

// word puts one of some words into dst.
func (m *mapping) word(name string, dst *string, words ...string) {
	v, ok := m.get(name)
	if !ok {
		return
	}
	s, ok := m.d.text(v)
	if !ok {
		return
	}
	if !slices.Contains(words, s) {
		m.d.fail(v.spot(), KindValue, "%s is none of %s", quoted(s), strings.Join(words, ", "))
		return
	}
	*dst = s
}

// flag puts true or false into dst. yes, no, on and off are words.
func (m *mapping) flag(name string, dst *bool) {
	v, ok := m.get(name)
	if !ok {
		return
	}
	if b, ok := m.d.boolean(v); ok {
		*dst = b
	} else {
		m.d.mistyped(v, "true or false")
	}
}

func (d *doc) boolean(v value) (b, ok bool) {
	if v.node.Kind != scalarKind || v.node.Style != 0 || v.node.Tag != "!!bool" {
		return false, false
	}
	return strings.EqualFold(v.node.Value, "true"), true
}

var digits = regexp.MustCompile(`^-?[0-9]+$`)

// integer reads a plain whole number.
func (d *doc) integer(v value) (n int64, ok bool) {
	whole := v.node.Kind == scalarKind && v.node.Style == 0 &&
		(v.node.Tag == "!!int" || v.node.Tag == "!!float" && digits.MatchString(v.node.Value))
	if !whole {
		d.mistyped(v, "a whole number")
		return 0, false
	}
	n, err := strconv.ParseInt(v.node.Value, 10, 64)
	if err != nil || len(v.node.Value) > 1 && (v.node.Value[0] == '0' || v.node.Value[0] == '+') {
		d.fail(v.spot(), KindValue, "%s is no whole number written plainly", quoted(v.node.Value))
		return 0, false
	}
	return n, true
}

// number puts a whole number of at least low into dst.
func (m *mapping) number(name string, dst *int, low int64) {
	v, ok := m.get(name)
	if !ok {
		return
	}
	n, ok := m.d.integer(v)
	if !ok {
		return
	}
	if n < low || n > 1<<31-1 {
		m.d.fail(v.spot(), KindValue, "%d is not between %d and %d", n, low, 1<<31-1)
		return
	}
	*dst = int(n)
}

// duration puts a time above nought into dst: `30s`, `1h30m`.
func (m *mapping) duration(name string, dst *time.Duration) {
	v, ok := m.get(name)
	if !ok {
		return
	}
	s, ok := m.d.text(v)
	if !ok {
		return
	}
	t, err := time.ParseDuration(s)
	switch {
	case err != nil || strings.HasPrefix(s, "+"):
		m.d.fail(v.spot(), KindValue, "%s is no time: write it as 30s, 10m or 1h30m", quoted(s))
	case t <= 0:
		m.d.fail(v.spot(), KindValue, "%s is not above nought", quoted(s))
	default:
		*dst = t
	}
}

var units = map[string]uint{"": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}

// size puts a number of bytes above nought into dst: a plain number, or one
// with KiB, MiB, GiB or TiB.
func (m *mapping) size(name string, dst *int64) {
	v, ok := m.get(name)
	if !ok {
		return
	}
	s := v.node.Value
	if !isText(v) {
		n, ok := m.d.integer(v)
		if !ok {
			return
		}
		s = strconv.FormatInt(n, 10)
	}
	n, err := parseSize(s)
	if err != nil {
		m.d.fail(v.spot(), KindValue, "%v", err)
		return
	}
	*dst = n
}

func parseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "KMGTiB")
	shift, known := units[s[len(number):]]
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !known || !digits.MatchString(number) || len(number) > 1 && number[0] == '0' {
		return 0, fmt.Errorf("%s is no size: write bytes, or a number with KiB, MiB, GiB or TiB", quoted(s))
	}
	if n <= 0 {
		return 0, fmt.Errorf("%s is not above nought", quoted(s))
	}
	if n > (1<<63-1)>>shift {
		return 0, fmt.Errorf("%s is too much", quoted(s))
	}
	return n << shift, nil
}

// strings gives the texts of a list with their places, each looked at by
// check, whose text (unless "") is a bad_value.
func (m *mapping) strings(name, of string, check func(string) string) (list []string, at []spot) {
	v, ok := m.get(name)
	if !ok {
		return nil, nil
	}
	return m.d.strings(v, of, check)
}

func (d *doc) strings(v value, of string, check func(string) string) (list []string, at []spot) {
	items, ok := d.list(v, "a list of "+of)
	if !ok {
		return nil, nil
	}
	list = []string{}
	for _, item := range items {
		s, ok := d.text(item)
		if !ok {
			continue
		}
		if why := check(s); why != "" {
			d.fail(item.spot(), KindValue, "%s", why)
			continue
		}
		list, at = append(list, s), append(at, item.spot())
	}
	return list, at
}

// notEmpty is the check of names and paths.
func notEmpty(s string) string {
	switch {
	case s == "":
		return "an empty text"
	case strings.ContainsRune(s, 0):
		return "a NUL in a text"
	}
	return ""
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variableName is the check of names of variables.
func variableName(s string) string {
	if strings.HasSuffix(s, "\n") || !variable.MatchString(s) {
		return fmt.Sprintf("%s is no name of a variable", quoted(s))
	}
	return ""
}

// quoted is a text as it is shown in a problem: on one line, and not long.
func quoted(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.Quote(strings.ToValidUTF8(s, "?"))
}

// nearest is the known word that is at most two letters away, or "".
func nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance, 99 for texts that are far too long.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 99
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

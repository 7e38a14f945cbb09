package rules

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseMapping reads a rule that is written as a mapping with the keys rule,
// note, query, max_request_bytes, rate and until. Values are string, int,
// int64, uint64, float64, bool, time.Time and map[string]any, as decoders of
// YAML and JSON give them. The error is a *ParseError whose Key names the key
// at fault.
func ParseMapping(m map[string]any) (Rule, error) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(mappingKeys, key) {
			e := fault("unknown_key", "a rule has the keys "+strings.Join(mappingKeys, ", "))
			e.Key, e.Text = key, key
			return Rule{}, e
		}
	}
	value, ok := m["rule"]
	if !ok {
		return Rule{}, fault("missing_key", "a mapping names its rule under the key rule")
	}
	text, ok := value.(string)
	if !ok {
		return Rule{}, keyed("rule", fault("wrong_type", "a rule is a string"))
	}
	r, err := Parse(text)
	if err != nil {
		e := err.(*ParseError)
		e.Key = "rule"
		return Rule{}, e
	}
	for _, key := range mappingKeys[1:] {
		value, ok := m[key]
		if !ok {
			continue
		}
		if e := r.refuses(key); e != nil {
			return Rule{}, keyed(key, e)
		}
		if e := r.set(key, value); e != nil {
			return Rule{}, keyed(key, e)
		}
	}
	return r, nil
}

// mappingKeys are the keys of a mapping, in the order they are looked at.
var mappingKeys = []string{"rule", "note", "query", "max_request_bytes", "rate", "until"}

// refuses says which keys this kind of rule does not take.
func (r *Rule) refuses(key string) *ParseError {
	switch {
	case r.Deny && (key == "max_request_bytes" || key == "rate"):
		return fault("conflict", "a deny rule has no limits")
	case r.Tunnel && (key == "max_request_bytes" || key == "query"):
		return fault("conflict", "a tunnel is not looked into")
	}
	return nil
}

// set reads the value of one key.
func (r *Rule) set(key string, value any) *ParseError {
	switch key {
	case "note":
		s, ok := value.(string)
		if !ok {
			return fault("wrong_type", "a note is a string")
		}
		r.Note = s
	case "query":
		return r.setQuery(value)
	case "max_request_bytes":
		return r.setSize(value)
	case "rate":
		s, ok := value.(string)
		if !ok {
			return fault("wrong_type", "a rate is a string such as 60/min")
		}
		return r.setRate(s)
	case "until":
		return r.setUntil(value)
	}
	return nil
}

func keyed(key string, e *ParseError) *ParseError {
	e.Key = key
	return e
}

func (r *Rule) setQuery(value any) *ParseError {
	m, ok := value.(map[string]any)
	if !ok {
		return fault("wrong_type", "a query is a mapping of parameter to pattern")
	}
	if len(m) == 0 {
		return fault("bad_value", "a query names at least one parameter")
	}
	r.Query = make(map[string]string, len(m))
	for name, v := range m {
		s, ok := v.(string)
		switch {
		case !ok:
			e := fault("wrong_type", "the pattern of a parameter is a string")
			e.Text = name
			return e
		case name == "":
			return fault("bad_value", "a parameter has a name")
		case strings.Contains(s, markStar):
			// It would be taken for the mark of a star (pattern.go).
			return fault("bad_value", "the pattern of a parameter holds no byte 0x01")
		}
		r.Query[name] = s
	}
	return nil
}

func (r *Rule) setSize(value any) *ParseError {
	var n int64
	switch v := value.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	case uint64:
		if v > math.MaxInt64 {
			return fault("bad_value", "so large a body there is not")
		}
		n = int64(v)
	case float64:
		if v != math.Trunc(v) || v < 0 || v >= 1<<63 {
			return fault("bad_value", "a size is a whole number of bytes, not below 0")
		}
		n = int64(v)
	case string:
		size, ok := parseSize(v)
		if !ok {
			e := fault("bad_value", "a size is bytes, or a number with KiB, MiB, GiB or TiB")
			e.Text = v
			return e
		}
		n = size
	default:
		return fault("wrong_type", "a size is a number of bytes or a string such as 10MiB")
	}
	if n < 0 {
		return fault("bad_value", "a size is not below 0")
	}
	r.Limited, r.MaxRequestBytes = true, n
	return nil
}

// parseSize reads "2048" or "10MiB".
func parseSize(s string) (int64, bool) {
	digits := strings.TrimRight(s, "KMGTiB")
	shift, ok := map[string]uint{"": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[s[len(digits):]]
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, false
	}
	return n << shift, true
}

// rateUnits are what a rate may be for.
var rateUnits = []struct {
	name string
	per  time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}}

func (r *Rule) setRate(s string) *ParseError {
	count, unit, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(count)
	if err == nil && n > 0 && strings.Trim(count, "0123456789") == "" {
		for _, u := range rateUnits {
			if u.name == unit {
				r.Rate = Rate{Count: n, Per: u.per}
				return nil
			}
		}
	}
	e := fault("bad_value", "a rate is N/s, N/min or N/h with N above 0")
	e.Text = s
	return e
}

func (r *Rule) setUntil(value any) *ParseError {
	switch v := value.(type) {
	case time.Time:
		r.Until = v.UTC()
	case string:
		// UnmarshalText is strict where time.Parse is not (one digit, a comma).
		var t time.Time
		if err := t.UnmarshalText([]byte(v)); err != nil {
			e := fault("bad_value", "an end is a moment with time and zone, such as 2027-01-31T00:00:00Z (RFC 3339)")
			e.Text = v
			return e
		}
		r.Until = t.UTC()
	default:
		return fault("wrong_type", "an end is a string such as 2027-01-31T00:00:00Z (RFC 3339)")
	}
	if r.Until.IsZero() {
		return fault("bad_value", "the year 1 is no end")
	}
	return nil
}

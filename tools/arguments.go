package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxArguments is how many bytes of JSON a call may bring.
const maxArguments = 32 << 20

// argued is an input that is read from JSON: field answers where an argument
// goes, nil for one there is not, and required the names that must be there.
type argued interface {
	input
	field(name string) any
	required() []string
}

func parser(blank func() argued) func(json.RawMessage) (input, error) {
	return func(args json.RawMessage) (input, error) {
		in := blank()
		if err := decode(args, in); err != nil {
			return nil, badCall("reading the arguments: " + err.Error())
		}
		return in, nil
	}
}

// decode reads one object, each name spelled exactly so and once: encoding/json
// alone takes "PATH" for "path" and the last of two, where whoever is asked
// about the call may read the first. A null is an argument left out.
func decode(args []byte, in argued) error {
	if len(args) > maxArguments {
		return fmt.Errorf("%d bytes are too many", len(args))
	}
	if !utf8.Valid(args) {
		return errors.New("not UTF-8")
	}
	if len(bytes.TrimSpace(args)) == 0 || string(args) == "null" {
		args = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	var seen, given []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return errors.New("not JSON")
		}
		name, _ := t.(string)
		to := in.field(name)
		switch {
		case to == nil:
			return fmt.Errorf("there is no argument %q", short(name))
		case slices.Contains(seen, name):
			return fmt.Errorf("%s is there twice", name)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return errors.New("not JSON")
		}
		seen = append(seen, name)
		if string(raw) == "null" {
			continue
		}
		given = append(given, name)
		if err := json.Unmarshal(raw, to); err != nil {
			return fmt.Errorf("%s is of the wrong type", name)
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("not JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the object")
	}
	for _, name := range in.required() {
		if !slices.Contains(given, name) {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

func short(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

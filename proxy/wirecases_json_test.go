package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/egressd/egressd/internal/proxytest"
)

func strictJSON(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// anyOf is a value of a case that may be a list, any member of which will do.
// Numbers are kept as their digits. Nil means: not looked at.
type anyOf []string

func (a *anyOf) UnmarshalJSON(data []byte) error {
	var list []any
	if json.Unmarshal(data, &list) != nil {
		var one any
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		list = []any{one}
	}
	for _, v := range list {
		*a = append(*a, fmt.Sprint(v))
	}
	return nil
}

func (a anyOf) holds(v any) bool { return slices.Contains(a, fmt.Sprint(v)) }

// values is what a header of a case must be: one string, or a list of them in
// order. The string "*" is any value that is not empty.
type values []proxytest.Bytes

func (v *values) UnmarshalJSON(data []byte) error {
	var one proxytest.Bytes
	if json.Unmarshal(data, &one) == nil {
		*v = values{one}
		return nil
	}
	return json.Unmarshal(data, (*[]proxytest.Bytes)(v))
}

// fit tells whether the fields hold exactly these values under the name.
func (v values) fit(fields []proxytest.Field, name string) bool {
	return slices.EqualFunc(proxytest.Values(fields, name), v, func(got string, want proxytest.Bytes) bool {
		return got == string(want) || want == "*" && got != ""
	})
}

package proxytest

import (
	"encoding/json"
	"fmt"
)

// Bytes is text of a case that stands for bytes: in JSON its letters U+0000 to
// U+00FF are the bytes 0 to 255.
type Bytes string

// UnmarshalJSON reads a JSON string; a letter over U+00FF is an error.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	var raw []byte
	for _, r := range s {
		if r > 0xff {
			return fmt.Errorf("reading bytes: %q is over U+00FF", r)
		}
		raw = append(raw, byte(r))
	}
	*b = Bytes(raw)
	return nil
}

// Step is one part of what an origin does with a request.
type Step struct {
	On    string `json:"on"` // head, body, or open: as soon as the connection is there
	Send  Bytes  `json:"send"`
	Close bool   `json:"close"`
	Echo  bool   `json:"echo"` // send back what comes, till the end
	// Before, where not nil, is called before Send: it may wait.
	Before func() `json:"-"`
}

// Script is what an origin does with one request. In JSON it is a list of
// steps, or a string: one step when the whole request is there.
type Script []Step

// UnmarshalJSON reads either shape.
func (s *Script) UnmarshalJSON(data []byte) error {
	var send Bytes
	if json.Unmarshal(data, &send) == nil {
		*s = Script{{On: "body", Send: send}}
		return nil
	}
	var steps []Step
	if err := json.Unmarshal(data, &steps); err != nil {
		return err
	}
	for _, step := range steps {
		if step.On != "head" && step.On != "body" && step.On != "open" {
			return fmt.Errorf("reading script: step on %q", step.On)
		}
	}
	*s = steps
	return nil
}

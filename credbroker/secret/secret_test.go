package secret_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/egressd/egressd/credbroker/secret"
)

const plain = "tok-live-7Qm4x9Zr2Lp8"

// holder is a secret in the middle of things that are printed.
type holder struct {
	Name   string
	Token  secret.Value
	hidden secret.Value
	Ptr    *secret.Value
	List   []secret.Value
	Map    map[string]secret.Value
	Any    any
}

func TestNothingPrintsIt(t *testing.T) {
	v := secret.New([]byte(plain))
	h := holder{Name: "api", Token: v, hidden: v, Ptr: &v, List: []secret.Value{v}, Map: map[string]secret.Value{"k": v}, Any: v}
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%c", "%U", "%e", "%o", "%b", "% x", "%10.3s"} {
		for _, arg := range []any{v, &v, h, &h, []any{v}, map[any]any{1: v}} {
			texts = append(texts, fmt.Sprintf(verb, arg))
		}
	}
	texts = append(texts, v.String(), v.GoString(), fmt.Sprint(v), fmt.Errorf("x: %w", errors.New(fmt.Sprint(v))).Error())
	var b bytes.Buffer
	for _, log := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(log).Info("said", "v", v, "p", &v, "h", h, slog.Group("g", "v", v))
	}
	for _, arg := range []any{v, &v, h, map[string]any{"v": v}} {
		out, err := json.Marshal(arg)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out)
	}
	out, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"x"`
		V       secret.Value
	}{V: v})
	if err != nil {
		t.Fatal(err)
	}
	b.Write(out)
	if err := gob.NewEncoder(&b).Encode(struct{ V secret.Value }{v}); err != nil {
		t.Fatal(err)
	}
	texts = append(texts, b.String())
	for _, s := range texts {
		for _, form := range []string{plain, plain[:8], fmt.Sprintf("%x", plain), fmt.Sprintf("%X", plain[:8]), fmt.Sprintf("% x", plain[:8]), strings.Trim(fmt.Sprint([]byte(plain[:8])), "[]")} {
			if strings.Contains(s, form) {
				t.Errorf("the secret shows as %q in %q", form, s)
			}
		}
	}
	if got := fmt.Sprintf("%v %+v %s", v, h.Token, &v); got != strings.Repeat(" "+secret.Redacted, 3)[1:] {
		t.Errorf("got %q", got)
	}
}

func TestValue(t *testing.T) {
	raw := []byte(plain)
	v := secret.New(raw)
	raw[0] = 'X'
	v.Reveal()[1] = 'X'
	if got := string(v.Reveal()); got != plain {
		t.Errorf("the bytes changed: %q", got)
	}
	if v.Len() != len(plain) || v.IsZero() {
		t.Errorf("length %d, zero %v", v.Len(), v.IsZero())
	}
	var zero secret.Value
	if !zero.IsZero() || zero.Len() != 0 || zero.Reveal() != nil || !secret.New(nil).IsZero() || !secret.New([]byte{}).IsZero() {
		t.Error("the zero value holds something")
	}
	for _, c := range []struct {
		a, b secret.Value
		want bool
	}{
		{v, secret.New([]byte(plain)), true},
		{v, secret.New([]byte(plain + "x")), false},
		{v, secret.New([]byte(strings.ToUpper(plain))), false},
		{v, zero, false},
		{zero, v, false},
		{zero, zero, true},
	} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("Equal is %v, want %v", got, c.want)
		}
	}
}

package credbroker

import (
	"errors"
	"io"
	"testing"

	"github.com/egressd/egressd/credbroker/source"
)

// The user is told why there is no secret, and only of that.
func TestTrouble(t *testing.T) {
	cause := &source.Unavailable{Err: errors.New("running x: it ended")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&unavailable{"api", cause}, "credential api: running x: it ended"},
		{&unavailable{"api", io.ErrUnexpectedEOF}, ""},
		{cause, ""},
		{nil, ""},
	} {
		if got := Trouble(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// A placeholder of yesterday is told from one in a wrong place.
func TestOldPlaceholder(t *testing.T) {
	for _, c := range []struct {
		leaks []string
		want  error
	}{{[]string{""}, errLeakOld}, {[]string{"api"}, errLeak}, {[]string{"", "api"}, errLeak}} {
		x := &outgoing{Broker: &Broker{}, leaks: c.leaks, note: func(_, _, _ string) {}}
		if got := x.leaking(); got != c.want {
			t.Errorf("%q: %v", c.leaks, got)
		}
	}
}

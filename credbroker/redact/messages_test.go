package redact

import (
	"strings"
	"testing"
)

func TestMessages(t *testing.T) {
	long := strings.Repeat("z", 70_000)
	for _, c := range []struct {
		name, in, want string
		kind           kind
		err            error
	}{
		{name: "nothing", kind: kindGRPC},
		{name: "one", kind: kindGRPC, in: message(0, "hello"), want: message(0, "hello")},
		{name: "empty ones", kind: kindGRPC, in: message(0, "") + message(0, "") + message(0, "a"), want: message(0, "") + message(0, "") + message(0, "a")},
		{name: "a secret", kind: kindGRPC, in: message(0, "a "+secret+" b"), want: message(0, "a "+stars+" b")},
		{name: "a secret behind another message", kind: kindGRPC, in: message(0, "a") + message(0, secret), want: message(0, "a") + message(0, stars)},
		{name: "a secret far inside", kind: kindGRPC, in: message(0, long+secret+long), want: message(0, long+stars+long)},
		{name: "no secret spans two", kind: kindGRPC, in: message(0, secret[:9]) + message(0, secret[9:]), want: message(0, secret[:9]) + message(0, secret[9:])},
		{name: "compressed", kind: kindGRPC, in: message(0, "a") + message(1, "b"), want: message(0, "a"), err: errCompressed},
		{name: "compressed and empty", kind: kindGRPC, in: message(1, ""), err: errCompressed},
		{name: "a text", kind: kindGRPC, in: "HTTP is no gRPC", err: errMessage},
		{name: "gRPC has no trailers message", kind: kindGRPC, in: message(0x80, "a"), err: errMessage},
		{name: "gRPC has no last message", kind: kindGRPC, in: message(2, "a"), err: errMessage},
		{name: "trailers of gRPC-Web", kind: kindGRPCWeb, in: message(0, "a") + message(0x80, "grpc-message: "+secret), want: message(0, "a") + message(0x80, "grpc-message: "+stars)},
		{name: "compressed trailers of gRPC-Web", kind: kindGRPCWeb, in: message(0x81, "a"), err: errCompressed},
		{name: "end of Connect", kind: kindConnect, in: message(0, `{"t":"`+secret+`"}`) + message(2, "{}"), want: message(0, `{"t":"`+stars+`"}`) + message(2, "{}")},
		{name: "compressed end of Connect", kind: kindConnect, in: message(0, "a") + message(3, "{}"), want: message(0, "a"), err: errCompressed},
		{name: "Connect has no trailers message", kind: kindConnect, in: message(0x80, "a"), err: errMessage},
		{name: "broken off in a prefix", kind: kindGRPC, in: message(0, "a") + "\x00\x00\x00", want: message(0, "a") + "\x00\x00\x00"},
		{name: "broken off in a message", kind: kindGRPC, in: message(0, secret+"more")[:5+len(secret)], want: message(0, stars+"more")[:5+len(secret)]},
		{name: "a length that never comes", kind: kindGRPC, in: "\x00\xff\xff\xff\xffabc", want: "\x00\xff\xff\xff\xffabc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			everySplit(t, c.in, c.want, c.err, func() scanner { return newMessages(newLiteral(), c.kind) })
		})
	}
}

// everySplit feeds in whole, in two pieces cut at every byte of its first and
// last thousand, and byte by byte.
func everySplit(t *testing.T, in, want string, wantErr error, build func() scanner) {
	t.Helper()
	ways := [][]string{{in}, letterwise(in)}
	for i := range in {
		if i < 200 || i > len(in)-200 {
			ways = append(ways, []string{in[:i], in[i:]})
		}
	}
	for _, pieces := range ways {
		got, err := feed(build(), pieces...)
		if got != want || err != wantErr {
			t.Fatalf("in %d pieces, the first of %d bytes: got %.200q, %v; want %.200q, %v", len(pieces), len(pieces[0]), got, err, want, wantErr)
		}
	}
}

// A message goes on when it is whole, and of a longer one all but what is held:
// else a call that waits for its answer would wait for ever.
func TestMessagesGoOn(t *testing.T) {
	m := newMessages(newLiteral(), kindGRPC)
	for _, step := range []struct{ in, want string }{
		{message(0, "ping"), message(0, "ping")},
		{"\x00", ""},
		{"\x00\x00\x00\x40", "\x00\x00\x00\x00\x40"},
		{strings.Repeat("a", 0x30), strings.Repeat("a", 0x30-len(secret)+1)},
		{strings.Repeat("b", 0x10), strings.Repeat("a", len(secret)-1) + strings.Repeat("b", 0x10)},
	} {
		got, err := m.Write(nil, []byte(step.in))
		if err != nil || string(got) != step.want {
			t.Errorf("after %q: got %q, %v; want %q", step.in, got, err, step.want)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(message(0, "a "+secret)+message(0, "")+message(1, "z")), uint16(3), byte(0))
	f.Add([]byte(message(0, secret)+message(2, "{}")), uint16(30), byte(1))
	f.Add([]byte(message(0, "a")+message(0x80, "grpc-status: 0")), uint16(1), byte(2))
	f.Fuzz(func(t *testing.T, in []byte, cut uint16, which byte) {
		k := []kind{kindGRPC, kindConnect, kindGRPCWeb}[which%3]
		at := int(cut) % (len(in) + 1)
		whole, err := feed(newMessages(newLiteral(), k), string(in))
		two, err2 := feed(newMessages(newLiteral(), k), string(in[:at]), string(in[at:]))
		bytewise, err3 := feed(newMessages(newLiteral(), k), letterwise(string(in))...)
		if whole != two || whole != bytewise || err != err2 || err != err3 {
			t.Fatalf("%q, %v; in two %q, %v; by bytes %q, %v", whole, err, two, err2, bytewise, err3)
		}
		if err == nil && len(whole) != len(in) || len(whole) > len(in) {
			t.Fatalf("%d bytes of %d", len(whole), len(in))
		}
		for i := range len(whole) {
			if whole[i] != in[i] && whole[i] != '*' {
				t.Fatalf("byte %d is %q, was %q", i, whole[i], in[i])
			}
		}
	})
}

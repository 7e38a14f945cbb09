package redact

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf8"
)

// First bytes of frames: the last of a message has 0x80.
const (
	textOpen, textWhole     = "\x01", "\x81"
	binaryOpen, binaryWhole = "\x02", "\x82"
)

func wsFrame(first string, content string) string { return frame(first[0], content) }

func TestFrames(t *testing.T) {
	long := strings.Repeat("z", 70_000)
	middle := strings.Repeat("y", 300)
	for _, c := range []struct {
		name, in, want string
		err            error
	}{
		{name: "nothing"},
		{name: "a message", in: wsFrame(textWhole, "hello"), want: wsFrame(textWhole, "hello")},
		{name: "empty messages", in: wsFrame(textWhole, "") + wsFrame(binaryWhole, ""), want: wsFrame(textWhole, "") + wsFrame(binaryWhole, "")},
		{name: "a secret in a text", in: wsFrame(textWhole, "a "+secret+" b"), want: wsFrame(textWhole, "a "+stars+" b")},
		{name: "a secret in bytes", in: wsFrame(binaryWhole, "\xff\xc3"+secret+"\x80"), want: wsFrame(binaryWhole, "\xff\xc3"+stars+"\x80")},
		{name: "16 bits of length", in: wsFrame(textWhole, middle+secret), want: wsFrame(textWhole, middle+stars)},
		{name: "64 bits of length", in: wsFrame(binaryWhole, long+secret+long) + wsFrame(textWhole, secret), want: wsFrame(binaryWhole, long+stars+long) + wsFrame(textWhole, stars)},
		{name: "a length in more bytes than it needs", in: "\x82\x7e\x00\x02ab", want: "\x82\x7e\x00\x02ab"},
		{name: "over two fragments", in: wsFrame(textOpen, "a "+secret[:9]) + wsFrame("\x80", secret[9:]+" b"), want: wsFrame(textOpen, "a "+stars[:9]) + wsFrame("\x80", stars[9:]+" b")},
		{name: "over fragments of a byte", in: fragments(secret + "!"), want: fragments(stars + "!")},
		{name: "over an empty fragment", in: wsFrame(binaryOpen, secret[:9]) + wsFrame("\x00", "") + wsFrame("\x80", secret[9:]), want: wsFrame(binaryOpen, stars[:9]) + wsFrame("\x00", "") + wsFrame("\x80", stars[9:])},
		{name: "long fragments", in: wsFrame(binaryOpen, long+secret[:9]) + wsFrame("\x00", secret[9:]+long) + wsFrame("\x80", secret), want: wsFrame(binaryOpen, long+stars[:9]) + wsFrame("\x00", stars[9:]+long) + wsFrame("\x80", stars)},
		{name: "an empty last fragment", in: wsFrame(textOpen, secret) + wsFrame("\x80", ""), want: wsFrame(textOpen, stars) + wsFrame("\x80", "")},
		{name: "no secret spans two messages", in: wsFrame(textWhole, secret[:9]) + wsFrame(textWhole, secret[9:]), want: wsFrame(textWhole, secret[:9]) + wsFrame(textWhole, secret[9:])},
		{name: "a ping between messages", in: wsFrame(textWhole, "a") + wsFrame("\x89", "beat") + wsFrame(textWhole, "b"), want: wsFrame(textWhole, "a") + wsFrame("\x89", "beat") + wsFrame(textWhole, "b")},
		{name: "a secret in a ping", in: wsFrame("\x89", secret), want: wsFrame("\x89", stars)},
		{name: "bytes in a ping", in: wsFrame("\x89", "\xc3*\x80"), want: wsFrame("\x89", "\xc3*\x80")},
		{name: "a secret in a pong", in: wsFrame("\x8a", "\xff"+secret), want: wsFrame("\x8a", "\xff"+stars)},
		{name: "a secret in a close", in: wsFrame("\x88", "\x03\xe8bye "+secret), want: wsFrame("\x88", "\x03\xe8bye "+stars)},
		{name: "a close without a word", in: wsFrame("\x88", "") + wsFrame("\x88", "\x03\xe8"), want: wsFrame("\x88", "") + wsFrame("\x88", "\x03\xe8")},
		{name: "a close in a message", in: wsFrame(textOpen, "half") + wsFrame("\x88", "\x03\xe8"), want: wsFrame(textOpen, "half") + wsFrame("\x88", "\x03\xe8")},
		{name: "broken off in a frame", in: wsFrame(textWhole, secret+" and")[:2+len(secret)], want: wsFrame(textWhole, stars+" and")[:2+len(secret)]},
		{name: "broken off in a head", in: wsFrame(textWhole, "a") + "\x81\x7e\x00", want: wsFrame(textWhole, "a")},
		{name: "broken off in a ping", in: wsFrame("\x89", secret)[:20], want: ""},

		{name: "masked", in: "\x81\x81mask*", err: errFrame},
		{name: "compressed", in: wsFrame(textWhole, "a") + wsFrame("\xc1", "b"), want: wsFrame(textWhole, "a"), err: errFrame},
		{name: "the second reserved bit", in: wsFrame("\xa1", ""), err: errFrame},
		{name: "the third reserved bit", in: wsFrame("\x91", ""), err: errFrame},
		{name: "a reserved opcode", in: wsFrame("\x83", ""), err: errFrame},
		{name: "a reserved control opcode", in: wsFrame("\x8b", ""), err: errFrame},
		{name: "nothing to continue", in: wsFrame("\x80", "a"), err: errFrame},
		{name: "a message in a message", in: wsFrame(textOpen, "") + wsFrame(textWhole, "a"), want: wsFrame(textOpen, ""), err: errFrame},
		{name: "a ping in fragments", in: wsFrame("\x09", ""), err: errFrame},
		{name: "a long ping", in: wsFrame("\x89", middle), err: errFrame},
		{name: "a length below nought", in: "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", err: errFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			everySplit(t, c.in, c.want, c.err, func() scanner { return newFrames(newLiteral(), control) })
		})
	}
}

// fragments is a text in frames of one byte.
func fragments(s string) string {
	var b strings.Builder
	for i := range len(s) {
		first := byte(opContinue)
		if i == 0 {
			first = opText
		}
		if i == len(s)-1 {
			first |= bitFin
		}
		b.WriteString(frame(first, s[i:i+1]))
	}
	return b.String()
}

// A server that pings in the middle of a message waits for the pong: the ping
// goes on and takes what is held along. Where both come in one read, the message
// behind it is still scanned over its fragments.
func TestControlFrameDoesNotWait(t *testing.T) {
	begin, ping, end := wsFrame(textOpen, "a "+secret[:9]), wsFrame("\x89", "beat"), wsFrame("\x80", secret[9:])
	f := newFrames(newLiteral(), control)
	got, _ := f.Write(nil, []byte(begin))
	if string(got) != begin[:2] {
		t.Errorf("of a fragment: %q", got)
	}
	if got, _ = f.Write(got, []byte(ping)); string(got) != begin+ping {
		t.Errorf("with a ping: %q", got)
	}

	f = newFrames(newLiteral(), control)
	got, _ = f.Write(nil, []byte(begin+ping+end))
	want := wsFrame(textOpen, "a "+stars[:9]) + ping + wsFrame("\x80", stars[9:])
	if string(got) != want {
		t.Errorf("in one read: %q, want %q", got, want)
	}
}

// Heads that wait are bounded: a message may have empty fragments without end.
func TestEmptyFragmentsDoNotPileUp(t *testing.T) {
	f := newFrames(newLiteral(), control)
	out, _ := f.Write(nil, []byte(wsFrame(binaryOpen, "held")))
	in := []byte(strings.Repeat(wsFrame("\x00", ""), 1000))
	for range 1000 {
		out, _ = f.Write(out[:0], in)
		if f.queue.size > mostWaiting {
			t.Fatalf("%d bytes wait", f.queue.size)
		}
	}
}

func TestLengthsOfFrames(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 65535, 65536, 100_000} {
		in := wsFrame(binaryWhole, strings.Repeat("x", n)) + wsFrame(textWhole, secret)
		got, err := feed(newFrames(newLiteral(), control), in)
		if want := in[:len(in)-len(secret)] + stars; err != nil || got != want {
			t.Errorf("%d bytes: %v, same %v", n, err, got == want)
		}
	}
}

// Parts of letters at the border of a find go with it, in a text and only there.
func TestTextFramesStayText(t *testing.T) {
	const odd = "\xa9sekret-\xc3\xbc-ohne\xe2\x82" // begins and ends inside a letter
	build := func() scanner { return newFrames(&literal{secret: odd}, control) }
	in := "f\u00e9" + "\xc3" + odd + "\xac!"
	if !utf8.ValidString(in) {
		t.Fatal("the text is none")
	}
	want := "f\u00e9" + strings.Repeat("*", 1+len(odd)+1) + "!"
	everySplit(t, wsFrame(textWhole, in), wsFrame(textWhole, want), nil, build)
	everySplit(t, wsFrame(binaryWhole, in), wsFrame(binaryWhole, "f\u00e9\xc3"+strings.Repeat("*", len(odd))+"\xac!"), nil, build)
	for cut := range in {
		everySplit(t, wsFrame(textOpen, in[:cut])+wsFrame("\x80", in[cut:]), wsFrame(textOpen, want[:cut])+wsFrame("\x80", want[cut:]), nil, build)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(wsFrame(textOpen, "a "+secret[:9])+wsFrame("\x89", "beat")+wsFrame("\x80", secret[9:])), uint16(3))
	f.Add([]byte(wsFrame(binaryWhole, strings.Repeat("z", 200)+secret)+wsFrame("\x88", "\x03\xe8bye")), uint16(30))
	f.Add([]byte(wsFrame(textWhole, "\u20ac*\u20ac"+secret)), uint16(5))
	f.Add(binary.BigEndian.AppendUint64([]byte("\x82\x7f"), 1<<63), uint16(5))
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		build := func() *frames { return newFrames(newLiteral(), control) }
		at := int(cut) % (len(in) + 1)
		whole, err := feed(build(), string(in))
		two, err2 := feed(build(), string(in[:at]), string(in[at:]))
		bytewise, err3 := feed(build(), letterwise(string(in))...)
		if err != err2 || err != err3 {
			t.Fatalf("%v, in two %v, by bytes %v", err, err2, err3)
		}
		// A ping lets go of what is held, so only lengths are the same, and
		// behind an error not even those.
		if err == nil && (len(whole) != len(two) || len(whole) != len(bytewise)) {
			t.Fatalf("%q, in two %q, by bytes %q", whole, two, bytewise)
		}
		for _, out := range []string{whole, two, bytewise} {
			if len(out) > len(in) {
				t.Fatalf("%d bytes of %d", len(out), len(in))
			}
			for i := range len(out) {
				if out[i] != in[i] && out[i] != '*' {
					t.Fatalf("byte %d is %q, was %q", i, out[i], in[i])
				}
			}
		}
	})
}

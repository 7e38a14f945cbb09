package scan

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const benchSize = 64 << 20

// benchSecrets are three as they come: two of 40 letters, one of 108.
func benchSecrets() []Secret {
	return set("ghp_7Qm4x9Zr2Lp8vT0pW5aaZk31Jd93Kx8QwErT", "dapi0f9e8d7c6b5a49382716f5e4d3c2b1a0-ab12",
		"sk-ant-api03-Qw7Er5Ty3Ui1Op9As8Df6Gh4Jk2Lz0Xc9Vb7Nm5Qa3Ws1Ed8Rf6Tgb5Yhn4Ujm3Ik2Ol1Pq0Az9Sx8Dc7Fv6Gb5Hn4Jm3-AA")
}

// fill repeats text, with a random number in it, to n bytes.
func fill(n int, line func(rnd *rand.Rand) string) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(line(rnd))
	}
	return b.Bytes()[:n]
}

func random(rnd *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for k := range p {
		p[k] = byte(rnd.Uint32())
	}
	return p
}

var benchTexts = []struct {
	name string
	line func(rnd *rand.Rand) string
}{
	{"prose", func(rnd *rand.Rand) string {
		return fmt.Sprintf("The quick brown fox no. %d jumps over the lazy dog, and nobody was there to see it.\n", rnd.IntN(1e6))
	}},
	{"zeros", func(*rand.Rand) string { return strings.Repeat("\x00", 4096) }},
	{"binary", func(rnd *rand.Rand) string { return string(random(rnd, 4096)) }},
	{"base64", func(rnd *rand.Rand) string { return base64.StdEncoding.EncodeToString(random(rnd, 3072)) }},
	{"base64lines", func(rnd *rand.Rand) string { return base64.StdEncoding.EncodeToString(random(rnd, 57)) + "\r\n" }},
	{"hexlines", func(rnd *rand.Rand) string { return fmt.Sprintf("%x\n", random(rnd, 32)) }},
	{"json", func(rnd *rand.Rand) string {
		return fmt.Sprintf(`{"id":%d,"name":"file-%d.go","tags":["a","b"],"size":%d,"url":"https://api.test/x?a=%d&b=2"},`, rnd.IntN(1e9), rnd.IntN(100), rnd.IntN(1e6), rnd.IntN(1e6))
	}},
	{"jsonescapes", func(rnd *rand.Rand) string {
		return fmt.Sprintf(`{\"id\":%d,\"text\":\"line one\\nline two\\n\\u00e9t\\u00e9 %d\"}\n`, rnd.IntN(1e9), rnd.IntN(100))
	}},
	{"html", func(rnd *rand.Rand) string {
		return fmt.Sprintf("<li class=\"item\"><a href=\"/p/%d?x=1&amp;y=%d\">It&#39;s&nbsp;here</a></li>\n", rnd.IntN(1e6), rnd.IntN(1e6))
	}},
	{"percent", func(rnd *rand.Rand) string { return fmt.Sprintf("%%%02X", rnd.IntN(256)) }},
	{"percentletters", func(rnd *rand.Rand) string { return fmt.Sprintf("%%%02X", 'a'+rnd.IntN(26)) }},
	{"uescapes", func(rnd *rand.Rand) string { return fmt.Sprintf(`\u00%02x`, 'a'+rnd.IntN(26)) }},
	{"entities", func(rnd *rand.Rand) string { return fmt.Sprintf("&#%d;", 'a'+rnd.IntN(26)) }},
	{"amps", func(*rand.Rand) string { return "&#&l&g&a" }},
	{"zeroentities", func(*rand.Rand) string { return "&#" + strings.Repeat("0", 46) }},
	{"newlines", func(*rand.Rand) string { return "a\n" }},
	{"softbreaks", func(*rand.Rand) string { return "7=\n" }},
	{"backslashes", func(*rand.Rand) string { return `\\\\\\\\` }},
	{"knownprefix", func(*rand.Rand) string { return "sk-ant-api03-QXX" }},
	{"truncated", func(*rand.Rand) string { return "ghp_7Qm4x9Zr2Lp8vT0pW5aaZk3 " }},
	{"escapedtruncated", func(*rand.Rand) string { return "%67hp_7Qm4x9%5Ar2Lp8vT0pW5aaZk3 " }},
	{"finds", func(*rand.Rand) string { return "ghp_7Qm4x9Zr2Lp8vT0pW5aaZk31Jd93Kx8QwErT " }},
}

// A gigabyte of text, or of the worst that can be sent: what a byte costs.
func BenchmarkStream(b *testing.B) {
	s := New(benchSecrets())
	for _, text := range benchTexts {
		b.Run(text.name, func(b *testing.B) { benchStream(b, s, fill(1<<20, text.line)) })
	}
}

func benchStream(b *testing.B, s *Set, p []byte) {
	dst := make([]byte, 0, 64<<10)
	st := s.Stream(Text)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		for at := 0; at < len(p); at += 32 << 10 {
			dst = st.Write(dst[:0], p[at:at+32<<10])
		}
		st.Entries()
	}
}

// 64 MiB of text with three secrets in it.
func BenchmarkThreeSecrets(b *testing.B) {
	secrets := benchSecrets()
	p := fill(benchSize, benchTexts[0].line)
	for k, v := range secrets {
		copy(p[(k+1)*len(p)/4:], v.Value)
	}
	benchStream(b, New(secrets), p)
}

// What other secrets cost: a short password, a passphrase, a key of 3 KiB, the
// last 16 values of four entries.
func BenchmarkSets(b *testing.B) {
	rnd := rand.New(rand.NewPCG(9, 9))
	token := func(n int) string { return base64.RawURLEncoding.EncodeToString(random(rnd, n*3/4)) }
	var many []string
	for range 64 {
		many = append(many, token(900))
	}
	for _, c := range []struct {
		name    string
		secrets []Secret
	}{
		{"password", set("hunter22")}, {"phrase", set("correct horse battery staple")},
		{"accents", set("pässwörter-sind-größer")}, {"key", set(token(3200))}, {"many", set(many...)},
	} {
		for _, k := range []int{0, 2, 6, 9} {
			s, p := New(c.secrets), fill(1<<20, benchTexts[k].line)
			b.Run(c.name+"/"+benchTexts[k].name, func(b *testing.B) { benchStream(b, s, p) })
		}
		b.Run(c.name+"/new", func(b *testing.B) {
			for b.Loop() {
				New(c.secrets)
			}
		})
	}
	s := New(benchSecrets())
	b.Run("three/header", func(b *testing.B) {
		p := []byte("text/html; charset=utf-8")
		for b.Loop() {
			s.Text(p)
		}
	})
	b.Run("three/events", func(b *testing.B) {
		p := []byte("data: {\"delta\":\"hello\"}\n\n")
		st := s.Stream(Text)
		b.SetBytes(int64(len(p)))
		var dst []byte
		for b.Loop() {
			dst = st.Write(dst[:0], p)
		}
	})
	b.Run("three/new", func(b *testing.B) {
		for b.Loop() {
			New(benchSecrets())
		}
	})
}

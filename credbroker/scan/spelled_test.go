package scan

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf16"
)

// spell writes v in one of the ways that are to be found, chosen by rnd.
func spell(rnd *rand.Rand, v []byte) []byte {
	switch rnd.IntN(12) {
	case 0, 1:
		return slices.Clone(v)
	case 2:
		return spellUTF16(v, rnd.IntN(2) == 0)
	case 3:
		return breakLines(rnd, []byte(hexOf(rnd, v)))
	case 4, 5, 6:
		front, back := make([]byte, rnd.IntN(4)), make([]byte, rnd.IntN(3))
		for k := range front {
			front[k] = byte(rnd.IntN(256))
		}
		enc := []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding}[rnd.IntN(3)]
		return breakLines(rnd, []byte(enc.EncodeToString(append(append(front, v...), back...))))
	}
	often := []int{1, 2, 5, 20}[rnd.IntN(4)]
	var out []byte
	for _, c := range v {
		if rnd.IntN(often) == 0 {
			out = append(out, escapeOf(rnd, c)...)
		} else {
			out = append(out, c)
		}
		if rnd.IntN(20) == 0 {
			out = append(out, []string{"=\n", "=\r\n"}[rnd.IntN(2)]...)
		}
	}
	return out
}

func hexOf(rnd *rand.Rand, v []byte) string {
	s := hex.EncodeToString(v)
	switch rnd.IntN(3) {
	case 0:
		s = strings.ToUpper(s)
	case 1:
		b := []byte(s)
		for k := range b {
			if rnd.IntN(2) == 0 {
				b[k] = strings.ToUpper(s)[k]
			}
		}
		s = string(b)
	}
	return s
}

// breakLines breaks digits into lines and escapes some of them.
func breakLines(rnd *rand.Rand, digits []byte) (out []byte) {
	every := []int{1, 3, 9, 16, 64, 1000}[rnd.IntN(6)]
	often := []int{2, 9, 1 << 20}[rnd.IntN(3)]
	ends := []string{"\n", "\r\n", `\n`, `\r\n`, "%0A", "%0d%0a", "\r%0A", "&#10;", "&NewLine;", "&#13;&#xa;", "=\n"}
	end := ends[rnd.IntN(len(ends))]
	for k, c := range digits {
		if k > 0 && k%every == 0 {
			out = append(out, end...)
		}
		if rnd.IntN(often) == 0 || c == '/' && rnd.IntN(2) == 0 {
			out = append(out, escapeOf(rnd, c)...)
		} else {
			out = append(out, c)
		}
	}
	return out
}

func escapeOf(rnd *rand.Rand, c byte) string {
	if c >= 0x80 {
		return []string{fmt.Sprintf("%%%02x", c), fmt.Sprintf("=%02X", c), fmt.Sprintf(`\u00%02x`, c), fmt.Sprintf("&#%d;", c)}[rnd.IntN(4)]
	}
	switch rnd.IntN(12) {
	case 0:
		return fmt.Sprintf("=%02X", c)
	case 1:
		return fmt.Sprintf(`\x%02x`, c)
	case 2:
		return fmt.Sprintf(`\u%04x`, c)
	case 3:
		return fmt.Sprintf("&#%d;", c)
	case 4:
		return fmt.Sprintf("&#%d", c)
	case 5:
		return fmt.Sprintf("&#x%X;", c)
	case 6:
		return fmt.Sprintf("&#X%05x", c)
	case 7:
		switch c {
		case '"', '\\', '/':
			return `\` + string(c)
		case '&':
			return "&amp"
		case '<':
			return "&lt;"
		case ' ':
			return "+"
		case '+':
			return "&plus;"
		case '_':
			return "&lowbar;"
		case '|':
			return "&VerticalLine;"
		}
	}
	return fmt.Sprintf("%%%02X", c)
}

func spellUTF16(v []byte, big bool) (out []byte) {
	for _, u := range utf16.Encode([]rune(string(v))) {
		if big {
			out = append(out, byte(u>>8), byte(u))
		} else {
			out = append(out, byte(u), byte(u>>8))
		}
	}
	return out
}

// answer is a text that holds parts of the secrets, cut and spelled in many
// ways, among other things and some nearly right.
func answer(rnd *rand.Rand, secrets []Secret, parts int) (out []byte) {
	noise := []string{" ", "\n", "\r\n", "a", "7", "=", "%", "&", `\`, `"`, ";", "+", "\x00", "0A", "dG9r", "\n\n", "=\n", "u00", "&#", "{\"k\":\""}
	for range parts {
		v := secrets[rnd.IntN(len(secrets))].Value
		switch rnd.IntN(5) {
		case 0:
			v = v[rnd.IntN(min(len(v), 6)):]
		case 1:
			v = v[:len(v)-rnd.IntN(min(len(v), 6))]
		case 2:
			lo := rnd.IntN(len(v))
			v = v[lo : lo+rnd.IntN(len(v)-lo+1)]
		}
		b := spell(rnd, v)
		if rnd.IntN(12) == 0 && len(b) > 0 {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		if rnd.IntN(6) == 0 && len(b) > 1 { // two parts in two spellings
			b = append(spell(rnd, v[:len(v)/2]), spell(rnd, v[len(v)/2:])...)
		}
		out = append(out, b...)
		for range rnd.IntN(4) {
			out = append(out, noise[rnd.IntN(len(noise))]...)
		}
	}
	return out
}

// secretSets are sets that try the corners: short ones, such that look like
// escapes, periodic ones, one the beginning of another, letters that are not
// ASCII.
var secretSets = [][]string{
	{"tok-live-7Qm4x9Zr2Lp8"},
	{"tok-live-7Qm4x9Zr2Lp8", "tok-live-7Qm4x9Zr2Lp8-extra-44"},
	{"ab3Zab3Zab3Zab3Zab3Zab3Z"},
	{"k7Qm4x9Zr2Lp"},
	{"hunter22"},
	{"pass word with 1 & 2 +3"},
	{`pa"ss\wo/rd-9Kd2x`},
	{"%41%42abcdefgh&lt;&amp41"},
	{`\u0041\n\\x41=41abcdefgh\`},
	{"0123456789abcdef0123456789abcdef"},
	{"&#52&#5452;&#x41;45451&lt41;&"},
	{"aaaaaaaaaaaaaaaaaa"},
	{"pässwörter-sind-größer"},
	{"\U0001F511\U0001F512 kanji 漢字漢字 x"},
	{"a+b/c=7Qm4x9Zr2Lp8==", "Zk31vT0p"},
	{"sk-long-Qw7Er5Ty3Ui1Op9As8Df6Gh4Jk2Lz0Xc9Vb7Nm5Qa3Ws1Ed8Rf6T"},
	{"ghp_7Qm4x9Zr2Lp8vT0pW5aaZk31Jd93Kx8"}, // the shortest that is looked up at every 16th byte
	{"sk-real-0123456789abcdef0123456789abcdef", "6162636465663031323334353637383961626364656630313233343536373839"},
	{"abcdabcdabcdabcdabcdabcdabcdabcdabcdabcd", "dapi0f9e8d7c6b5a49382716f5e4d3c2b1a0-ab12"},
	{"fjord fjfjfj fjfj||`_fjfj"},
	{"\xff\xfe\xfd binary \x80\x81\xe9\xe9\xe9"},
}

func set(texts ...string) (out []Secret) {
	for k, t := range texts {
		out = append(out, Secret{Value: []byte(t), Replacement: fmt.Sprintf("[redacted%d]", k), Entry: fmt.Sprintf("e%d", k)})
	}
	return out
}

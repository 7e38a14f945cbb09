package credbroker

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// What a placeholder looks like: the mark, in any case, and 43 letters of
// base64url at least, whether it is a live one or not. A word behind the mark
// that is shorter, as in documentation, is none.
const (
	mark        = "oa_cred_"
	markLetters = 43
)

// placeholder stands for one value of an entry inside the sandbox. It is bound
// where a binding's credential holds it, and nowhere else: one of a canary, or
// of an entry that a reload took away, is bound to nothing.
type placeholder struct {
	text  string
	id    string // of the entry
	part  string // which of its values: see Broker.Placeholder
	shape string
}

// tokenLetter says whether c is a letter of base64url. One that stands beside a
// placeholder makes it another word.
func tokenLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

var shapePart = regexp.MustCompile(`\{([0-9]+)\}`)

// mint makes a placeholder of a shape that is not among taken, in which none
// is part of another.
func mint(shape string, taken []string) (string, error) {
	if strings.Contains(strings.ToLower(shape), mark) {
		return "", fmt.Errorf("minting a placeholder: the shape holds %s, which is the mark of the usual ones", mark)
	}
	for range 100 {
		text := fill(shape)
		free := shape == "" || !strings.Contains(strings.ToLower(text), mark) // which letters may spell by chance
		for _, other := range taken {
			free = free && !strings.Contains(text, other) && !strings.Contains(other, text)
		}
		if free {
			return text, nil
		}
	}
	return "", fmt.Errorf("minting a placeholder: every one of the shape %s is part of another", shape)
}

// fill makes a random text of a shape; "" is the mark and 32 bytes in base64url.
func fill(shape string) string {
	if shape == "" {
		var b [32]byte
		_, _ = rand.Read(b[:]) // never fails
		return mark + base64.RawURLEncoding.EncodeToString(b[:])
	}
	return shapePart.ReplaceAllStringFunc(shape, func(part string) string {
		n, _ := strconv.Atoi(strings.Trim(part, "{}")) // digits, up to 1024: the loader has looked
		return letters(n)
	})
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// letters are n random letters of [A-Za-z0-9], each as likely as the others.
func letters(n int) string {
	out := make([]byte, 0, n)
	var b [64]byte
	for len(out) < n {
		_, _ = rand.Read(b[:])
		for _, c := range b {
			if int(c) < 256/len(alphanumeric)*len(alphanumeric) && len(out) < n {
				out = append(out, alphanumeric[int(c)%len(alphanumeric)])
			}
		}
	}
	return string(out)
}

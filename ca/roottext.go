package ca

import (
	"bytes"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"hash/maphash"
	"os"
	"sync"
	"syscall"
)

// rootText is a certificate, and the base64 it was decoded from where that can
// be written out again as it is.
type rootText struct{ der, text []byte }

// read finds the certificates of the file, but those whose text is known.
func (s *rootSource) read(known *knownTexts) {
	buf := rootBuffers.Get().(*[8 << 10]byte)
	defer rootBuffers.Put(buf)
	data, err := quickRead(s.path, buf[:])
	if err != nil {
		s.err = err
		return
	}
	if texts, ok := plainBlocks(data); ok {
		for _, text := range texts {
			if known.has(text) {
				continue
			}
			der := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
			n, err := base64.StdEncoding.Decode(der, text) // passes over line breaks
			if err == nil && wellFormed(der[:n]) {
				if len(data) <= len(buf) {
					text = bytes.Clone(text) // the buffer is for the next file
				}
				s.certs = append(s.certs, rootText{der[:n], text})
			}
		}
		return
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		// A sequence of DER, at least: what a library inside cannot read must not
		// keep it from reading the rest.
		if block.Type == "CERTIFICATE" && wellFormed(block.Bytes) {
			s.certs = append(s.certs, rootText{der: block.Bytes})
		}
	}
}

// knownTexts are the texts that were seen. The hash is only to find them by.
type knownTexts struct {
	seed  maphash.Seed
	texts map[uint64][]byte
}

func newKnownTexts() *knownTexts {
	return &knownTexts{seed: maphash.MakeSeed(), texts: map[uint64][]byte{}}
}

func (k *knownTexts) add(text []byte) {
	if text != nil {
		k.texts[maphash.Bytes(k.seed, text)] = text
	}
}

// has is false for nil, where nothing is known.
func (k *knownTexts) has(text []byte) bool {
	return k != nil && bytes.Equal(k.texts[maphash.Bytes(k.seed, text)], text)
}

var rootBuffers = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// quickRead is os.ReadFile with half the system calls, for the hundred small
// files on the way to every start. What it gives may lie in buf.
func quickRead(path string, buf []byte) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return os.ReadFile(path)
	}
	n, err := syscall.Read(fd, buf)
	_ = syscall.Close(fd) // it was only read
	if err != nil || n == len(buf) {
		return os.ReadFile(path)
	}
	return buf[:n], nil // a read of a regular file is short only at its end
}

const blockBegin, blockEnd = "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----"

// plainBlocks cuts a file that is nothing but certificates, each between its
// two lines, into their base64 (RFC 7468, 3, lines of 64 letters or less). It is what nearly every file of roots is, and quicker than reading
// any; others are not ok.
func plainBlocks(data []byte) (texts [][]byte, ok bool) {
	for len(data) > 0 {
		rest, found := bytes.CutPrefix(data, []byte(blockBegin))
		if !found {
			return nil, false
		}
		text, rest, found := bytes.Cut(rest, []byte(blockEnd))
		if !found || len(text) == 0 || text[len(text)-1] != '\n' || !shortLines(text) {
			return nil, false
		}
		if rest, found = bytes.CutPrefix(rest, []byte("\n")); !found && len(rest) > 0 {
			return nil, false
		}
		texts, data = append(texts, text), rest
	}
	return texts, true
}

// shortLines says that every line is one of base64 with 64 letters at most.
func shortLines(text []byte) bool {
	at := 0
	for i, b := range text {
		switch {
		case b == '\n':
			at = i + 1
		case i-at >= 64, b <= ' ', b == '-', b == ':':
			return false
		}
	}
	return true
}

// wellFormed says that the bytes are one DER sequence of three values, as a
// certificate is (RFC 5280, 4.1), which is quick to see.
func wellFormed(der []byte) bool {
	var v struct{ TBS, Algorithm, Signature asn1.RawValue }
	rest, err := asn1.Unmarshal(der, &v)
	return err == nil && len(rest) == 0
}

// encodedLen is the room that encode takes.
func (c rootText) encodedLen() int {
	text := len(c.text)
	if c.text == nil {
		text = base64.StdEncoding.EncodedLen(len(c.der)) + len(c.der)/48 + 1 // a line break for each 48 bytes
	}
	return len(blockBegin) + text + len(blockEnd) + 1
}

// encode appends the certificate in PEM (RFC 7468).
func (c rootText) encode(out []byte) []byte {
	if c.text == nil {
		return append(out, encode(c.der)...)
	}
	out = append(append(out, blockBegin...), c.text...)
	return append(append(out, blockEnd...), '\n')
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

package ca

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
)

// Truststore makes of roots, and of the authority where there is one, the file
// that Java reads: PKCS #12 (RFC 7292) without a password, since of one with a
// password the JDK, which gives none, silently reads no certificate.
//
// It is written here and not by go-pkcs12, which the tests compare it with:
// that builds each level of the nesting anew by reflection, a tenth of what the
// start of a command makes in memory, and this is on the way to every start.
func Truststore(roots *Roots, authority *x509.Certificate) ([]byte, error) {
	ders := make([][]byte, 0, len(roots.texts)+1)
	for _, c := range roots.texts {
		ders = append(ders, c.der)
	}
	if authority != nil {
		ders = append(ders, authority.Raw)
	}
	if len(ders) == 0 {
		return nil, errors.New("making a truststore: there is no certificate to put in")
	}
	bags := 0
	for _, der := range ders {
		bags += whole(safeBag(der).content)
	}
	safe := whole(bags)          // SafeContents
	info := dataInfo(safe)       // the one ContentInfo with them
	authenticated := whole(info) // AuthenticatedSafe
	pfx := len(version3) + dataInfo(authenticated)

	w := der(make([]byte, 0, whole(pfx)))
	w.head(tagSequence, pfx)
	w = append(w, version3...)
	w.openData(authenticated)
	w.head(tagSequence, info)
	w.openData(safe)
	w.head(tagSequence, bags)
	for _, der := range ders {
		w.certificate(der)
	}
	return w, nil
}

// Tags of DER (X.690): universal ones, and the explicit context tag 0.
const (
	tagOctets   = 0x04
	tagBMP      = 0x1e
	tagSequence = 0x30
	tagSet      = 0x31
	tagContext0 = 0xa0
)

// Values that are the same in every truststore, as tag, length and content.
var (
	version3 = []byte{0x02, 1, 3}

	oidData            = []byte{0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1}          // 1.2.840.113549.1.7.1
	oidCertBag         = []byte{0x06, 11, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 10, 1, 3} // 1.2.840.113549.1.12.10.1.3
	oidX509Certificate = []byte{0x06, 10, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 22, 1}     // 1.2.840.113549.1.9.22.1
	oidFriendlyName    = []byte{0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 20}         // 1.2.840.113549.1.9.20

	// trusted is what makes an entry one that Java trusts: Oracle's attribute
	// 2.16.840.1.113894.746875.1.1 with anyExtendedKeyUsage, 2.5.29.37.0.
	trusted = []byte{tagSequence, 22,
		0x06, 12, 0x60, 0x86, 0x48, 1, 0x86, 0xf9, 0x66, 0xad, 0xca, 0x7b, 1, 1,
		tagSet, 6, 0x06, 4, 0x55, 0x1d, 0x25, 0}
)

// whole is the length of a value with n bytes of content, its head included.
func whole(n int) int {
	switch {
	case n < 0x80:
		return n + 2
	case n < 0x100:
		return n + 3
	case n < 0x10000:
		return n + 4
	case n < 0x1000000:
		return n + 5
	}
	return n + 6
}

// dataInfo is the length of a ContentInfo of the type data (RFC 5652, 3 and 4)
// whose octet string has n bytes.
func dataInfo(n int) int { return whole(len(oidData) + whole(whole(n))) }

// bag has the lengths of the content of a SafeBag with one certificate (RFC
// 7292, 4.2 and 4.2.3), outermost first.
type bag struct{ content, value, cert, octets, name, attributes int }

// nameLength is that of a hex SHA-256 in the two bytes a letter of a BMPString.
const nameLength = 2 * 2 * sha256.Size

func safeBag(der []byte) (b bag) {
	b.octets = whole(len(der))
	b.cert = len(oidX509Certificate) + whole(b.octets)
	b.value = whole(b.cert)
	b.name = len(oidFriendlyName) + whole(whole(nameLength))
	b.attributes = whole(b.name) + len(trusted)
	b.content = len(oidCertBag) + whole(b.value) + whole(b.attributes)
	return b
}

// der is DER that is being written.
type der []byte

// head appends a tag and the length of the n bytes that will follow.
func (w *der) head(tag byte, n int) {
	*w = append(*w, tag)
	switch {
	case n < 0x80:
		*w = append(*w, byte(n))
	case n < 0x100:
		*w = append(*w, 0x81, byte(n))
	case n < 0x10000:
		*w = append(*w, 0x82, byte(n>>8), byte(n))
	case n < 0x1000000:
		*w = append(*w, 0x83, byte(n>>16), byte(n>>8), byte(n))
	default:
		*w = append(*w, 0x84, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
}

// openData appends a ContentInfo of the type data as far as the n bytes in it.
func (w *der) openData(n int) {
	w.head(tagSequence, len(oidData)+whole(whole(n)))
	*w = append(*w, oidData...)
	w.head(tagContext0, whole(n))
	w.head(tagOctets, n)
}

// certificate appends the SafeBag of one. Entries of one name are one entry to
// Java, so its name is its own hash.
func (w *der) certificate(cert []byte) {
	b := safeBag(cert)
	w.head(tagSequence, b.content)
	*w = append(*w, oidCertBag...)
	w.head(tagContext0, b.value)
	w.head(tagSequence, b.cert)
	*w = append(*w, oidX509Certificate...)
	w.head(tagContext0, b.octets)
	w.head(tagOctets, len(cert))
	*w = append(*w, cert...)
	w.head(tagSet, b.attributes)
	// A set's members are in the order of their bytes (X.690, 11.6): the shorter
	// comes first.
	*w = append(*w, trusted...)
	w.head(tagSequence, b.name)
	*w = append(*w, oidFriendlyName...)
	w.head(tagSet, whole(nameLength))
	w.head(tagBMP, nameLength)
	sum := sha256.Sum256(cert)
	var name [2 * sha256.Size]byte
	hex.Encode(name[:], sum[:])
	for _, c := range name {
		*w = append(*w, 0, c)
	}
}

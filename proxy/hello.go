package proxy

// maxHello bounds a ClientHello over all its records.
const maxHello = 64 << 10

// leastHello is the length of version, random and three empty vectors.
const leastHello = 2 + 32 + 1 + 2 + 1

// helloState is what the first bytes of a tunnel are so far.
type helloState int

const (
	helloMore  helloState = iota // the beginning of a ClientHello
	helloWhole                   // a whole ClientHello, its server name read
	helloOther                   // something else
	helloBad                     // TLS whose server name a server might read and we cannot
)

// The record types of TLS that a client may begin with, as some servers take it
// (RFC 8446 section 5.1).
const (
	recordAlert     = 21
	recordHandshake = 22
)

// readHello looks for the server name in the first bytes of a connection: one
// ClientHello, in any number of TLS records (RFC 8446 sections 5.1 and 4.1.2).
// Bytes that can no longer be one are helloOther.
//
// Servers take more than clients send, so what hides a hello from us and not
// from them is helloBad: an empty record before it (OpenSSL), a warning before
// it and any record version below 16 (Go), one that is longer than we read
// (OpenSSL takes 128 KiB), one that we cannot make out.
func readHello(b []byte) (name string, state helloState) {
	var msg []byte
	for {
		if len(b) == 0 {
			return "", helloMore
		}
		if b[0] != recordHandshake && b[0] != recordAlert || len(b) > 1 && b[1] > 15 {
			return "", notHello(msg)
		}
		if len(b) < 5 {
			return "", helloMore
		}
		n := int(b[3])<<8 | int(b[4])
		part := b[5:min(len(b), 5+n)]
		switch {
		case b[0] == recordAlert && (n != 2 || len(part) > 0 && part[0] != 1):
			return "", notHello(msg)
		case b[0] == recordAlert && len(part) > 0:
			return "", helloBad
		case n == 0 && b[1] == 3:
			return "", helloBad
		case n == 0:
			return "", notHello(msg)
		}
		msg = append(msg, part...)
		if len(msg) > 0 && msg[0] != 1 {
			return "", helloOther
		}
		if len(msg) >= 4 {
			size := int(msg[1])<<16 | int(msg[2])<<8 | int(msg[3])
			switch {
			case size < leastHello:
				return "", helloOther
			case size > maxHello:
				return "", helloBad
			case len(msg) >= 4+size:
				return serverName(msg[4 : 4+size])
			}
		}
		if len(part) < n {
			return "", helloMore
		}
		b = b[5+n:]
	}
}

// notHello is what bytes are that cannot go on a hello: if one has begun, a
// server may still make something of it.
func notHello(msg []byte) helloState {
	if len(msg) > 0 {
		return helloBad
	}
	return helloOther
}

// serverName reads the host_name of a ClientHello (RFC 6066 section 3); empty
// where there is none.
func serverName(body []byte) (string, helloState) {
	s := field(body)
	if _, ok := s.take(2 + 32); !ok { // version and random
		return "", helloBad
	}
	for _, width := range []int{1, 2, 1} { // session, cipher suites, compression
		if _, ok := s.prefixed(width); !ok {
			return "", helloBad
		}
	}
	if len(s) == 0 {
		return "", helloWhole
	}
	extensions, ok := s.prefixed(2)
	for ok && len(extensions) > 0 {
		var kind, data field
		if kind, ok = extensions.take(2); !ok {
			break
		}
		if data, ok = extensions.prefixed(2); !ok {
			break
		}
		if kind[0] == 0 && kind[1] == 0 {
			return hostName(data)
		}
	}
	if !ok {
		return "", helloBad
	}
	return "", helloWhole
}

// hostName reads the list of a server_name extension.
func hostName(data field) (string, helloState) {
	list, ok := data.prefixed(2)
	for ok && len(list) > 0 {
		var kind, name field
		if kind, ok = list.take(1); !ok {
			break
		}
		if name, ok = list.prefixed(2); ok && kind[0] == 0 {
			return string(name), helloWhole
		}
	}
	if !ok {
		return "", helloBad
	}
	return "", helloWhole
}

// field is a part of a TLS message that is still to be read.
type field []byte

func (f *field) take(n int) (field, bool) {
	if len(*f) < n {
		return nil, false
	}
	part := (*f)[:n]
	*f = (*f)[n:]
	return part, true
}

// prefixed takes a vector whose length stands before it in width bytes.
func (f *field) prefixed(width int) (field, bool) {
	head, ok := f.take(width)
	if !ok {
		return nil, false
	}
	n := 0
	for _, b := range head {
		n = n<<8 | int(b)
	}
	return f.take(n)
}

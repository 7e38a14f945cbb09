package source

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"time"
)

// promptPatience is how long a person may take to unlock the keychain.
const promptPatience = 2 * time.Minute

// security is the system's own program for the keychain.
const security = "/usr/bin/security"

// goKeyring begins values that the usual Go library (gh stores with it) keeps
// in base64, since the program cannot be given every byte.
const goKeyring = "go-keyring-base64:"

// keyring reads a generic password of the user's keychains by its service and
// account. The system asks the user where the item does not trust security. The
// program prints a value that holds other than ASCII in hexadecimal, which
// nothing tells from a value of digits: such a secret comes as that text.
func (c Config) keyring(ctx context.Context, item Keyring) ([]byte, error) {
	c.LookPath = func(string) (string, error) { return security, nil }
	text, err := c.run(ctx, []string{security, "find-generic-password", "-s", item.Service, "-a", item.User, "-w"}, promptPatience)
	if err != nil {
		return nil, err
	}
	encoded, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte(goKeyring))
	if !ok {
		return text, nil
	}
	value := make([]byte, base64.StdEncoding.DecodedLen(len(encoded)))
	n, err := base64.StdEncoding.Decode(value, encoded)
	if err != nil {
		return nil, errors.New("it begins as a value in base64 and is none")
	}
	return value[:n], nil
}

// KeyringReady says whether there is a keychain to ask; nil: there is one.
func (c Config) KeyringReady(ctx context.Context) error {
	c.LookPath = func(string) (string, error) { return security, nil }
	_, err := c.run(ctx, []string{security, "list-keychains"}, promptPatience)
	return err
}

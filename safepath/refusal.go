package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Refusal says that a path is not granted. Its text names the key of the policy
// that would open it. It matches [fs.ErrPermission].
type Refusal struct {
	// Path is as the caller wrote it.
	Path string
	text string
}

// Error is a sentence about Path, control characters escaped.
func (r *Refusal) Error() string { return shown(r.Path) + " " + r.text }

// Reason is not_granted, of the closed set of reasons.
func (r *Refusal) Reason() string { return "not_granted" }

// Is matches fs.ErrPermission.
func (r *Refusal) Is(target error) bool { return target == fs.ErrPermission }

// TooLarge says that a file has more bytes than were asked for.
type TooLarge struct {
	Path string
	// Size is that of the file, Max what was asked for, both in bytes.
	Size, Max int64
}

// Error names both sizes.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than %d", shown(e.Path), e.Size, e.Max)
}

// errChanged is a race lost: what was opened is not what was looked at.
var errChanged = errors.New("it changes while it is being opened")

// refuse is the refusal of path, whose access is a, where want was needed.
func (f *FS) refuse(path string, a, want Access) error {
	key := "read_paths"
	if want == Write {
		key = "write_paths"
	}
	text := ""
	switch {
	case a == outside:
		text = fmt.Sprintf("leaves cwd (%s): sandbox.%s opens what lies outside", shown(f.cwd), key)
	case a == Masked:
		text = "is hidden by the policy"
	case a == Hidden:
		text = fmt.Sprintf("is hidden: sandbox.cwd_allow_hidden shows a dot name, sandbox.%s a path", key)
	default:
		text = fmt.Sprintf("is read-only: sandbox.write_paths opens it for writing (\".\" is cwd, %s)", shown(f.cwd))
	}
	return &Refusal{Path: path, text: text}
}

// notRegular says what stands where a file is wanted.
func notRegular(path string, m fs.FileMode) error {
	kind := "something that is no file"
	switch {
	case m.IsDir():
		kind = "a folder"
	case m&fs.ModeNamedPipe != 0:
		kind = "a FIFO"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s, not a regular file", shown(path), kind)
}

// shown is path for a message: as it is, or quoted where it holds what a
// terminal or a reader of lines would take for something else.
func shown(path string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if path == "" || !utf8.ValidString(path) || strings.ContainsFunc(path, odd) {
		return strconv.Quote(path)
	}
	return path
}

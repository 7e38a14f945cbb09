package audit

import (
	"errors"
	"fmt"
	"time"
)

// OnFailure says what happens to requests whose record cannot be written.
type OnFailure int

// The ways to go on without a record.
const (
	Block OnFailure = iota // they wait, then are refused
	Warn                   // they go on, Config.Warn is told
)

// QueryMode says what of a query is written.
type QueryMode int

// What of a query is written.
const (
	QueryNames QueryMode = iota // the names
	QueryNone                   // nothing
	QueryFull                   // names and values
)

// PathMode says what is written as the path of a request.
type PathMode int

// What is written as the path.
const (
	PathFull PathMode = iota // the path as sent
	// PathRule writes the pattern of the deciding rule instead, nothing where
	// no rule decided; the hint, which holds the path, is left out too.
	PathRule
)

// Defaults of Config.
const (
	DefaultBlockTimeout = 5 * time.Second
	DefaultMaxSize      = 100 << 20
	DefaultMaxTotal     = 1 << 30
	DefaultKeep         = 1000
)

// Config is what Open needs. The zero value of each field but Session and one
// of State and File is usable.
type Config struct {
	// State is the state folder; the record is State/audit/SESSION.jsonl.
	// Missing folders are made, 0700.
	State string
	// Owner is whose the state folder is, and what is made in it, where root
	// writes the record of a user; nil is who runs this process.
	Owner *Owner
	// File, if set, is the record instead: appended to where it exists.
	File string
	// Session is the session's id: letters and digits, at most 64.
	Session string
	// Start is the session_start record; its Kind is set by Open.
	Start Record

	OnFailure    OnFailure
	BlockTimeout time.Duration // how long Reserve and Append wait; 0 is DefaultBlockTimeout
	MaxSize      int64         // bytes of one file, then the next begins; 0 is DefaultMaxSize
	MaxTotal     int64         // bytes of one session, then OnFailure applies; 0 is DefaultMaxTotal
	Keep         int           // sessions kept in State, this one included; 0 is DefaultKeep

	Query QueryMode
	Path  PathMode
	// Mask writes [credential] over placeholders and secrets in a path, a
	// query name or value, a host, a hint or an argument; nil changes nothing.
	// It is called by many goroutines.
	Mask func(string) string

	// Warn is told, once for each spell, that records cannot be written; nil
	// tells nobody.
	Warn func(error)
	Now  func() time.Time // nil is time.Now

	// Count is told of each record as it takes its place in the chain; nil tells
	// nobody. It is called with the log locked: it must be quick, not call the log
	// back, and keep nothing of the record.
	Count func(*Record)
}

// Owner is a user of the host.
type Owner struct{ UID, GID int }

// filled checks c and puts the defaults in.
func (c Config) filled() (Config, error) {
	if !goodSession(c.Session) {
		return c, fmt.Errorf("opening the record: session %q is not an id", c.Session)
	}
	if c.State == "" && c.File == "" {
		return c, errors.New("opening the record: neither state folder nor file given")
	}
	if c.BlockTimeout < 0 || c.MaxSize < 0 || c.MaxTotal < 0 || c.Keep < 0 {
		return c, errors.New("opening the record: a limit is negative")
	}
	if c.BlockTimeout == 0 {
		c.BlockTimeout = DefaultBlockTimeout
	}
	if c.MaxSize == 0 {
		c.MaxSize = DefaultMaxSize
	}
	if c.MaxTotal == 0 {
		c.MaxTotal = DefaultMaxTotal
	}
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

// Package audit keeps the record: one line of JSON for everything that
// happened, or was refused, on the network of a session, in a file that is
// chained by SHA-256 and survives a full disk and a killed process.
//
// # API
//
//	NewSession() string                                  // a ULID
//	Open(Config) (*Log, error)                           // the JSONL file, locked, chain continued
//	type Sink interface {                                // *Log is one
//		Reserve(ctx context.Context) error           // room for one final record; errors have Reason()
//		Append(records ...*Record) error             // fills r.Time (if zero), r.Seq, r.Session; r.Reserved uses the room
//		Release()                                    // gives unused room back
//	}
//	(*Log) Close(reason string) error                    // session_end with counts, trim, unlock
//	(*Log) Path() string; Counts() Counts; Lost() int64; Err() error
//	SHA256(b []byte) string                              // "sha256:…", the form of policy and prev
//
//	FileChain(path) (Chain, error)                       // the files of one --audit file
//	Sessions(state) ([]Session, error)                   // the sessions of a state folder, oldest first
//	Find(state, prefix) (Session, error)                 // one of them
//	List(ctx, []Chain, Filter) iter.Seq2[Line, error]    // what matches
//	Tail(ctx, Chain, Filter, ends bool) iter.Seq2[Line, error] // the same, then what comes
//	Follow(ctx, state, Filter) iter.Seq2[Line, error]    // the newest session, and all that start later
//	Verify(ctx, Chain) (Report, error)                   // changed, missing, reordered; open, cut
//	Parse(line []byte) (Record, error)
//	AppendConsole(dst []byte, r *Record, colour bool) []byte // one line for a person
//
// # A request
//
// A denied request is appended when it is judged, before it is answered. For
// an allowed one the caller calls Reserve before the first byte leaves,
// appends a request_open where the design asks for one, and in the end either
// appends the final record with Reserved set, or calls Release. Reserve and
// Append fail with an *Unavailable, whose Reason is audit_unavailable.
//
// # What is acknowledged
//
// With OnFailure Block (the zero value) a record is acknowledged when Append
// returns nil: its line, and every line before it, has then been given to the
// kernel by write(2), so killing the process cannot lose it. A reservation is
// acknowledged when Reserve returns nil: the disk blocks for the record are
// then allocated (fallocate), so a full disk cannot lose it either; a record
// that outgrew its room on a full disk is written with its texts cut. A record
// whose Append failed may still be written later, in its place in the chain.
// The file is synced to the medium when it is rotated, not for each record nor
// at the end: what a power failure takes is at the end of the file, and opening
// the file again moves a torn last line aside.
//
// With OnFailure Warn nothing waits and nothing fails: Reserve does nothing,
// Append returns when the record is in the buffer, and records that cannot be
// written are counted by Lost and told to Config.Warn.
//
// # The chain
//
// prev is the SHA-256 of the line before, without its line feed; it is empty
// in the first line of a chain and goes on over rotated files and over the
// sessions that append to one --audit file. seq counts from 1 in each session.
// The chain is not keyed: it finds accidents and careless edits, and whoever
// holds the last hash finds careful ones.
package audit

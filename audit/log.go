package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrClosed says that the record was closed.
var ErrClosed = errors.New("the record is closed")

// Log is the JSONL file of a session, a Sink. Use Open to make one. All its
// methods may be called by many goroutines.
type Log struct {
	cfg   Config
	place *place
	locks *os.File // the chain's first file, which bears the lock
	path  string

	mu     sync.Mutex
	seq    uint64
	prev   []byte // hash of the last line that was buffered
	counts Counts
	lost   int64
	closed bool

	buf     []byte // lines that wait for the writer
	cuts    []int  // offsets in buf where a new file begins
	planned int64  // bytes of the file that the end of buf will lie in
	batch   *batch // whoever waits for buf, nil if nobody does
	writing bool   // somebody is the writer
	spare   []byte // the writer's last buffer, to be used again

	room

	out       // the writer's alone
	wg        sync.WaitGroup
	quit      chan struct{} // closed when Close gives up on a disk that does not take the rest
	quitting  sync.Once
	warnState warnState
}

// batch is a number of lines that are written together.
type batch struct {
	done chan struct{}
	err  error // read after done
}

// Open opens the record of a session, writes what there is to say about a torn
// line, and session_start. The first file of the chain is locked; one that
// another session holds is ErrInUse.
func Open(c Config) (*Log, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	p, err := placeOf(&c)
	if err != nil {
		return nil, fmt.Errorf("opening the record: %w", err)
	}
	l, err := open(c, p)
	if err != nil {
		p.root.Close()
		return nil, fmt.Errorf("opening the record: %w", err)
	}
	return l, nil
}

func open(c Config, p *place) (_ *Log, err error) {
	first, err := p.lock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(p.dir, p.name(1)), err)
	}
	l := &Log{
		cfg: c, place: p, locks: first, path: filepath.Join(p.dir, p.name(1)),
		counts: make(Counts), quit: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			l.dropFiles()
		}
	}()
	torn, err := l.openLast()
	if err != nil {
		return nil, err
	}
	if !l.holdEnd() {
		return nil, &Unavailable{errTotal}
	}
	if torn {
		if err := l.Append(&Record{Kind: KindRecovered}); err != nil {
			return nil, err
		}
	}
	start := c.Start
	start.Kind = KindSessionStart
	if err := l.Append(&start); err != nil {
		return nil, err
	}
	if c.File == "" {
		// Beside whatever the session begins with; Close waits for it.
		l.wg.Go(func() {
			// A record that cannot be tidied can still be written.
			if err := prune(p.root, c.Session, c.Keep); err != nil {
				l.warn(fmt.Errorf("removing old records: %w", err))
			}
		})
	}
	return l, nil
}

// openLast opens the last file of the chain, where the next line goes, and
// moves aside what is torn at its end.
func (l *Log) openLast() (torn bool, err error) {
	n, err := l.place.last()
	if err != nil {
		return false, err
	}
	l.file, l.number = l.locks, max(n, 1)
	if n > 1 {
		if l.file, err = openFile(l.place.root, l.place.name(n), os.O_RDWR|os.O_APPEND); err != nil {
			l.file = l.locks
			return false, err
		}
	}
	e, err := readEnding(l.file)
	if err != nil {
		return false, err
	}
	if e.torn > 0 {
		if err := moveAside(l.place.root, l.place.name(l.number), l.file, e); err != nil {
			return false, err
		}
	}
	if e.size == 0 && n > 1 {
		// The session died between making the file and its first line.
		if e.prev, err = l.prevOf(n - 1); err != nil {
			return false, err
		}
	}
	l.size, l.planned, l.prev, l.allocated = e.size, e.size, e.prev, e.size
	return e.torn > 0, nil
}

func (l *Log) prevOf(n int) ([]byte, error) {
	f, err := openFile(l.place.root, l.place.name(n), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := readEnding(f)
	return e.prev, err
}

// Append writes records, in this order and at once. See the package comment for
// what it means that it returned nil. With Block it waits for room and for the
// lines to be written, BlockTimeout at most, and fails with *Unavailable, the
// others being written all the same; with Warn it fails only for a kind that is
// none, and behind Close.
func (l *Log) Append(records ...*Record) error {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	var failed error
	held, waiting := false, false
	for i, r := range records {
		var err error
		if held, err = l.add(r, e); held && i < len(records)-1 {
			waiting = true
			l.mu.Unlock() // whoever writes in the meantime writes it before what follows
		}
		failed = errors.Join(failed, err)
	}
	if !held {
		if !waiting {
			return failed
		}
		if l.mu.Lock(); len(l.buf) == 0 { // it was written, or is being written
			l.mu.Unlock()
			return failed
		}
	}
	return errors.Join(failed, l.commit()) // unlocks
}

// add buffers a record, for the next commit to write. Where it did it holds the
// lock.
func (l *Log) add(r *Record, e *encoder) (held bool, err error) {
	if !r.Kind.known() {
		return false, &Unavailable{fmt.Errorf("kind %q is not one", r.Kind)}
	}
	body := e.encode(&l.cfg, r, false)
	l.mu.Lock()
	if l.closed {
		l.dropReserved(r)
		l.mu.Unlock()
		return false, &Unavailable{ErrClosed}
	}
	claimed, err := l.claimFor(r, e, &body)
	if err != nil {
		l.lost++
		l.mu.Unlock()
		if l.cfg.OnFailure == Warn {
			l.warn(err)
			return false, nil
		}
		return false, err
	}
	l.buffer(r, body, claimed)
	return true, nil
}

// buffer gives r its place in the chain. The lock is held, and claimed bytes
// of room are ours.
func (l *Log) buffer(r *Record, body []byte, claimed int64) {
	if r.Time.IsZero() {
		r.Time = l.cfg.Now()
	}
	l.seq++
	r.Seq, r.Session = l.seq, l.cfg.Session
	from := len(l.buf)
	buf, sum := frame(l.buf, r.Time, l.seq, body, l.prev)
	l.buf, l.prev = buf, appendHash(l.prev[:0], sum)

	n := int64(len(buf) - from)
	l.free += claimed - n
	l.total += n
	if l.planned > 0 && l.planned+n > l.cfg.MaxSize {
		l.cuts = append(l.cuts, from)
		l.planned = 0
	}
	l.planned += n
	l.counts.add(r.Kind, r.Verdict, 1)
	if l.cfg.Count != nil {
		l.cfg.Count(r)
	}
}

// Path returns the name of the chain's first file.
func (l *Log) Path() string { return l.path }

// Counts returns how many records there are so far, of this session.
func (l *Log) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copyCounts()
}

func (l *Log) copyCounts() Counts {
	c := make(Counts, len(l.counts))
	for k, verdicts := range l.counts {
		for v, n := range verdicts {
			c.add(k, v, n)
		}
	}
	return c
}

// Lost returns how many records could not be had: with Warn they happened
// unrecorded, with Block they did not happen.
func (l *Log) Lost() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Err returns what keeps the writer from writing at the moment, nil if nothing
// does.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// Close writes session_end, for which room was held from the start, and closes
// the file. What the disk does not take within BlockTimeout is given up, with
// an error.
func (l *Log) Close(reason string) error {
	end := &Record{Kind: KindSessionEnd, Reason: reason}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	l.wakeAll()
	for l.frozen { // a file is being made or grown
		l.waitWake()
	}
	end.Counts = l.copyCounts()
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	l.reserved -= endRoom
	l.buffer(end, e.encode(&l.cfg, end, false), endRoom)
	err := l.commitWait(l.cfg.BlockTimeout)
	l.quitting.Do(func() { close(l.quit) })
	l.wg.Wait()
	if err == nil {
		err = l.trim()
	}
	return errors.Join(err, l.dropFiles())
}

// trim gives back the blocks behind the end. It does not wait for the medium,
// which takes longer than a short command and guards against nothing but a power
// failure: the kernel writes it within half a minute.
func (l *Log) trim() error {
	if err := l.file.Truncate(l.size); err != nil {
		return fmt.Errorf("closing the record: %w", err)
	}
	return nil
}

// dropFiles closes what is open; closing the first file gives up the lock.
func (l *Log) dropFiles() error {
	var err error
	if l.file != nil && l.file != l.locks {
		err = l.file.Close()
	}
	return errors.Join(err, l.locks.Close(), l.place.root.Close())
}

// warnState makes one warning of a spell of failures.
type warnState struct {
	mu   sync.Mutex
	last time.Time
}

// warnEvery is how often a spell that goes on is told again.
const warnEvery = time.Minute

func (l *Log) warn(err error) {
	if l.cfg.Warn == nil {
		return
	}
	l.warnState.mu.Lock()
	now := time.Now()
	quiet := !l.warnState.last.IsZero() && now.Sub(l.warnState.last) < warnEvery
	if !quiet {
		l.warnState.last = now
	}
	l.warnState.mu.Unlock()
	if !quiet {
		l.cfg.Warn(err)
	}
}

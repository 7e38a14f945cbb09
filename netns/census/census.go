//go:build linux

package census

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tick = 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
	// countTime bounds one count: a tree that forks without end must not keep it
	// from coming to one.
	countTime = time.Second
	// memfdEvery is how many counts use what was found of memfds: that is a walk
	// through all descriptors.
	memfdEvery = 4
)

// A Census counts one tree. It is for one goroutine.
type Census struct {
	proc    *os.File // of the pid namespace
	shm     *os.File
	private []*os.File // file systems in memory
	memfds  uint64     // device of every memfd
	buffer  []byte

	counts  int
	held    uint64 // in memfds, at the last look
	last    time.Time
	known   map[identity]uint64
	counted uint64 // ticks of the living and of the dead that were waited for, at their highest
	sampled float64
}

// identity is a process: numbers come again.
type identity struct {
	pid   string
	start uint64
}

// Inside are files opened inside by somebody who is trusted, while nothing else
// runs there.
type Inside struct {
	Proc     *os.File // /proc, of the sandbox's pid namespace
	Segments *os.File // /proc/sysvipc/shm
	Mounts   *os.File // mountinfo of a process inside
	Root     *os.File // /, by O_PATH
}

// New takes the files over.
func New(in Inside) (*Census, error) {
	c := &Census{proc: in.Proc, shm: in.Segments, buffer: make([]byte, 64<<10), known: map[identity]uint64{}}
	err := c.look(in)
	if err := errors.Join(err, in.Mounts.Close(), in.Root.Close()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Census) look(in Inside) (err error) {
	for _, f := range []*os.File{in.Proc, in.Segments, in.Mounts} {
		var st unix.Statfs_t
		err := unix.Fstatfs(int(f.Fd()), &st)
		if err == nil && st.Type != unix.PROC_SUPER_MAGIC {
			err = errors.New("what came from inside is none")
		}
		if err != nil {
			return fmt.Errorf("opening the sandbox's /proc: %w", err)
		}
	}
	if c.memfds, err = memfdDevice(); err == nil {
		c.private, err = privateMounts(in.Mounts, int(in.Root.Fd()))
	}
	return err
}

// Close closes what New took.
func (c *Census) Close() error {
	var errs []error
	for _, f := range append([]*os.File{c.proc, c.shm}, c.private...) {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Sum is what the tree uses.
type Sum struct {
	Memory uint64        // bytes
	CPU    time.Duration // so far
	Tasks  uint64        // processes and threads
}

// Count counts. A sum of memory above limit has been taken by proportion; 0
// counts none.
func (c *Census) Count(limit uint64) (Sum, error) {
	now := time.Now()
	end := now.Add(countTime)
	var sum Sum
	var ticks uint64
	var mapped memory
	var pids []string
	seen := make(map[identity]uint64, len(c.known))
	boot, err := sinceBoot()
	if err != nil {
		return sum, err
	}
	since := now.Sub(c.last)
	if c.last.IsZero() {
		since = 0
	}
	delta := 0.0
	err = c.each(func(pid string) bool {
		text, err := c.read(pid + "/stat")
		if err != nil {
			return time.Now().Before(end) // it has ended
		}
		p, err := parseStat(pid, text)
		if err != nil {
			return true
		}
		sum.Tasks += p.tasks
		ticks += p.own + p.dead
		id := identity{pid, p.start}
		before, old := c.known[id]
		if old {
			delta += float64(p.own) - float64(min(before, p.own))
		} else {
			delta += c.stoodFor(p, boot, since)
		}
		seen[id] = p.own
		if limit > 0 {
			if text, err := c.read(pid + "/status"); err == nil {
				m := parseKB(text, "RssAnon", "RssShmem")
				mapped.anonymous += m.anonymous
				mapped.shared += m.shared
				pids = append(pids, pid)
			}
		}
		return time.Now().Before(end)
	})
	if err != nil {
		return sum, err
	}
	c.known, c.last = seen, now
	c.counted = max(c.counted, ticks)
	c.sampled += min(delta, float64(since+tick)/float64(tick)*float64(runtime.NumCPU()))
	sum.CPU = time.Duration(max(c.counted, uint64(c.sampled/1.5))) * tick
	if limit > 0 {
		sum.Memory = c.memory(pids, mapped, limit, end)
	}
	return sum, nil
}

// stoodFor is the time of a process that was not there at the last count, in
// ticks, and of its like that came and went in between. Ticks are too coarse for
// it, so it is asked in nanoseconds where the kernel has them.
func (c *Census) stoodFor(p process, boot uint64, since time.Duration) float64 {
	own := float64(p.own)
	if text, err := c.read(p.pid + "/schedstat"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		if ran, err := strconv.ParseUint(first, 10, 64); err == nil {
			own = max(own, float64(ran)/float64(tick))
		}
	}
	age, between := float64(boot)-float64(min(p.start, boot)), float64(since)/float64(tick)
	return own * max(1, between/max(age, 0.5))
}

// memory is what the tree has, by proportion where it would be too much.
func (c *Census) memory(pids []string, mapped memory, limit uint64, end time.Time) uint64 {
	if c.counts%memfdEvery == 0 {
		c.held = c.openMemfds(pids, end)
	}
	c.counts++
	held := c.held + c.files()
	sum := mapped.anonymous + max(mapped.shared, held)
	if sum <= limit {
		return sum
	}
	mapped = memory{}
	for _, pid := range pids {
		m := memory{}
		if text, err := c.read(pid + "/smaps_rollup"); err == nil && time.Now().Before(end) {
			m = parseKB(text, "Pss_Anon", "Pss_Shmem")
		} else if text, err := c.read(pid + "/status"); err == nil {
			m = parseKB(text, "RssAnon", "RssShmem")
		}
		mapped.anonymous += m.anonymous
		mapped.shared += m.shared
	}
	return mapped.anonymous + max(mapped.shared, held)
}

// sinceBoot is now, as starttime of stat is.
func sinceBoot() (uint64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("reading the clock: %w", err)
	}
	return uint64(time.Duration(t.Nano()) / tick), nil
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Each scene is played by a process with a file system of 1 MiB of its own.
func TestFullDisk(t *testing.T) {
	for _, scene := range []string{"reserved", "room_comes_back", "warn", "rotation", "start", "file_limit", "file_limit_given_up"} {
		t.Run(scene, func(t *testing.T) {
			cmd := roleCommand(t, "disk", scene, t.TempDir())
			ownMounts(cmd)
			if out, err := cmd.Output(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// diskRole plays one scene.
func diskRole(scene, dir string) int {
	d := disk{dir: dir, path: filepath.Join(dir, "a.jsonl")}
	err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700")
	}
	if err == nil {
		err = map[string]func() error{
			"reserved": d.reserved, "room_comes_back": d.roomComesBack, "warn": d.warn, "rotation": d.rotation,
			"start": d.start, "file_limit": d.fileLimit, "file_limit_given_up": d.fileLimitGivenUp,
		}[scene]()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, scene+":", err)
		return 1
	}
	return 0
}

type disk struct{ dir, path string }

func (d disk) open(c Config) (*Log, error) {
	c.File, c.Session = d.path, "S1"
	if c.BlockTimeout == 0 {
		c.BlockTimeout = 200 * time.Millisecond
	}
	return Open(c)
}

// fill leaves no block on the disk.
func (d disk) fill() error {
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (d disk) free() error { return os.Remove(filepath.Join(d.dir, "filler")) }

// verify checks the chain, and how many requests of a verdict it holds.
func (d disk) verify(verdict string, want int) error {
	report, err := Verify(context.Background(), Chain{Path: d.path})
	if err != nil {
		return err
	}
	if !report.OK() || report.Torn != 0 {
		return fmt.Errorf("chain: %v, torn %d", report.Faults, report.Torn)
	}
	n := 0
	for _, err := range List(context.Background(), []Chain{{Path: d.path}}, Filter{Kind: KindRequest, Verdict: verdict}) {
		if err != nil {
			return err
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%d records, want %d", n, want)
	}
	return nil
}

// fillRoom uses up what was allocated ahead, so that the next record needs the
// disk.
func fillRoom(l *Log) (n int, err error) {
	for {
		r := sampleRequest()
		r.Verdict = "filling"
		if err := l.Append(r); err != nil {
			return n, unavailable(err)
		}
		n++
	}
}

// What was reserved is written, however long, on a disk without a free block.
func (d disk) reserved() error {
	l, err := d.open(Config{})
	if err != nil {
		return err
	}
	const held = 40
	for range held {
		if err := l.Reserve(context.Background()); err != nil {
			return err
		}
	}
	if err := d.fill(); err != nil {
		return err
	}
	filled, err := fillRoom(l)
	if err != nil {
		return err
	}
	at := time.Now()
	if err := unavailable(l.Reserve(context.Background())); err != nil {
		return err
	}
	if took := time.Since(at); took < 200*time.Millisecond || took > 2*time.Second {
		return fmt.Errorf("refused after %v", took)
	}
	for i := range held {
		r := sampleRequest()
		r.Verdict, r.Reserved = "allow", true
		if i%2 == 0 {
			r.Rule, r.Path, r.Query = strings.Repeat("\x01", 3000), strings.Repeat("/\x02", 1000), strings.Repeat("n&", 64)
		}
		if err := l.Append(r); err != nil {
			return fmt.Errorf("reserved record %d: %w", i, err)
		}
	}
	if err := l.Close("exit"); err != nil {
		return err
	}
	return errors.Join(d.verify("allow", held), d.verify("filling", filled))
}

// One who waits goes on when there is room again, or when room is released.
func (d disk) roomComesBack() error {
	l, err := d.open(Config{BlockTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	if err := l.Reserve(context.Background()); err != nil {
		return err
	}
	if err := d.fill(); err != nil {
		return err
	}
	l.cfg.BlockTimeout = time.Millisecond
	filled, err := fillRoom(l)
	if err != nil {
		return err
	}
	l.cfg.BlockTimeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := l.Reserve(ctx); !errors.Is(err, context.DeadlineExceeded) || unavailable(err) != nil {
		return fmt.Errorf("with a deadline: %v", err)
	}
	for i, give := range []func() error{func() error { l.Release(); return nil }, d.free} {
		got := make(chan error, 1)
		go func() { got <- l.Reserve(context.Background()) }()
		time.Sleep(100 * time.Millisecond)
		at := time.Now()
		if err := give(); err != nil {
			return err
		}
		if err := <-got; err != nil {
			return fmt.Errorf("wait %d: %w", i, err)
		}
		if took := time.Since(at); took > time.Second {
			return fmt.Errorf("wait %d: woken after %v", i, took)
		}
	}
	if err := l.Close(""); err != nil {
		return err
	}
	return d.verify("filling", filled)
}

// With Warn nothing fails, and what is lost is counted and told once.
func (d disk) warn() error {
	var told atomic.Int32
	l, err := d.open(Config{OnFailure: Warn, Warn: func(error) { told.Add(1) }})
	if err != nil {
		return err
	}
	if err := d.fill(); err != nil {
		return err
	}
	const tried = 3000
	for range tried {
		if err := l.Reserve(context.Background()); err != nil {
			return err
		}
		r := sampleRequest()
		r.Reserved = true
		if err := l.Append(r); err != nil {
			return err
		}
	}
	lost := l.Lost()
	if lost == 0 || told.Load() != 1 {
		return fmt.Errorf("%d lost, told %d times", lost, told.Load())
	}
	if err := d.free(); err != nil {
		return err
	}
	if err := l.Append(sampleRequest()); err != nil {
		return err
	}
	if l.Lost() != lost {
		return errors.New("lost on a disk with room")
	}
	if err := l.Close(""); err != nil {
		return err
	}
	return d.verify("", tried+1-int(lost))
}

// Where the next file cannot be had the current one goes on, and nothing that
// was reserved is lost.
func (d disk) rotation() error {
	l, err := d.open(Config{MaxSize: 20 << 10})
	if err != nil {
		return err
	}
	for range 10 {
		if err := l.Reserve(context.Background()); err != nil {
			return err
		}
	}
	if err := d.fill(); err != nil {
		return err
	}
	filled, err := fillRoom(l)
	if err != nil {
		return err
	}
	if filled < 100 {
		return fmt.Errorf("only %d records fit", filled)
	}
	if err := d.free(); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			r := sampleRequest()
			r.Verdict, r.Reserved = "allow", true
			if err := l.Append(r); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	wg.Wait()
	if err := l.Close(""); err != nil {
		return err
	}
	if n := len((Chain{Path: d.path}).Files()); n < 2 {
		return fmt.Errorf("%d files", n)
	}
	return errors.Join(d.verify("allow", 10), d.verify("filling", filled))
}

// A full disk stops a start, and nothing stops the next one.
func (d disk) start() error {
	if err := d.fill(); err != nil {
		return err
	}
	if _, err := d.open(Config{}); unavailable(err) != nil {
		return unavailable(err)
	}
	l, err := d.open(Config{OnFailure: Warn})
	if err != nil {
		return err
	}
	l.Close("")
	if err := d.free(); err != nil {
		return err
	}
	l, err = d.open(Config{})
	if err != nil {
		return err
	}
	if err := l.Close(""); err != nil {
		return err
	}
	return d.verify("", 0)
}

// limitFiles makes a write(2) beyond n bytes fail, or stop in the middle.
func limitFiles(n uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: 1 << 40})
}

// A line of which the disk took a part is finished when it takes the rest.
func (d disk) fileLimit() error {
	l, err := d.open(Config{})
	if err != nil {
		return err
	}
	if err := limitFiles(30000); err != nil {
		return err
	}
	filled, err := fillRoom(l)
	if err != nil {
		return err
	}
	if l.Err() == nil {
		return errors.New("the writer is not said to be stuck")
	}
	if err := unavailable(l.Reserve(context.Background())); err != nil {
		return err
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	if err := l.Append(sampleRequest()); err != nil {
		return err
	}
	if l.Err() != nil {
		return fmt.Errorf("still stuck: %w", l.Err())
	}
	if err := l.Close(""); err != nil {
		return err
	}
	return d.verify("filling", filled+1) // the one that was not acknowledged came after all
}

// What Close gives up is torn, and the next session goes on.
func (d disk) fileLimitGivenUp() error {
	l, err := d.open(Config{})
	if err != nil {
		return err
	}
	if err := limitFiles(30000); err != nil {
		return err
	}
	filled, err := fillRoom(l)
	if err != nil {
		return err
	}
	if err := l.Close(""); err == nil {
		return errors.New("closed without an error")
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	if l, err = d.open(Config{}); err != nil {
		return err
	}
	if err := l.Close(""); err != nil {
		return err
	}
	return d.verify("filling", filled)
}

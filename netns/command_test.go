//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// stands are what tests do with a session that has no program. What they print
// is looked at.
var stands = map[string]func(context.Context, *stand){
	"one after another": func(ctx context.Context, s *stand) {
		s.sh(ctx, "echo $PPID $HOME > /tmp/kept; echo out; echo err >&2; exit 3")
		s.sh(ctx, `[ "$(cat /tmp/kept)" = "$PPID $HOME" ] && echo same`)
		s.sh(ctx, "kill -TERM $$")
		s.do(ctx, Command{Argv: []string{"none-such"}})
		s.do(ctx, Command{Argv: []string{"/usr"}})
		s.do(ctx, Command{Argv: []string{"pwd"}, Cwd: "/usr"})
		s.do(ctx, Command{Argv: []string{"pwd"}, Cwd: "/none"})
		s.do(ctx, Command{Argv: []string{"sh", "-c", "echo $A $USER; pwd"}, Env: []string{"A=1", "USER=else"}})
		s.sh(ctx, "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; echo again > /dev/stdout")
	},
	"side by side": func(ctx context.Context, s *stand) {
		begin := time.Now()
		var wg sync.WaitGroup
		codes := make([]string, 8)
		for i := range codes {
			wg.Go(func() {
				codes[i], _, _ = s.run(ctx, Command{Argv: []string{"sh", "-c", fmt.Sprintf("setsid sleep 1000 & sleep 0.5; echo %d; exit %[1]d", i)}})
			})
		}
		wg.Wait()
		fmt.Println(codes, time.Since(begin) < 3*time.Second)
	},
	"kill": func(ctx context.Context, s *stand) {
		for _, script := range []string{
			"sleep 1000", "trap '' TERM INT; sleep 1000 & wait", "setsid sleep 1000 & sleep 1000",
			"(setsid sh -c 'sleep 1000 & sleep 1000' &) ; sleep 1000", "kill -STOP $$",
		} {
			p, _, err := s.start(ctx, Command{Argv: []string{"sh", "-c", script}})
			if err != nil {
				fmt.Println(err)
				continue
			}
			time.Sleep(200 * time.Millisecond)
			fmt.Println(p.Kill())
			s.await(p)
		}
		s.sh(ctx, s.left())
	},
	"leave": func(ctx context.Context, s *stand) {
		s.sh(ctx, "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'trap \"\" HUP TERM; sleep 1000 & exec sleep 1000' &) ; sleep 0.1; echo left")
		s.sh(ctx, s.left())
		s.sh(ctx, `python3 -c '
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 0, 0, 0, 0) # its orphans go elsewhere
for n in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execlp("sleep", "sleep", "1000")
        os._exit(0)
time.sleep(0.2)
'; echo given up`)
		s.sh(ctx, s.left())
		// A bomb of orphans that runs from its killer.
		s.sh(ctx, `python3 -c '
import os, time
os.setsid()
for n in range(20):
    if os.fork() == 0:
        end = time.time() + 60
        while time.time() < end:
            if os.fork(): os._exit(0)
        os._exit(0)
'; echo bombed`)
		s.sh(ctx, s.left())
	},
	"launcher killed": func(ctx context.Context, s *stand) {
		s.died(ctx, "sleep 0.1; kill -KILL $PPID; sleep 1000")
	},
	"all killed": func(ctx context.Context, s *stand) {
		s.died(ctx, "sleep 0.1; kill -KILL -1; sleep 1000")
	},
	"launcher stopped": func(ctx context.Context, s *stand) {
		p, _, err := s.start(ctx, Command{Argv: []string{"sh", "-c", "sleep 0.1; kill -STOP $PPID; sleep 1000"}})
		if err != nil {
			fmt.Println(err)
			return
		}
		time.Sleep(200 * time.Millisecond)
		fmt.Println(errors.Is(p.Kill(), os.ErrDeadlineExceeded))
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, _, err = s.start(ctx, Command{Argv: []string{"true"}})
		fmt.Println(errors.Is(err, os.ErrDeadlineExceeded))
	},
	"thousand": func(ctx context.Context, s *stand) {
		// The launcher may not open more than it needs now.
		s.sh(ctx, "prlimit --nofile=40:40 --pid $PPID")
		before := s.inside(ctx)
		fds, _ := os.ReadDir("/proc/self/fd")
		begin := time.Now()
		for range 1000 {
			if code, _, _ := s.run(ctx, Command{Argv: []string{"true"}}); code != "0" {
				fmt.Println(code)
			}
		}
		each := time.Since(begin) / 1000
		now, _ := os.ReadDir("/proc/self/fd")
		after := s.inside(ctx)
		fmt.Println(len(now) > len(fds), after == before)
		if after != before {
			fmt.Fprintf(os.Stderr, "%.60q and now %.60q\n", before, after)
		}
		fmt.Fprintln(os.Stderr, "one takes", each)
	},
}

// stand is a session without a program, in the process that has it.
type stand struct{ *Session }

func doStand(ctx context.Context, s *Session, name string) int {
	stands[name](ctx, &stand{s})
	return 0
}

// left is a script that prints the processes there are beside the chain's and
// its own.
func (s *stand) left() string { return `ps -e -o comm= | grep -c 'sleep\|python'` }

// inside is what the launcher has open, and the processes, mounts and files of
// the sandbox.
func (s *stand) inside(ctx context.Context) string {
	_, out, _ := s.run(ctx, Command{Argv: []string{"sh", "-c", "ps -e -o comm= > /tmp/p; sort -u /tmp/p | grep -vx -e exe -e launcher; rm /tmp/p; cat /proc/self/mountinfo; find /tmp /dev/shm $HOME; df --output=used /tmp"}})
	return out
}

func (s *stand) start(ctx context.Context, c Command) (*Process, []chan string, error) {
	texts := make([]chan string, 2)
	for i, end := range []**os.File{&c.Stdout, &c.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		*end, texts[i] = w, make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(r)
			_ = r.Close()
			texts[i] <- string(text)
		}()
	}
	p, err := s.Exec(ctx, c)
	return p, texts, err
}

func (s *stand) run(ctx context.Context, c Command) (code, stdout, stderr string) {
	p, texts, err := s.start(ctx, c)
	if err != nil {
		var no *NotStarted
		errors.As(err, &no)
		return fmt.Sprint(no != nil, " ", err), "", ""
	}
	select {
	case <-p.Ended():
	case <-s.Ended():
		return "session ended", "", ""
	}
	return fmt.Sprint(p.Code()), <-texts[0], <-texts[1]
}

func (s *stand) do(ctx context.Context, c Command) {
	code, stdout, stderr := s.run(ctx, c)
	fmt.Printf("%s %q %q\n", code, stdout, stderr)
}

func (s *stand) sh(ctx context.Context, script string) {
	s.do(ctx, Command{Argv: []string{"sh", "-c", script}})
}

func (s *stand) await(p *Process) {
	select {
	case <-p.Ended():
		fmt.Println(p.Code())
	case <-time.After(5 * time.Second):
		fmt.Println("still there")
	}
}

// died runs a script that ends the session.
func (s *stand) died(ctx context.Context, script string) {
	s.sh(ctx, script)
	_, err := s.Exec(ctx, Command{Argv: []string{"true"}})
	fmt.Println(err != nil)
	fmt.Println(s.Wait())
}

// A session without a program runs commands, one after another and side by
// side, and nothing of one outlives it, whatever it does.
func TestCommands(t *testing.T) {
	for name, want := range map[string]string{
		"one after another": `3 "out\n" "err\n"
0 "same\n" ""
143 "" ""
true starting the program: none-such: not found in the sandbox "" ""
true starting the program: /usr: a folder is no program "" ""
0 "/usr\n" ""
true starting the program: /none: entering the working folder: no such file or directory "" ""
0 "1 else\nCWD\n" ""
0 "/dev/null\n4\nagain\n" ""
`,
		"side by side": "[0 1 2 3 4 5 6 7] true\n",
		"kill":         strings.Repeat("<nil>\n137\n", 5) + "1 \"0\\n\" \"\"\n",
		"leave": `0 "left\n" ""
1 "0\n" ""
0 "given up\n" ""
1 "0\n" ""
0 "bombed\n" ""
1 "0\n" ""
`,
		"launcher killed":  "session ended \"\" \"\"\ntrue\n137 <nil>\n",
		"all killed":       "session ended \"\" \"\"\ntrue\n137 <nil>\n",
		"launcher stopped": "true\ntrue\n",
		"thousand":         "0 \"\" \"\"\nfalse true\n",
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			r := run{As: user(), Stand: name}
			got := r.do(t)
			if want = strings.ReplaceAll(want, "CWD", r.Cwd); got.Stdout != want || got.Code != 0 {
				t.Errorf("got %+v, want\n%s", got, want)
			}
			t.Log(got.Stderr)
		})
	}
}

// A session with a program takes no commands, and a launcher that has none
// refuses what comes out of turn.
func TestCommandOutOfTurn(t *testing.T) {
	s := &Session{cfg: Config{Argv: []string{"true"}}}
	if _, err := s.Exec(t.Context(), Command{Argv: []string{"true"}}); err == nil {
		t.Error("a command runs beside a program")
	}
	s = &Session{cfg: Config{Cwd: "/"}}
	for _, c := range []Command{{}, {Argv: []string{"x"}, Cwd: "relative"}} {
		if _, err := s.Exec(t.Context(), c); err == nil {
			t.Errorf("%+v runs", c)
		}
	}
}

// What is read of a process is its parent, whatever name it has.
func TestParent(t *testing.T) {
	if got := parent("/proc/self/stat"); got != os.Getppid() {
		t.Errorf("parent of this process is %d, not %d", got, os.Getppid())
	}
	path := t.TempDir() + "/stat"
	for text, want := range map[string]int{"7 (a) R 1 (b)) S 42 7\n": 42, "": 0, "7 (a)": 0, "7 (a) S x 1": 0} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := parent(path); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

package netns

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func testContext() context.Context { return context.Background() }

// selfTest is what a start must prove.
func selfTest(ctx context.Context, s *Session, cfg Config) error {
	checks := []Check{{Kind: CheckAbsent, Path: "/root"}, {Kind: CheckReadOnly, Path: "/usr"}}
	if cfg.Network != HostNetwork {
		checks = append(checks, Check{Kind: CheckDevices}, Check{Kind: CheckRoutes})
	}
	failures, err := s.Check(ctx, checks...)
	if err != nil {
		return err
	}
	if len(failures) > 0 {
		return fmt.Errorf("self-test: %s", strings.Join(failures, "; "))
	}
	return nil
}

// users are the two kinds of caller.
var users = map[string]int{"user": 12345, "root": 0}

// The thin chain: a program runs, sees the proxy, and its status is the run's.
func TestRun(t *testing.T) {
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			r := run{As: uid, Network: Captured, Check: true,
				Shell: "curl -sS http://a.test/; curl -sS --noproxy '*' http://203.0.113.9/ http://[2001:db8::9]/; exit 7"}
			start := time.Now()
			got := r.do(t)
			t.Logf("%v\n%+v", time.Since(start), got)
			want := "explicit 127.0.0.1:3128\ncaptured 203.0.113.9:80\ncaptured [2001:db8::9]:80\n"
			if got.Stdout != want || got.Code != 7 {
				t.Errorf("got %+v, want stdout %q and status 7", got, want)
			}
		})
	}
}

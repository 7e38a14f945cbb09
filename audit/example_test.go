package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/egressd/egressd/audit"
)

// record writes one request to the record of a session in state.
func record(state, session string) error {
	log, err := audit.Open(audit.Config{State: state, Session: session})
	if err != nil {
		return err
	}
	// Reserve before anything leaves: what cannot be recorded must not happen.
	if err := log.Reserve(context.Background()); err != nil {
		return err
	}
	r := &audit.Record{Kind: audit.KindRequest, Verdict: "deny", Reason: "no_rule", Method: "GET", Host: "a.example", Reserved: true}
	if err := log.Append(r); err != nil {
		return err
	}
	return log.Close("exit")
}

func withState(f func(state, session string)) {
	state, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(state)
	session := audit.NewSession()
	if err := record(state, session); err != nil {
		fmt.Println(err)
		return
	}
	f(state, session)
}

func ExampleOpen() {
	withState(func(state, session string) {
		files, err := os.ReadDir(filepath.Join(state, "audit"))
		fmt.Println(len(files), err)
	})
	// Output: 1 <nil>
}

func ExampleFind() {
	withState(func(state, session string) {
		s, err := audit.Find(state, session[:20])
		fmt.Println(s.ID == session, err)
	})
	// Output: true <nil>
}

func ExampleVerify() {
	withState(func(state, session string) {
		s, err := audit.Find(state, session)
		if err != nil {
			fmt.Println(err)
			return
		}
		report, err := audit.Verify(context.Background(), s.Chain)
		fmt.Println(report.OK(), report.Lines, err)
	})
	// Output: true 3 <nil>
}

func ExampleFileChain() {
	withState(func(state, session string) {
		chain, err := audit.FileChain(filepath.Join(state, "audit", session+".jsonl"))
		if err != nil {
			fmt.Println(err)
			return
		}
		for line, err := range audit.List(context.Background(), []audit.Chain{chain}, audit.Filter{}) {
			fmt.Println(line.Record.Kind, err)
		}
	})
	// Output:
	// session_start <nil>
	// request <nil>
	// session_end <nil>
}

func ExampleParse() {
	r, err := audit.Parse([]byte(`{"v":1,"time":"2026-11-30T17:02:11Z","seq":4,"session":"01J","kind":"dns","verdict":"deny","host":"a.example","qtype":"A","prev":"sha256:00"}`))
	fmt.Println(r.Kind, r.Host, r.Qtype, err)
	// Output: dns a.example A <nil>
}

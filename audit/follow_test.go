package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A follower of a folder shows the end of the newest session, whatever has
// become of it, and every line of those that start later, side by side.
func TestFollow(t *testing.T) {
	state, running := sampleState(t) // 01AAX ended, 01AAY cut, 01BBB runs
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	logs := map[string]*Log{"01BBB": running}
	start := func(id string) { logs[id] = mustOpen(t, Config{State: state, Session: id}) }
	var got []string
	for line, err := range Follow(ctx, state, Filter{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("%s/%d", line.Record.Session, line.Record.Seq)
		got = append(got, at)
		switch at {
		case "01BBB/1":
			start("01CCC")
		case "01CCC/1":
			mustAppend(t, running, sampleRequest())
		case "01BBB/2":
			start("01DDD")
		case "01DDD/1":
			mustAppend(t, logs["01CCC"], sampleRequest())
		case "01CCC/2":
			logs["01CCC"].dropFiles() // killed
			mustClose(t, running)
		case "01BBB/3":
			mustAppend(t, logs["01DDD"], sampleRequest())
		case "01DDD/2":
			mustClose(t, logs["01DDD"])
		case "01DDD/3":
			start("01EEE") // when all are over
		}
		if at == "01EEE/1" {
			break
		}
	}
	mustClose(t, logs["01EEE"])
	want := "01BBB/1 01CCC/1 01BBB/2 01DDD/1 01CCC/2 01BBB/3 01DDD/2 01DDD/3 01EEE/1"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
}

// A folder that has no record yet, or is not there, is waited at; rotation is
// followed; the filter holds for all.
func TestFollowFirst(t *testing.T) {
	state := filepath.Join(t.TempDir(), "later")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	time.AfterFunc(2*folderEvery, func() {
		l := mustOpen(t, Config{State: state, Session: "S1", MaxSize: 700})
		for range 3 {
			mustAppend(t, l, sampleRequest())
		}
		mustClose(t, l)
	})
	n := 0
	for line, err := range Follow(ctx, state, Filter{Kind: KindRequest, Limit: 1}) {
		if err != nil || line.Record.Kind != KindRequest {
			t.Fatal(line.Record.Kind, err)
		}
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d lines, not 3", n)
	}
}

// One session that is removed before it was read ends nothing, and one that was
// killed is left when it has been quiet.
func TestFollowOver(t *testing.T) {
	state, running := sampleState(t)
	mustClose(t, running)
	f := follower{state: state, known: map[string]bool{}, yield: func(Line, error) bool { return true }}
	defer f.close()
	if err := f.look(false); err != nil || len(f.open) != 3 {
		t.Fatal(len(f.open), err)
	}
	if err := os.Remove(f.open[2].cursor.chain.Path); err != nil {
		t.Fatal(err)
	}
	if !f.walk(t.Context()) || len(f.open) != 1 {
		t.Fatalf("%d sessions are read on, not the one that was cut", len(f.open))
	}
	f.open[0].grown = time.Now().Add(-idleFor)
	if !f.walk(t.Context()) || len(f.open) != 0 {
		t.Errorf("%d sessions are read on, not none", len(f.open))
	}
}

package audit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// chainOf writes lines as files, and returns their chain.
func chainOf(t *testing.T, files ...[][]byte) Chain {
	t.Helper()
	c := Chain{Path: filepath.Join(t.TempDir(), "a.jsonl")}
	for i, lines := range files {
		text := append(bytes.Join(lines, []byte("\n")), '\n')
		if len(lines) == 0 {
			text = nil
		}
		if err := os.WriteFile(c.file(i+1), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// goodLines is a session of ten lines.
func goodLines(t *testing.T, session string) [][]byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	l := mustOpen(t, Config{File: path, Session: session})
	for i := range 8 {
		r := sampleRequest()
		r.RequestID = fmt.Sprint(i)
		mustAppend(t, l, r)
	}
	mustClose(t, l)
	return readLines(t, path)
}

func TestVerify(t *testing.T) {
	good := goodLines(t, "S1")
	edit := func(line []byte, old, new string) []byte {
		if !bytes.Contains(line, []byte(old)) {
			t.Fatalf("no %s in %s", old, line)
		}
		return bytes.Replace(line, []byte(old), []byte(new), 1)
	}
	with := func(i int, line []byte) [][]byte {
		l := slices.Clone(good)
		l[i] = line
		return l
	}
	swapped := slices.Clone(good)
	swapped[4], swapped[5] = swapped[5], swapped[4]
	for _, tc := range []struct {
		name  string
		files [][][]byte
		want  string // KIND FILE:LINE …
		state State
	}{
		{"whole", [][][]byte{good}, "", StateEnded},
		{"rotated", [][][]byte{good[:3], good[3:7], good[7:]}, "", StateEnded},
		{"cut", [][][]byte{good[:6]}, "", StateCut},
		{"empty", [][][]byte{{}}, "", ""},
		{"verdict changed", [][][]byte{with(4, edit(good[4], `"deny"`, `"allow"`))}, "changed a.jsonl:5, counts a.jsonl:10", StateEnded},
		{"a blank put in", [][][]byte{with(4, edit(good[4], `,"host"`, `, "host"`))}, "changed a.jsonl:5", StateEnded},
		{"no JSON", [][][]byte{with(4, []byte("gone"))}, "changed a.jsonl:5, counts a.jsonl:10", StateEnded},
		{"last of a file changed", [][][]byte{with(2, edit(good[2], `"GET"`, `"PUT"`))[:3], good[3:]}, "changed a.jsonl:3", StateEnded},
		{"one missing", [][][]byte{slices.Delete(slices.Clone(good), 4, 5)}, "missing a.jsonl:5, counts a.jsonl:9", StateEnded},
		{"three missing", [][][]byte{slices.Delete(slices.Clone(good), 4, 7)}, "missing a.jsonl:5, counts a.jsonl:7", StateEnded},
		{"a file missing", [][][]byte{good[:3], good[7:]}, "missing a.2.jsonl:1, counts a.2.jsonl:3", StateEnded},
		{"first missing", [][][]byte{good[2:]}, "missing a.jsonl:1, counts a.jsonl:8", StateEnded},
		{"swapped", [][][]byte{swapped}, "reordered a.jsonl:5, reordered a.jsonl:6, reordered a.jsonl:7", StateEnded},
		{"twice", [][][]byte{slices.Insert(slices.Clone(good), 4, good[3])}, "reordered a.jsonl:5, counts a.jsonl:11", StateEnded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report, err := Verify(t.Context(), chainOf(t, tc.files...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range report.Faults {
				got = append(got, fmt.Sprintf("%s %s:%d", f.Kind, filepath.Base(f.File), f.Line))
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("%s\nwant %s\n%v", s, tc.want, report.Faults)
			}
			if report.OK() != (tc.want == "") {
				t.Error("OK is wrong")
			}
			if tc.state != "" && (len(report.Sessions) != 1 || report.Sessions[0].State != tc.state) {
				t.Errorf("sessions %+v", report.Sessions)
			}
		})
	}
}

func TestVerifyOpen(t *testing.T) {
	state, l := sampleState(t)
	for id, want := range map[string]State{"01AAX": StateEnded, "01AAY": StateCut, "01BBB": StateOpen} {
		s, err := Find(state, id)
		if err != nil {
			t.Fatal(err)
		}
		report, err := Verify(t.Context(), s.Chain)
		if err != nil || !report.OK() || report.Sessions[0].State != want {
			t.Errorf("%s: %+v, %v", id, report, err)
		}
	}
	mustClose(t, l)
}

// Whatever stands in the files, reading them ends, and a change to a line that
// another follows is found.
func FuzzVerify(f *testing.F) {
	f.Add(uint16(700), byte(1), []byte("x"))
	f.Add(uint16(0), byte(0), []byte("\n\n{}\n"))
	f.Add(uint16(3000), byte(2), []byte(nil))
	var text []byte
	f.Fuzz(func(t *testing.T, at uint16, drop byte, put []byte) {
		if text == nil {
			text = append(bytes.Join(goodLines(t, "S1"), []byte("\n")), '\n')
		}
		from := int(at) % len(text)
		to := min(from+int(drop), len(text))
		changed := slices.Concat(text[:from], put, text[to:])
		path := filepath.Join(t.TempDir(), "a.jsonl")
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := Verify(context.Background(), Chain{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for range List(context.Background(), []Chain{{Path: path}}, Filter{Limit: 3}) {
		}
		last := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		if report.OK() && from < last && !bytes.HasPrefix(text, changed[:bytes.LastIndexByte(changed, '\n')+1]) {
			t.Errorf("a change at %d was not found", from)
		}
		// The next session starts whatever was there.
		l, err := Open(Config{File: path, Session: "S2"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(""); err != nil {
			t.Fatal(err)
		}
	})
}

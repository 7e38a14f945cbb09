package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// wire is the form of a line.
type wire struct {
	V             int       `json:"v"`
	Time          time.Time `json:"time"`
	Seq           uint64    `json:"seq"`
	Session       string    `json:"session"`
	Kind          Kind      `json:"kind"`
	Verdict       string    `json:"verdict"`
	Reason        string    `json:"reason"`
	Rule          string    `json:"rule"`
	Hint          string    `json:"hint"`
	Method        string    `json:"method"`
	Scheme        string    `json:"scheme"`
	Host          string    `json:"host"`
	Port          int       `json:"port"`
	Path          string    `json:"path"`
	QueryNames    []string  `json:"query_names"`
	QueryValues   []string  `json:"query_values"`
	Status        int       `json:"status"`
	BytesOut      int64     `json:"bytes_out"`
	BytesIn       int64     `json:"bytes_in"`
	Duration      float64   `json:"duration_ms"`
	TTFB          float64   `json:"ttfb_ms"`
	Upstream      string    `json:"upstream"`
	Proto         string    `json:"proto"`
	UpstreamProto string    `json:"upstream_proto"`
	Credential    string    `json:"credential"`
	Capture       string    `json:"capture"`
	Policy        string    `json:"policy"`
	RequestID     string    `json:"request_id"`
	Tunnel        bool      `json:"tunnel"`
	Qtype         string    `json:"qtype"`
	Argv          []string  `json:"argv"`
	Isolator      string    `json:"isolator"`
	ExitCode      *int      `json:"exit_code"`
	Counts        Counts    `json:"counts"`
	Cut           bool      `json:"cut"`
	PathSHA256    string    `json:"path_sha256"`
	Prev          string    `json:"prev"`
}

// Parse reads a line, without its line feed. Members that it does not know are
// left out; a line that is no record of this version is an error.
func Parse(line []byte) (Record, error) {
	var w wire
	if err := json.Unmarshal(line, &w); err != nil {
		return Record{}, fmt.Errorf("parsing a record: %w", err)
	}
	if w.V != 1 {
		return Record{}, fmt.Errorf("parsing a record: version %d is not known", w.V)
	}
	if !w.Kind.known() {
		return Record{}, fmt.Errorf("parsing a record: kind %q is not known", w.Kind)
	}
	if w.Seq == 0 || w.Session == "" || w.Time.IsZero() {
		return Record{}, errors.New("parsing a record: seq, session or time is missing")
	}
	return Record{
		Time: w.Time, Seq: w.Seq, Session: w.Session, Kind: w.Kind,
		Verdict: w.Verdict, Reason: w.Reason, Credential: w.Credential, RequestID: w.RequestID, Host: w.Host,
		Rule: w.Rule, Hint: w.Hint, Method: w.Method, Scheme: w.Scheme, Port: w.Port, Path: w.Path,
		QueryNames: w.QueryNames, QueryValues: w.QueryValues,
		Status: w.Status, BytesOut: w.BytesOut, BytesIn: w.BytesIn,
		Duration: fromMillis(w.Duration), TTFB: fromMillis(w.TTFB),
		Upstream: w.Upstream, Proto: w.Proto, UpstreamProto: w.UpstreamProto,
		Capture: w.Capture, Policy: w.Policy, Tunnel: w.Tunnel,
		Qtype: w.Qtype, Argv: w.Argv, Isolator: w.Isolator, ExitCode: w.ExitCode, Counts: w.Counts,
		Cut: w.Cut, PathSHA256: w.PathSHA256, Prev: w.Prev,
	}, nil
}

// fromMillis is the inverse of encoder.millis.
func fromMillis(ms float64) time.Duration {
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

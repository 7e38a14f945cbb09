package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/egressd/egressd/audit"
	"github.com/egressd/egressd/safepath"
	"github.com/egressd/egressd/shell"
)

// fileTime is how long a call of a file tool may take.
const fileTime = 30 * time.Second

// Config says what the tools are and work on.
type Config struct {
	Grants Grants
	// Files are what the file tools see. Needed where one is granted.
	Files *safepath.FS
	// Shell is where commands run, commonly a *shell.Session. Needed where shell
	// is granted. The Set does not dispose of it.
	Shell shell.Executor
	// ChooseNetwork lets a call of shell say allow_network: true, where there is a
	// network to have. Without it such a call is refused. Every call may say
	// false.
	ChooseNetwork bool
	// Isolator is what keeps the commands in; it stands in the record of a call
	// that does not come to run one.
	Isolator string
	// Apart does the work of a file tool where it can do no more to files than a
	// command could; nil does it as this process.
	Apart func(work func()) error
	// OnCall is asked about each call that is granted; nil allows them.
	OnCall OnCall
	// Record takes a record of every call. It is needed.
	Record audit.Sink
}

// Set is the tools that are granted. It is safe for concurrent use.
type Set struct {
	cfg     Config
	granted map[string]bool
}

// New checks that everything is there that the granted tools need.
func New(cfg Config) (*Set, error) {
	granted, err := cfg.Grants.set()
	if err != nil {
		return nil, fmt.Errorf("granting tools: %w", err)
	}
	for name := range granted {
		if name == "shell" && cfg.Shell == nil || name != "shell" && cfg.Files == nil {
			return nil, fmt.Errorf("granting tools: %s has nothing to work on", name)
		}
	}
	if cfg.Record == nil {
		return nil, errors.New("granting tools: what is not recorded does not happen, and there is no record")
	}
	return &Set{cfg, granted}, nil
}

// Tool describes a tool to who may call it.
type Tool struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema json.RawMessage
	// ReadOnly says that no call changes anything.
	ReadOnly bool
}

// List is the granted tools, always in one order.
func (s *Set) List() []Tool {
	out := []Tool{}
	for _, k := range kinds {
		if !s.granted[k.name] {
			continue
		}
		t := Tool{k.name, k.description, json.RawMessage(k.schema), k.readOnly}
		if k.name != "shell" && !s.cfg.Files.Contained() {
			t.Description += " NOT contained (cwd: null): every file of this user can be reached."
		}
		out = append(out, t)
	}
	return out
}

// Result is what a call came to.
type Result struct {
	// Text is for the caller to read.
	Text string
	// Truncated says that there was more, as Text does.
	Truncated bool
	// Command is the answer of shell; Text is it as JSON. Nil for file tools.
	Command *Answer
}

// Call makes a call, if it is granted. args are a JSON object as the tool's
// schema has it; nothing is the empty object. An error with Reason() string was
// refused, and nothing was done; the text of any error is meant for the caller.
func (s *Set) Call(ctx context.Context, name string, args json.RawMessage) (Result, error) {
	if err := s.cfg.Record.Reserve(ctx); err != nil {
		return Result{}, fmt.Errorf("recording the call: %w", err)
	}
	record := &audit.Record{Kind: audit.KindFile, Reserved: true}
	result, err := s.call(ctx, name, args, record)
	if record.Verdict == "" {
		record.Verdict, record.Reason = verdict(err)
	}
	if err := s.cfg.Record.Append(record); err != nil {
		return Result{}, fmt.Errorf("recording the call: %w", err)
	}
	return result, err
}

func (s *Set) call(ctx context.Context, name string, args json.RawMessage, record *audit.Record) (Result, error) {
	k := find(name)
	if k == nil || k.name == "shell" {
		record.Kind, record.Isolator = audit.KindExec, s.cfg.Isolator
	}
	if k == nil || !s.granted[name] {
		if record.Kind == audit.KindExec {
			record.Argv = []string{name} // what was asked for; it did not run
		}
		return Result{}, errNotGranted
	}
	in, err := k.parse(args)
	if err != nil {
		return Result{}, err
	}
	in.record(s, record)
	if err := in.check(s); err != nil {
		return Result{}, err
	}
	if err := s.ask(ctx, name, in); err != nil {
		return Result{}, err
	}
	if k.name == "shell" {
		return in.run(ctx, s, record)
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	if s.cfg.Apart == nil {
		return in.run(ctx, s, record)
	}
	var result Result
	apart := s.cfg.Apart(func() { result, err = in.run(ctx, s, record) })
	return result, errors.Join(apart, err)
}

// input is the arguments of one call.
type input interface {
	// check refuses what the schema cannot tell.
	check(s *Set) error
	// record writes down what is asked for.
	record(s *Set, r *audit.Record)
	// run does it, and adds to the record what only then is known.
	run(ctx context.Context, s *Set, r *audit.Record) (Result, error)
}

// located writes down the path of a file tool's call: where it leads, or as it
// was written where it leads nowhere.
func (s *Set) located(r *audit.Record, path string) {
	r.Path = path
	if real, err := s.cfg.Files.Real(path); err == nil {
		r.Path = real
	}
}

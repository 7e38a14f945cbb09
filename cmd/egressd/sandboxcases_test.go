package main

import (
	"slices"
	"testing"

	"github.com/egressd/egressd/internal/cases"
	"github.com/egressd/egressd/internal/proxytest"
)

// sandboxCase is a line of sandbox.jsonl; its README says what each member means.
type sandboxCase struct {
	ID, Why      string
	Q            any
	Policy       map[string]any
	PolicyAt     string `json:"policy_at"`
	PolicyChange *struct {
		AfterMS int `json:"after_ms"`
		Policy  map[string]any
	} `json:"policy_change"`
	Setup       []setupItem
	Run         string
	Argv        []string
	Flags       []string
	As          string
	Stdin       *string
	StdinFile   string `json:"stdin_file"`
	OpenFD      string `json:"open_fd"`
	Repeat      int
	PathWithout []string `json:"path_without"`
	Signal      *caseSignal
	TTY         *struct{ Rows, Cols uint16 }
	Keys        []struct {
		AfterMS int `json:"after_ms"`
		Text    string
		Resize  *struct{ Rows, Cols uint16 }
	}
	HostEnv    map[string]string `json:"host_env"`
	Origins    map[string]string
	HostListen map[string]string `json:"host_listen"`
	Expect     sandboxExpect
}

type caseSignal struct {
	Sig, To string
	AfterMS int `json:"after_ms"`
}

type setupItem struct {
	Path    string
	File    *string
	Dir     bool
	Symlink string
	Mode    string
	Socket  bool
}

type sandboxExpect struct {
	Stdout                 *string
	StdoutHas              []string `json:"stdout_has"`
	StdoutLacks            []string `json:"stdout_lacks"`
	StdoutBytes            *int     `json:"stdout_bytes"`
	StdoutIntMin           *int     `json:"stdout_int_min"`
	StdoutIntMax           *int     `json:"stdout_int_max"`
	StderrHas              []string `json:"stderr_has"`
	StderrLacks            []string `json:"stderr_lacks"`
	Exit                   *int
	WithinS                float64 `json:"within_s"`
	Host                   []hostState
	WaitS                  float64 `json:"wait_s"`
	Left                   *int
	TempClean              bool     `json:"temp_clean"`
	NoLookup               []string `json:"no_lookup"`
	HostUIDNotRoot         bool     `json:"host_uid_not_root"`
	HostSocketUntouched    string   `json:"host_socket_untouched"`
	HostCannotConnect      string   `json:"host_cannot_connect"`
	OuterTerminalUntouched bool     `json:"outer_terminal_untouched"`
	OriginGotBytes         *int64   `json:"origin_got_bytes"`
}

type hostState struct {
	Path           string
	Absent         bool
	File           *string
	Mode           string
	OwnerUnchanged bool `json:"owner_unchanged"`
	NotSetuidRoot  bool `json:"not_setuid_root"`
	Unchanged      bool
}

// The groups of sandbox.jsonl, each in namespaces of its own, so that what a
// case leaves behind can be counted and groups run beside each other.
var sandboxGroups = []string{"sb-env", "sb-etc", "sb-exit", "sb-fd", "sb-home", "sb-kernel", "sb-life", "sb-net", "sb-policy", "sb-root", "sb-tty",
	"sb-grant", "sb-mask", "sb-dot", "sb-socket", "sb-fork", "sb-limits", "sb-link", "sb-git", "sb-pin", "sb-secret", "sb-end"}

func TestSandboxEnv(t *testing.T)    { sandboxGroup(t, "sb-env", "sb-etc", "sb-home") }
func TestSandboxExit(t *testing.T)   { sandboxGroup(t, "sb-exit", "sb-fd") }
func TestSandboxKernel(t *testing.T) { sandboxGroup(t, "sb-kernel", "sb-root") }
func TestSandboxLife(t *testing.T)   { sandboxGroup(t, "sb-life", "sb-end", "sb-limits") }
func TestSandboxNet(t *testing.T)    { sandboxGroup(t, "sb-net") }
func TestSandboxPolicy(t *testing.T) { sandboxGroup(t, "sb-policy", "sb-secret") }
func TestSandboxTTY(t *testing.T)    { sandboxGroup(t, "sb-tty") }
func TestSandboxFiles(t *testing.T) {
	sandboxGroup(t, "sb-grant", "sb-mask", "sb-dot", "sb-socket", "sb-fork", "sb-link", "sb-git", "sb-pin")
}

// Every group of the file is run by one of the tests above.
func TestSandboxGroupsAreAll(t *testing.T) {
	for _, g := range cases.Groups(t, "sandbox.jsonl") {
		if !slices.Contains(sandboxGroups, g) {
			t.Errorf("no test runs the cases %s", g)
		}
	}
}

func sandboxGroup(t *testing.T, groups ...string) {
	t.Parallel()
	proxytest.Namespaced(t, func(t *testing.T, dir string) {
		var list []cases.Case[sandboxCase]
		for _, g := range groups {
			list = append(list, cases.Load[sandboxCase](t, "sandbox.jsonl", g)...)
		}
		// Only now: the host's folders may hide the checkout.
		h := newSandboxHost(t)
		for _, c := range list {
			t.Run(c.ID, func(t *testing.T) { h.runCase(t, c.Case) })
		}
	})
}

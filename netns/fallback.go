//go:build linux

package netns

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/egressd/egressd/netns/mount"
)

// bwrapFiles is the number of bwrap's first descriptor in the fallback.
const bwrapFiles = 3

// startFallback lets bwrap make every namespace, where the host lets nobody
// else: nothing is captured then, and only the explicit listener is opened.
func (s *Session) startFallback(context.Context) error {
	if s.id.invented {
		s.id = s.id.asRoot("only bwrap may make namespaces here, and it maps no owners of files")
	}
	hail, hailEnd, err := controlPair()
	if err != nil {
		return err
	}
	s.chain.launcher = hail
	files := []*os.File{hailEnd}
	defer func() { closeFiles(files) }()
	data := func(text []byte) (int, error) {
		f, err := memoryFile("data", text)
		if err != nil {
			return -1, err
		}
		files = append(files, f)
		return bwrapFiles + len(files) - 1, nil
	}
	for i := range s.plan.Roots {
		s.plan.Roots[i].Clone = 0
	}
	if err := s.fillTexts(); err != nil {
		return err
	}
	args, err := s.plan.Fallback(s.cfg.Network != HostNetwork, data)
	if err != nil {
		return err
	}
	arguments, err := data(mount.Join(args))
	if err != nil {
		return err
	}
	filter, err := filterFile()
	if err != nil {
		return err
	}
	files = append(files, filter)
	argv := bwrapCommand(s.bwrap, bwrapFiles, arguments, bwrapFiles+len(files)-1)
	cmd := &exec.Cmd{Path: s.bwrap, Args: argv, Env: []string{}, Dir: "/", Stderr: s.chain.said, ExtraFiles: files,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}, WaitDelay: time.Second}
	if s.id.root && s.id.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.id.uid), Gid: uint32(s.id.gid), Groups: []uint32{}}
	}
	if s.group != nil {
		s.group.Into(cmd.SysProcAttr)
	}
	if s.chain.child, err = startChild(cmd); err != nil {
		return bwrapFailed(context.Background(), s.bwrap, err.Error())
	}
	return nil
}

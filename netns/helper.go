//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/egressd/egressd/netns/mount"
	"github.com/egressd/egressd/netns/seccomp"
)

// Descriptors that the helper is started with.
const (
	helperControl  = 3 + iota
	helperLauncher // the launcher's end of its control
	helperKeeper   // the keeper's end of its control
	helperImage    // a run of root: egressd's binary as the sandbox's user has it
)

// helperTask is what the helper is told when all is known about the sandbox.
type helperTask struct {
	Plan       mount.Plan
	BwrapArgv0 string
	Image      bool // helperImage is there
}

// helper is pid 1 of its pid namespace, root of its user namespace and alone
// in its mount and network namespaces. It sets them up and becomes bwrap, or the
// keeper of what bwrap shows, so its death, at any moment, is the death of
// everything below.
func helper() {
	c, err := openControl(helperControl)
	if err != nil {
		return
	}
	step := "plan"
	err = runHelper(c, &step) // a helper that comes back has failed
	m := message{Kind: kindFailed, Step: step, Error: err.Error()}
	var errno unix.Errno
	if errors.As(err, &errno) {
		m.Errno = int(errno)
	}
	_ = c.send(m) // egressd is gone, or reads it
}

func runHelper(c *control, step *string) error {
	*step = "network"
	m, _, err := c.receive()
	if err != nil {
		return err
	}
	switch m.Network {
	case NoNetwork:
		err = loopbackUp()
	case Captured:
		err = serveNetwork(c)
	}
	if err != nil {
		return err
	}
	*step = "plan"
	task, bwrap, roots, err := hearTask(c)
	if err != nil {
		return err
	}
	*step = "texts"
	forget, err := hearTexts(c, &task.Plan)
	if err != nil {
		return err
	}
	*step = "mounts"
	mounts := mount.Mounts{Launcher: -1}
	if task.Image {
		mounts.Launcher = helperImage
	}
	for _, f := range roots {
		mounts.Roots = append(mounts.Roots, int(f.Fd()))
	}
	if err := mount.Apply(&task.Plan, mounts); err != nil {
		return err
	}
	closeFiles(roots)
	if err := forget(); err != nil {
		return err
	}
	*step = "texts"
	if err := handBlanks(c, &task.Plan); err != nil {
		return err
	}
	*step = "bwrap"
	if len(task.Plan.Spots()) > 0 {
		return keepBwrap(&task, bwrap, c)
	}
	return becomeBwrap(&task, bwrap)
}

// handBlanks gives egressd the files that it writes itself.
func handBlanks(c *control, p *mount.Plan) error {
	files, err := mount.Blanks(p)
	defer closeFiles(files)
	for batch := range slices.Chunk(files, maxFiles) {
		if err == nil {
			err = c.send(message{Kind: kindBlanks}, batch...)
		}
	}
	return err
}

// hearTask takes what was not yet known when the helper was started: the plan,
// bwrap's binary, opened by path, and the mounts to build of.
func hearTask(c *control) (task helperTask, bwrap *os.File, roots []*os.File, err error) {
	m, files, err := c.receive()
	if err == nil && (m.Kind != kindTask || len(files) != 2) {
		closeFiles(files)
		err = errors.New("reading the plan: something else came")
	}
	if err != nil {
		return task, nil, nil, err
	}
	_, err = unparcel(files[0], &task)
	if err := errors.Join(err, files[0].Close()); err != nil {
		return task, nil, nil, err
	}
	for left := m.Mounts; left > 0; {
		m, more, err := c.receive()
		if err == nil && (m.Kind != kindMounts || len(more) == 0 || len(more) > left) {
			closeFiles(more)
			err = errors.New("reading the mounts: something else came")
		}
		if err != nil {
			return task, nil, nil, err
		}
		roots, left = append(roots, more...), left-len(more)
	}
	return task, files[1], roots, nil
}

// serveNetwork makes the namespace one in which every address is local, and
// hands the listeners out.
func serveNetwork(c *control) error {
	ipv6, err := captureNetwork()
	if err != nil {
		return err
	}
	listeners, err := openListeners(ipv6)
	if err != nil {
		return err
	}
	err = c.send(message{Kind: kindListeners, IPv6: ipv6}, listeners...)
	closeFiles(listeners)
	if err != nil {
		return err
	}
	spares, err := openSpares(ipv6)
	if err != nil {
		return err
	}
	err = c.send(message{Kind: kindSpares}, spares...)
	closeFiles(spares)
	return err
}

// bwrapInput are bwrap's arguments and its system call filter, in memory.
func bwrapInput(task *helperTask) ([]*os.File, error) {
	arguments, err := memoryFile("arguments", mount.Join(task.Plan.Arguments()))
	if err != nil {
		return nil, err
	}
	filter, err := filterFile()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir("/"); err != nil {
		return nil, fmt.Errorf("leaving the working folder: %w", err)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("closing descriptors: %w", err)
	}
	return []*os.File{arguments, filter}, nil
}

// becomeBwrap replaces the helper. Nothing but the launcher's control and
// bwrap's own files stays open.
func becomeBwrap(task *helperTask, bwrap *os.File) error {
	files, err := bwrapInput(task)
	if err != nil {
		return err
	}
	argv := bwrapCommand(task.BwrapArgv0, helperLauncher, int(files[0].Fd()), int(files[1].Fd()))
	keep := []uintptr{helperLauncher}
	for _, f := range files {
		keep = append(keep, f.Fd())
	}
	for _, fd := range keep {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("passing a descriptor on: %w", err)
		}
	}
	err = unix.Exec("/proc/self/fd/"+strconv.Itoa(int(bwrap.Fd())), argv, []string{})
	runtime.KeepAlive(files)
	runtime.KeepAlive(bwrap)
	return fmt.Errorf("executing bwrap: %w", err)
}

// filterFile holds the system call filter that bwrap loads last of all.
func filterFile() (*os.File, error) {
	filter, err := seccomp.Program(runtime.GOARCH)
	if err != nil {
		return nil, fmt.Errorf("writing the system call filter: %w", err)
	}
	return memoryFile("seccomp", filter)
}

// bwrapCommand is bwrap's argument list, which names nothing of the plan: its
// arguments are in a file in memory.
func bwrapCommand(bwrap string, launcher, arguments, filter int) []string {
	return []string{bwrap, "--args", strconv.Itoa(arguments), "--seccomp", strconv.Itoa(filter),
		"--", launcherPath, launcherWord, strconv.Itoa(launcher)}
}

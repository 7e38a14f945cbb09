package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// serveFlags are what `egressd serve` was told.
type serveFlags struct {
	policyFlags
	verbosity
	listen, tokenFile, caOut, envOut, audit string
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the proxy alone, for a sandbox made by someone else",
		Long: `Run the proxy alone, for a container, a virtual machine or a CI job: whoever
makes that sandbox must see to it that nothing in it can reach anything else.

When it is ready it prints one line of JSON, {"listen","ca","session"}, and
tells systemd. SIGHUP reloads the policy; SIGTERM lets what runs finish within
limits.shutdown_grace. The session's certificate authority is new at each start
(tls.ca in the policy brings one of your own).`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			return f.serve(ctx, cmd)
		},
	}
	flags := cmd.Flags()
	f.register(cmd)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say only what must be said")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "say what happens, and a summary at the end")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:3128", "serve on this `ADDRESS`, IP:PORT or unix:PATH")
	flags.StringVar(&f.tokenFile, "auth-token-file", "", "ask every client for the token in this `FILE`: the password of Basic, any user, or a Bearer token")
	flags.StringVar(&f.caOut, "ca-out", "", "write the session's CA certificate, as PEM, to this `FILE`")
	flags.StringVar(&f.envOut, "env-out", "", "write the variables that clients need to this `FILE` (0600)")
	flags.StringVar(&f.audit, "audit", "", "write the record to this `FILE`")
	return cmd
}

func (f *serveFlags) serve(ctx context.Context, cmd *cobra.Command) (err error) {
	begin := time.Now()
	if err := harden(); err != nil {
		return err
	}
	src, err := newSource(f.policyFlags)
	if err != nil {
		return err
	}
	p, err := src.enforced()
	if err != nil {
		return err
	}
	if err := unsupported(p, false); err != nil {
		return err
	}
	if !p.HasRules {
		return errors.New("the policy has no egress_rules: a proxy without rules would let everything through; write egress_rules: [] to deny everything")
	}
	if src.path == "" && len(p.Rules) == 0 {
		fmt.Fprintln(os.Stderr, "egressd: no policy: every request is denied")
	}
	cwd, err := src.workingFolder(p)
	if err != nil {
		return err
	}
	grants, err := grantsOf(p, cwd, src.dirs.home, io.Discard)
	if err != nil {
		return err
	}
	if cwd == "/" {
		cwd = "" // a service's: it says nothing of what is served
	}
	token, err := f.token()
	if err != nil {
		return err
	}
	l, name, err := f.open(token)
	if err != nil {
		return err
	}
	defer l.Close() // closed already where the proxy served it
	sess, err := newSession(sessionConfig{dirs: src.dirs, src: src, policy: p, audit: f.audit, logger: f.logger(),
		programs: newHostPrograms(cwd, grants, src.dirs.home)})
	if err != nil {
		return err
	}
	reason := "failed"
	defer func() {
		// A second signal does not wait for what still runs.
		again, restore := interruptible(cmd)
		defer restore()
		sess.hurry = again
		err = errors.Join(err, sess.close(reason))
		if err == nil && f.verbose {
			fmt.Fprintln(os.Stderr, sess.summary(time.Since(begin)))
		}
	}()
	if _, err := sess.roots(); err != nil {
		return err
	}
	if err := sess.arm(ctx, sess.now, nil); err != nil {
		return err
	}
	if len(p.Credentials) > 0 && token == "" && !strings.HasPrefix(name, "unix:") && !f.quiet {
		fmt.Fprintf(os.Stderr, "egressd: every program on this host can use the credentials through %s: ask for a token with --auth-token-file, or serve on a unix socket\n", name)
	}
	if err := sess.serve(nil, "serve", token); err != nil {
		return err
	}
	stop, err := sess.control(ctx, nil)
	if err != nil {
		return err
	}
	defer stop()
	if err := f.write(sess, name, token); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- sess.proxy.ServeProxy(l) }()
	ready := map[string]string{"listen": name, "ca": f.caOut, "session": sess.id}
	if err := json.NewEncoder(cmd.OutOrStdout()).Encode(ready); err != nil {
		return fmt.Errorf("saying that the proxy is ready: %w", err)
	}
	notifySystemd("READY=1")
	if err := f.wait(ctx, sess, served); err != nil {
		return err
	}
	notifySystemd("STOPPING=1")
	reason = "signal"
	return nil
}

// caWarning is how long before the authority's end serve begins to warn.
const caWarning = 30 * 24 * time.Hour

// wait lets the proxy serve until a signal, and reloads on SIGHUP.
func (f *serveFlags) wait(ctx context.Context, sess *session, served <-chan error) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ends := sess.issuer.Certificate().NotAfter
	warn := time.NewTimer(time.Until(ends.Add(-caWarning)))
	defer warn.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return fmt.Errorf("serving: %w", err)
		case <-hangup:
			_ = sess.reload(ctx) // it has said what there is to say
		case <-warn.C:
			sess.logger.Warn("the session's certificate authority ends soon: start egressd serve anew", "ends", ends)
		}
	}
}

// token reads the token that clients must show, "" for none.
func (f *serveFlags) token() (string, error) {
	if f.tokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading the token: %s is empty or holds more than one word of ASCII", f.tokenFile)
	}
	return token, nil
}

// open listens. Only loopback and a unix socket do without a token.
func (f *serveFlags) open(token string) (net.Listener, string, error) {
	if path, ok := strings.CutPrefix(f.listen, "unix:"); ok {
		l, err := listenUnix(path)
		return l, f.listen, err
	}
	at, err := netip.ParseAddrPort(f.listen)
	if err != nil {
		return nil, "", fmt.Errorf("listening on %q: write IP:PORT, such as 127.0.0.1:3128, or unix:PATH", f.listen)
	}
	if !at.Addr().Unmap().IsLoopback() && token == "" {
		return nil, "", fmt.Errorf("listening on %s: anything but loopback and a unix socket needs --auth-token-file", f.listen)
	}
	l, err := net.Listen("tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, "", fmt.Errorf("listening on %s: the port is in use, name another with --listen: %w", f.listen, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("listening on %s: %w", f.listen, err)
	}
	return l, l.Addr().String(), nil
}

// listenUnix opens a socket that only its user can connect to. One that a
// killed proxy left is replaced; one that answers is in use.
func listenUnix(path string) (net.Listener, error) {
	// Connecting to what is no socket is refused like connecting to an old one.
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("listening on unix:%s: a file that is no socket lies there: name another path", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("listening on unix:%s: the socket is in use", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing an old socket: %w", err)
		}
	}
	// Made under another name and closed to others before it has this one, so
	// that nobody connects in between.
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing an old socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening on unix:%s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temporary, 0o600), os.Rename(temporary, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("listening on unix:%s: %w", path, err)
	}
	return &unixListener{l, path}, nil
}

// unixListener removes its socket when it is closed.
type unixListener struct {
	*net.UnixListener
	path string
}

func (l *unixListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		os.Remove(l.path)
	}
	return err
}

// notifySystemd sends a state as sd_notify(3) does, where systemd asked for it.
func notifySystemd(state string) {
	addr := os.Getenv("NOTIFY_SOCKET")
	if addr == "" {
		return
	}
	c, err := net.Dial("unixgram", addr)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(state)) // a manager that is gone needs no news
}

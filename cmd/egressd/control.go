package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// controlRequest is one line that a command sends to a running session, and
// controlAnswer the line it gets back.
type controlRequest struct {
	Do string `json:"do"`
}

type controlAnswer struct {
	Error string `json:"error,omitempty"`
	Text  string `json:"text,omitempty"`
}

// controlServer answers the commands of one session on a unix socket in the
// control folder.
type controlServer struct {
	listener *net.UnixListener
	path     string
	handle   func(ctx context.Context, do string) controlAnswer
	refused  func(reason string)
	wg       sync.WaitGroup
}

// serveControl opens the session's socket. refused is told of a peer that was
// turned away: the sandbox has our uid too, so the uid alone says nothing.
func serveControl(ctx context.Context, d dirs, session string, handle func(context.Context, string) controlAnswer, refused func(string)) (*controlServer, error) {
	if err := d.private(); err != nil {
		return nil, err
	}
	path := filepath.Join(d.control, session+".sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("closing the control socket to others: %w", err)
	}
	if os.Getuid() != d.uid {
		if err := os.Lchown(path, d.uid, d.gid); err != nil {
			l.Close()
			return nil, fmt.Errorf("handing the control socket to its user: %w", err)
		}
	}
	s := &controlServer{listener: l, path: path, handle: handle, refused: refused}
	s.wg.Add(1)
	go s.accept(ctx, d.uid)
	return s, nil
}

func (s *controlServer) accept(ctx context.Context, uid int) {
	defer s.wg.Done()
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		s.wg.Go(func() {
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				return
			}
			if reason := foreignPeer(c, uid); reason != "" {
				s.refused(reason)
				return
			}
			// A peer that says nothing must not hold up the end.
			stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
			defer stop()
			line, err := bufio.NewReader(&limited{c, 4096}).ReadBytes('\n')
			var req controlRequest
			if err != nil || json.Unmarshal(line, &req) != nil {
				return
			}
			if err := json.NewEncoder(c).Encode(s.handle(ctx, req.Do)); err != nil {
				slog.Debug("answering a control request", "err", err)
			}
		})
	}
}

// limited reads at most n bytes of a connection.
type limited struct {
	net.Conn
	n int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.n <= 0 {
		return 0, errors.New("the line is too long")
	}
	n, err := l.Conn.Read(p[:min(len(p), l.n)])
	l.n -= n
	return n, err
}

func (s *controlServer) Close() {
	s.listener.Close()
	os.Remove(s.path)
	s.wg.Wait()
}

// sessions lists the ids of sessions whose socket answers, and removes sockets
// that a killed session left.
func sessions(d dirs) ([]string, error) {
	entries, err := os.ReadDir(d.control)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the control folder: %w", err)
	}
	var ids []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".sock")
		if !ok {
			continue
		}
		path := filepath.Join(d.control, e.Name())
		c, err := net.DialTimeout("unix", path, time.Second)
		if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
			continue
		}
		if err == nil {
			c.Close()
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// pickSession finds the one session that a prefix names, or the only one.
func pickSession(d dirs, prefix string) (string, error) {
	all, err := sessions(d)
	if err != nil {
		return "", err
	}
	fits := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !strings.HasPrefix(id, strings.ToUpper(prefix)) })
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("no session is running: none has its socket in %s (egressd run and egressd serve make one; under sudo the caller's counts)", d.control)
	case len(fits) == 0:
		return "", fmt.Errorf("no running session begins with %q: %s", prefix, strings.Join(all, ", "))
	case len(fits) > 1:
		return "", fmt.Errorf("%d sessions are running, name one with --session: %s", len(fits), strings.Join(fits, ", "))
	}
	return fits[0], nil
}

// tell sends one request to a running session and returns its text.
func tell(d dirs, prefix, do string) (string, error) {
	id, err := pickSession(d, prefix)
	if err != nil {
		return "", err
	}
	c, err := net.DialTimeout("unix", filepath.Join(d.control, id+".sock"), 5*time.Second)
	if err != nil {
		return "", fmt.Errorf("reaching session %s: %w", id, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	var answer controlAnswer
	err = json.NewEncoder(c).Encode(controlRequest{Do: do})
	if err == nil {
		err = json.NewDecoder(c).Decode(&answer)
	}
	if err != nil {
		return "", fmt.Errorf("session %s did not answer (it serves only its own user, outside any sandbox): %w", id, err)
	}
	if answer.Error != "" {
		return "", errors.New(answer.Error)
	}
	return answer.Text, nil
}

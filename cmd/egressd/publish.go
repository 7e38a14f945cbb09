package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// publication is one --publish: a port inside, and the loopback port of the
// host that leads to it.
type publication struct{ inside, host int }

func parsePublish(list []string) ([]publication, error) {
	var out []publication
	for _, text := range list {
		inside, host, ok := strings.Cut(text, ":")
		if !ok {
			host = inside
		}
		var p publication
		for _, x := range []struct {
			text string
			to   *int
		}{{inside, &p.inside}, {host, &p.host}} {
			n, err := strconv.ParseUint(x.text, 10, 16)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("--publish is PORT or PORT:HOSTPORT, each from 1 to 65535, not %q", text)
			}
			*x.to = int(n)
		}
		out = append(out, p)
	}
	return out, nil
}

// publish opens the ports. The returned function closes them and every
// connection through them.
func (r *runner) publish(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var listeners []net.Listener
	stop := func() {
		cancel()
		for _, l := range listeners {
			l.Close()
		}
		wg.Wait()
	}
	for _, p := range r.published {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.host)))
		if err != nil {
			stop()
			return nil, fmt.Errorf("publishing port %d: %w", p.inside, err)
		}
		listeners = append(listeners, l)
		wg.Go(func() { r.servePublished(ctx, l, p.inside, &wg) })
	}
	return stop, nil
}

func (r *runner) servePublished(ctx context.Context, l net.Listener, port int, wg *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			r.sess.logger.Warn("a published port", "port", port, "err", err)
			return
		}
		wg.Go(func() {
			defer c.Close()
			inner, err := r.box.Dial(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
			if err != nil {
				r.sess.logger.Debug("nothing listens inside", "port", port, "err", err)
				return
			}
			defer inner.Close()
			stop := context.AfterFunc(ctx, func() { c.Close(); inner.Close() })
			defer stop()
			join(c, inner)
		})
	}
}

// join copies both ways until both are at their end.
func join(a, b net.Conn) {
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either end may go away at any time
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	wg.Wait()
}

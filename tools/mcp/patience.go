package mcp

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastCalls is how long the calls that run may still take when the client has
// closed its end.
const lastCalls = 2 * time.Second

// patient is a transport whose end waits for the answers that are due: the
// library drops them, and `echo CALL | egressd mcp` would answer nothing.
type patient struct {
	mcp.IOTransport
	// end ends the calls that run.
	end context.CancelFunc
}

func (p *patient) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := p.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{Connection: c, end: p.end, answered: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

type connection struct {
	mcp.Connection
	end      context.CancelFunc
	answered chan struct{} // has something when an answer was written
	closed   chan struct{}
	close    sync.Once

	mu  sync.Mutex
	due map[jsonrpc.ID]bool
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		if c.due == nil {
			c.due = map[jsonrpc.ID]bool{}
		}
		c.due[r.ID] = true
		c.mu.Unlock()
	}
	if err != nil {
		c.wait(ctx, lastCalls)
		c.end()
		c.wait(ctx, lastCalls)
	}
	return m, err
}

func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.due, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

func (c *connection) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// wait waits until no answer is due, for so long at most.
func (c *connection) wait(ctx context.Context, limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		c.mu.Lock()
		due := len(c.due)
		c.mu.Unlock()
		if due == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		case <-late.C:
			return
		}
	}
}

// open is a stream that is not the transport's to close.
type open struct{ io.Writer }

func (open) Close() error { return nil }

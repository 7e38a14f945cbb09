// Package mcp serves tools to an agent by the Model Context Protocol, over a
// pair of streams such as the standard ones. The tools that are granted are
// listed; a call of any other, of one that does not exist too, is answered like
// every refusal and recorded like every call.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/egressd/egressd/tools"
)

// maxLine is how many bytes a message may have: the arguments of a call, 32
// MiB at most, and what is around them.
const maxLine = 33 << 20

// Server serves a set of tools.
type Server struct {
	Tools *tools.Set
	// Version is that of the program, told to clients.
	Version string
	// Log takes what is worth telling the operator, never to the streams; nil is
	// nowhere.
	Log *slog.Logger
}

// Serve speaks with one client until ctx ends or in does; calls that run then
// have two seconds to end by themselves, and are cancelled. It closes neither
// stream and may leave a Read of in behind.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	calls, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	server := mcp.NewServer(&mcp.Implementation{Name: "egressd", Version: s.Version}, &mcp.ServerOptions{
		Logger:       s.Log,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range s.Tools.List() {
		server.AddTool(describe(t), func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.call(ctx, r), nil
		})
	}
	server.AddReceivingMiddleware(s.answerAll(calls, &running))
	err := server.Run(ctx, &patient{mcp.IOTransport{Reader: io.NopCloser(in), Writer: open{out}, MaxLineLength: maxLine}, cancel})
	if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serving tools: %w", err)
}

// answerAll has every call of a tool judged by the set: the library would
// answer for a name it does not know, and nobody would record it. The end of
// calls cancels them; that of the connection alone would not.
func (s *Server) answerAll(calls context.Context, running *sync.WaitGroup) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			r, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			running.Add(1)
			defer running.Done()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(calls, cancel)()
			return s.call(ctx, r), nil
		}
	}
}

func (s *Server) call(ctx context.Context, r *mcp.CallToolRequest) *mcp.CallToolResult {
	result, err := s.Tools.Call(ctx, r.Params.Name, r.Params.Arguments)
	text := result.Text
	if err != nil {
		text = err.Error()
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: err != nil}
}

func describe(t tools.Tool) *mcp.Tool {
	yes, no := true, false
	a := &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly, DestructiveHint: &no, OpenWorldHint: &no}
	if !t.ReadOnly {
		a.DestructiveHint = &yes
	}
	if t.Name == "shell" {
		a.OpenWorldHint = &yes
	}
	return &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema, Annotations: a}
}

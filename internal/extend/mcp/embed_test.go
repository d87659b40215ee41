package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
)

// hosted is a server inside of an embedding program: it answers what it is asked.
type hosted struct {
	mu    sync.Mutex
	asked []string
	way   *Embedded
	names []string // of its tools
	slow  chan struct{}
}

func (h *hosted) answer(ctx context.Context, data []byte) ([]byte, error) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.asked = append(h.asked, m.Method)
	names := h.names
	h.mu.Unlock()
	result := "{}"
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"in","version":"1"}}`
	case "tools/list":
		var list []string
		for _, n := range names {
			list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, n))
		}
		result = `{"tools":[` + strings.Join(list, ",") + `]}`
	case "tools/call":
		if h.slow != nil {
			select {
			case <-h.slow:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		result = `{"content":[{"type":"text","text":"ok"}]}`
	case "notifications/initialized":
		return []byte(`{"jsonrpc":"2.0","result":{},"id":0}`), nil
	case "prompts/list":
		return nil, errors.New("the host refuses")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result), nil
}

func (h *hosted) dial(ctx context.Context, _ servers.Server) (sdk.Transport, error) {
	way := NewEmbedded(ctx, Manifest{}, h.answer)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.way = way
	return way, nil
}

func inside(names ...string) (list []servers.Server) {
	for _, n := range names {
		list = append(list, servers.Server{Name: n, Type: servers.SDK})
	}
	return list
}

// A server inside of the embedding program is used as any other, and may say that it has
// other tools than before. A message that is none is refused.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	h := &hosted{names: []string{"t"}}
	changed := make(chan string, 100)
	s := New(Config{Servers: inside("in"), Dial: h.dial, OnChange: func(name string) { changed <- name }})
	defer s.Close()
	s.Connect()
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, "mcp__in__t", `{}`); got.Text != "ok" {
		t.Fatalf("got %q (%+v)", got.Text, s.Status())
	}
	h.mu.Lock()
	h.names = []string{"t", "u"}
	way := h.way
	h.mu.Unlock()
	if err := way.Hear([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	for len(s.Tools()) != 2 {
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("it has %d tools", len(s.Tools()))
		}
	}
	if err := way.Hear([]byte(`nonsense`)); err == nil {
		t.Error("a message that is none was taken")
	}
}

// A call that the program gives up does not keep the connection from being closed.
func TestEmbeddedThatHangs(t *testing.T) {
	h := &hosted{names: []string{"t"}, slow: make(chan struct{})}
	s := New(Config{Servers: inside("in"), Dial: h.dial})
	s.Connect()
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if r := s.Call(ctx, "in", "t", []byte(`{}`)); !r.Failed() {
		t.Errorf("%+v", r)
	}
	s.Close()
	if err := h.way.Hear([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)); err == nil {
		t.Error("a message was taken behind the end")
	}
}

// Servers may come and go while a set is used. The tools of the others keep their names.
func TestAddAndRemove(t *testing.T) {
	h := &hosted{names: []string{"t"}}
	s := New(Config{Servers: inside("a b"), Dial: h.dial})
	defer s.Close()
	s.Connect()
	if !s.Add(servers.Server{Name: "a_b", Type: servers.SDK}) || s.Add(servers.Server{Name: "a_b", Type: servers.SDK}) {
		t.Fatal("a server is not taken in, or twice")
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, "mcp__a_b__t", `{}`); got.Text != "ok" {
		t.Errorf("the first server: %+v", got)
	}
	var other agent.Tool
	for _, tool := range s.Tools() {
		if tool.(*Tool).Server() == "a_b" {
			other = tool
		}
	}
	if other == nil || other.Spec().Name == "mcp__a_b__t" {
		t.Fatalf("%+v", s.Tools())
	}
	if !s.Remove("a_b") || s.Remove("a_b") || len(s.Status()) != 1 || len(s.Tools()) != 1 {
		t.Errorf("%+v", s.Status())
	}
	if r, err := other.Run(t.Context(), agent.ToolContext{}, agent.Call{Input: json.RawMessage(`{}`)}); err != nil || !r.Failed() {
		t.Errorf("a tool of a server that is gone: %+v, %v", r, err)
	}
	if err := s.Reconnect(t.Context(), "a_b"); err == nil {
		t.Error("a server that is gone is connected anew")
	}
}

package connections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/tools/kit"
)

// A Host is the program that embeds this one, as far as it has servers in itself, and may
// answer what servers ask. Its functions are called by many at once, and end with their
// contexts. A nil one is something that it cannot do.
type Host struct {
	// Servers are those inside of it, beside those that the settings name as of type sdk.
	Servers []HostServer

	// Message puts a message to one of its servers, and returns the answer.
	Message func(ctx context.Context, server string, message []byte) ([]byte, error)

	// Elicit puts a question of a server to whoever uses it. The content is that of a form.
	Elicit func(context.Context, mcp.Elicitation) (action string, content map[string]any, err error)

	mu    sync.Mutex
	known map[string]mcp.Manifest  // of servers that are not connected yet; guarded by mu
	ways  map[string]*mcp.Embedded // to servers that are connected; guarded by mu
}

// A HostServer is a server inside of a [Host].
type HostServer struct {
	Name    string
	Timeout time.Duration // of a call; 0 = the usual one

	// Initialize and Tools are what it answers to initialize and tools/list, if the host has
	// asked it already; nil = it is asked.
	Initialize json.RawMessage
	Tools      json.RawMessage
}

// hostSource is where servers of the host stand.
const hostSource = "the embedding program"

// source is the servers inside of the host.
func (h *Host) source() (servers.Source, error) {
	if h == nil {
		return servers.Source{}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		h.known, h.ways = map[string]mcp.Manifest{}, map[string]*mcp.Embedded{}
	}
	all := map[string]any{}
	for _, one := range h.Servers {
		def := map[string]any{"type": servers.SDK}
		if one.Timeout > 0 {
			def["timeout"] = one.Timeout.Milliseconds()
		}
		all[one.Name] = def
		if _, was := h.known[one.Name]; !was && one.Initialize != nil {
			h.known[one.Name] = mcp.Manifest{Initialize: one.Initialize, Tools: one.Tools}
		}
	}
	data, err := json.Marshal(all)
	return servers.Source{Path: hostSource, Scope: servers.Given, Data: data, Bare: true}, err
}

// dial is the way to a server inside of the host. What is known of it holds for its first
// connection.
func (h *Host) dial(ctx context.Context, s servers.Server) (sdk.Transport, error) {
	if h == nil || h.Message == nil {
		return nil, errNoHost
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	way := mcp.NewEmbedded(ctx, h.known[s.Name], func(ctx context.Context, message []byte) ([]byte, error) { return h.Message(ctx, s.Name, message) })
	h.known[s.Name], h.ways[s.Name] = mcp.Manifest{}, way
	return way, nil
}

var errNoHost = errors.New("no program embeds this one")

// embeds reports whether servers are inside of the host: nobody has to wait long for them.
func (h *Host) embeds(list []servers.Server) bool {
	for _, s := range list {
		if s.Type == servers.SDK {
			return h != nil
		}
	}
	return false
}

// HearServer takes a message that a server inside of the host sends by itself.
func (x *Extension) HearServer(server string, message []byte) error {
	h := x.Host
	if h == nil {
		return errNoHost
	}
	h.mu.Lock()
	way := h.ways[server]
	h.mu.Unlock()
	if way == nil {
		return fmt.Errorf("there is no connection to a server %q inside of this program", kit.Clip(server))
	}
	return way.Hear(message)
}

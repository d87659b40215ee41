package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/extend/hooks"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
)

// A Host is the program that embeds this one: it has hooks and servers of the Model
// Context Protocol in itself, and may answer what servers ask. Its functions are called by
// many at once, and end with their contexts. A nil one is something that it cannot do.
type Host struct {
	// Hooks is the value of "hooks" in settings, of hooks of type callback. They hold beside
	// those of the settings.
	Hooks json.RawMessage

	// Servers are those inside of it, beside those that the settings name as of type sdk.
	Servers []HostServer

	// Call has a callback of Hooks answer; call is the ID of the call that it is about.
	Call func(ctx context.Context, callback string, input []byte, call string) ([]byte, error)

	// Message puts a message to one of its servers, and returns the answer.
	Message func(ctx context.Context, server string, message []byte) ([]byte, error)

	// Elicit puts a question of a server to whoever uses it. The content is that of a form.
	Elicit func(context.Context, HostQuestion) (action string, content map[string]any, err error)

	// Mirrored hears what is written of sessions where programs for agent sessions look for
	// them: whole lines, in the order of their file, or why no more of it will be. Several
	// files are written at a time. nil = it keeps no store of them.
	Mirrored func(file string, lines []byte, err error)

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

// A HostQuestion is a question of a server to the user of a [Host]: a form, or an address.
type HostQuestion struct {
	Server  string
	Message string
	URL     string // "" = it is a form
	ID      string
	Schema  json.RawMessage // of a form
}

// HostProtocol is the version of the protocol that servers inside of a [Host] are spoken
// with: what they have answered in another one does not count.
const HostProtocol = mcp.EmbeddedProtocol

// sources are the hooks of the host.
func (h *Host) sources() []hooks.Defined {
	if h == nil || len(h.Hooks) == 0 {
		return nil
	}
	return []hooks.Defined{{Source: hooks.Source{Layer: hooks.HostLayer, Theirs: true}, JSON: h.Hooks}}
}

// callback is what has callbacks answer; nil = there is nothing.
func (h *Host) callback() func(context.Context, string, []byte, string) ([]byte, error) {
	if h == nil {
		return nil
	}
	return h.Call
}

// servers reads the servers inside of the host.
func (h *Host) servers(s *serverSources) {
	if h == nil {
		return
	}
	all := map[string]any{}
	for _, one := range h.Servers {
		def := map[string]any{"type": servers.SDK}
		if one.Timeout > 0 {
			def["timeout"] = one.Timeout.Milliseconds()
		}
		all[one.Name] = def
		if one.Initialize != nil {
			h.mu.Lock()
			if h.known == nil {
				h.known = map[string]mcp.Manifest{}
			}
			if _, was := h.known[one.Name]; !was {
				h.known[one.Name] = mcp.Manifest{Initialize: one.Initialize, Tools: one.Tools}
			}
			h.mu.Unlock()
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		s.faults = append(s.faults, servers.Fault{Path: hostSource, What: err.Error()})
		return
	}
	s.add(servers.Source{Path: hostSource, Scope: servers.Given, Data: data, Bare: true})
}

// hostSource is where servers of the host stand.
const hostSource = "the embedding program"

// dial is the way to a server inside of the host. What is known of it holds for its first
// connection.
func (h *Host) dial(ctx context.Context, s servers.Server) (sdk.Transport, error) {
	if h == nil || h.Message == nil {
		return nil, errors.New("no program embeds this one")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.known[s.Name]
	if h.known == nil {
		h.known = map[string]mcp.Manifest{}
	}
	h.known[s.Name] = mcp.Manifest{}
	way := mcp.NewEmbedded(ctx, m, func(ctx context.Context, message []byte) ([]byte, error) { return h.Message(ctx, s.Name, message) })
	if h.ways == nil {
		h.ways = map[string]*mcp.Embedded{}
	}
	h.ways[s.Name] = way
	return way, nil
}

// Hear takes a message that a server inside of the host sends by itself.
func (h *Host) Hear(server string, message []byte) error {
	h.mu.Lock()
	way := h.ways[server]
	h.mu.Unlock()
	if way == nil {
		return fmt.Errorf("there is no connection to a server %q inside of this program", servers.Clip(server))
	}
	return way.Hear(message)
}

// elicits puts a question of a server to the user of the host; ok is false where it takes
// none.
func (h *Host) elicits(ctx context.Context, q mcp.Elicitation) (r mcp.Reply, ok bool, err error) {
	if h == nil || h.Elicit == nil {
		return r, false, nil
	}
	r.Action, r.Content, err = h.Elicit(ctx, HostQuestion{Server: q.Server, Message: q.Message, URL: q.URL, ID: q.ID, Schema: q.Schema})
	return r, true, err
}

// embeds reports whether servers are inside of the host: nobody has to wait long for them.
func (h *Host) embeds(list []servers.Server) bool {
	for _, s := range list {
		if s.Type == servers.SDK {
			return h != nil
		}
	}
	return false
}

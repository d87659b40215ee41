package sdk

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/state/transcript"
)

// Bounds of calls that a host makes itself.
const (
	usualCall = 2 * time.Minute
	leastCall = time.Second
	mostCall  = 10 * time.Minute
)

type serverNow struct {
	Name   string          `json:"name"`
	Status string          `json:"status"`
	Info   *serverInfo     `json:"serverInfo,omitempty"`
	Error  string          `json:"error,omitempty"`
	Config map[string]any  `json:"config,omitempty"`
	Scope  string          `json:"scope,omitempty"`
	Tools  []serverToolNow `json:"tools,omitempty"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type serverToolNow struct {
	Name  string          `json:"name"`
	About string          `json:"description,omitempty"`
	Notes map[string]bool `json:"annotations,omitempty"`
}

// servers are the servers of the session; none where nobody knows them.
func (h *Host) servers(ctx context.Context) []query.ServerNow {
	list, _ := client.Query[[]query.ServerNow](ctx, h.prog.Client, query.ServersNow{Session: h.session})
	return list
}

// serverLines are servers as hosts know them.
func serverLines(list []query.ServerNow) []serverNow {
	out := []serverNow{}
	for _, s := range list {
		n := serverNow{Name: s.Name, Status: s.State, Error: s.Problem, Scope: serverScope(s.Scope), Config: map[string]any{"type": s.Type}}
		if s.Title != "" {
			n.Info = &serverInfo{s.Title, s.Version}
		}
		switch {
		case s.Type == "sdk":
			n.Config["name"] = s.Name
		case s.Type == "stdio":
			words := strings.Fields(s.Run)
			n.Config["command"], n.Config["args"] = "", []string{}
			if len(words) > 0 {
				n.Config["command"], n.Config["args"] = words[0], words[1:]
			}
		default:
			n.Config["url"] = s.Run
		}
		for _, t := range s.Tools {
			l := serverToolNow{Name: t.Name, About: t.Description}
			if t.ReadOnly {
				l.Notes = map[string]bool{"readOnly": true}
			}
			n.Tools = append(n.Tools, l)
		}
		out = append(out, n)
	}
	return out
}

// serverScope is where a server is named, as hosts know it.
func serverScope(scope string) string {
	if scope == "given" {
		return "dynamic"
	}
	return scope
}

// serverStatus tells how it stands with the servers.
func (h *Host) serverStatus(struct{}) (any, error) {
	return map[string]any{"mcpServers": serverLines(h.servers(h.ctx))}, nil
}

// reconnect connects a server anew.
func (h *Host) reconnect(in struct {
	Server string `json:"serverName"`
},
) (any, error) {
	return h.connect(in.Server, query.ServerReconnect), nil
}

// toggle connects a server, or ends its connection.
func (h *Host) toggle(in struct {
	Server string `json:"serverName"`
	On     *bool  `json:"enabled"`
},
) (any, error) {
	if in.On == nil {
		return nil, errors.New("enabled is missing: it has to be true or false")
	}
	if *in.On {
		return h.connect(in.Server, query.ServerEnable), nil
	}
	return h.connect(in.Server, query.ServerDisable), nil
}

// connect has a server of the session connected, or its connection ended.
func (h *Host) connect(server, do string) slow {
	c, q := h.prog.Client, query.ConnectServer{Session: h.session, Server: server, Do: do}
	return slow(func(ctx context.Context) (any, error) {
		_, err := client.Query[[]query.ServerNow](ctx, c, q)
		return empty{}, err
	})
}

// setServers has the session use servers beside those that it has begun with. The host
// may answer them itself.
func (h *Host) setServers(in struct {
	Servers json.RawMessage `json:"servers"`
},
) (any, error) {
	if len(in.Servers) == 0 {
		return nil, errors.New("servers is missing: it has to be an object")
	}
	c, q := h.prog.Client, query.SetServers{Session: h.session, Servers: in.Servers}
	return slow(func(ctx context.Context) (any, error) { return client.Query[query.ServersSet](ctx, c, q) }), nil
}

// callTool calls a tool of a server, through the gate of the session.
func (h *Host) callTool(in struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Timeout   int64           `json:"timeout_ms"`
	Expires   string          `json:"expires_at"`
	In        []any           `json:"input_files"`
	Out       []any           `json:"output_files"`
},
) (any, error) {
	switch {
	case !strings.HasPrefix(in.Tool, "mcp__"):
		return nil, fmt.Errorf("%q is no tool of a server: those are called mcp__SERVER__TOOL", in.Tool)
	case len(in.In) > 0 || len(in.Out) > 0:
		return nil, errors.New("files cannot be staged here; call the tool without input_files and output_files")
	}
	limit := usualCall
	if in.Timeout > 0 {
		limit = min(max(time.Duration(in.Timeout)*time.Millisecond, leastCall), mostCall)
	}
	if in.Expires != "" {
		at, err := time.Parse(time.RFC3339, in.Expires)
		if left := at.Sub(h.c.Now()); err != nil || left <= 0 {
			return nil, errors.New("the call has expired")
		} else {
			limit = min(limit, left)
		}
	}
	p, id := h.prog.API, h.session
	return slow(func(ctx context.Context) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		r, err := p.CallTool(ctx, id, in.Tool, in.Arguments)
		if err != nil {
			return nil, err
		}
		return toolResult(r), nil
	}), nil
}

// toolResult is a result as the protocol of servers has it.
func toolResult(r agent.Result) map[string]any {
	content := []any{}
	if words := r.Unfenced(); words != "" {
		content = append(content, transcript.TextPart(words))
	} else if r.Error != nil {
		content = append(content, transcript.TextPart(r.Error.Message))
	}
	for _, b := range r.Blocks {
		if b.Type == agent.ImageBlock && b.Media != nil {
			content = append(content, map[string]string{"type": "image", "mimeType": b.Media.Type, "data": base64.StdEncoding.EncodeToString(b.Media.Data)})
		}
	}
	out := map[string]any{"content": content, "isError": r.Failed()}
	if len(r.Output) > 0 {
		out["structuredContent"] = r.Output
	}
	return out
}

// readResource reads a resource of a server.
func (h *Host) readResource(in struct {
	Server string `json:"serverName"`
	URI    string `json:"uri"`
},
) (any, error) {
	return reports(h, query.ReadServer{Session: h.session, Server: in.Server, URI: in.URI}, func(_ context.Context, r agent.Result) any {
		contents := []map[string]string{}
		if r.Text != "" || len(r.Blocks) == 0 {
			contents = append(contents, map[string]string{"uri": in.URI, "mimeType": "text/plain", "text": r.Text})
		}
		for _, b := range r.Blocks {
			if b.Media != nil {
				contents = append(contents, map[string]string{"uri": in.URI, "mimeType": b.Media.Type, "blob": base64.StdEncoding.EncodeToString(b.Media.Data)})
			}
		}
		return map[string]any{"contents": contents}
	})
}

// fromServer takes a message that a server inside of the host sends by itself.
func (h *Host) fromServer(in struct {
	Server  string          `json:"server_name"`
	Message json.RawMessage `json:"message"`
},
) (any, error) {
	return empty{}, h.prog.API.HearServer(in.Server, in.Message)
}

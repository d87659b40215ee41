package builtin

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed resource_list.md
var resourceListText string

//go:embed resource_read.md
var resourceReadText string

const (
	resourceListSchema = `{"type":"object","properties":{"server":{"type":"string","maxLength":256,"description":"only those of this server"}},"additionalProperties":false}`
	resourceReadSchema = `{"type":"object","properties":{"server":{"type":"string","minLength":1,"maxLength":256,"description":"the server's name"},` +
		`"uri":{"type":"string","minLength":1,"maxLength":4096,"description":"the address, as it is listed"}},"required":["server","uri"],"additionalProperties":false}`
)

// ReadResource is the tool that reads a resource of a server.
const ReadResource = "resource__read"

// A Resource is something that a server lets be read.
type Resource struct {
	Server      string `json:"server"`
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Type        string `json:"mimeType,omitempty"`
	Template    bool   `json:"template,omitempty"` // URI has {names} in it
}

// ResourceConfig is where the resources of servers come from.
type ResourceConfig struct {
	List func() []Resource
	Read func(ctx context.Context, server, uri string) (agent.Result, error)

	// Barred says why an address of a server may not be read; "" = it may.
	Barred func(server, uri string) string
}

// onlyWith is a tool that there is only while there are resources.
type onlyWith struct {
	kit.Tool
	list func() []Resource
}

// Enabled reports whether a server has anything that can be read.
func (t onlyWith) Enabled() bool { return len(t.list()) > 0 }

// Resources returns the tools that list and read what servers let be read. An address
// that no server has listed is asked about: it may say anything to its server.
func Resources(c ResourceConfig) []agent.Tool {
	list := kit.Tool{
		About: agent.Spec{
			Name: "resource__list", Description: kit.Describe(resourceListText), Input: json.RawMessage(resourceListSchema),
			Class: agent.Read, Group: "mcp", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(_ context.Context, _ agent.ToolContext, call agent.Call) (agent.Result, error) {
			in, err := kit.Decode[struct {
				Server string `json:"server"`
			}](call)
			if err != nil {
				return agent.Result{}, err
			}
			return c.listed(in.Server)
		},
	}
	type wanted struct {
		Server string `json:"server"`
		URI    string `json:"uri"`
	}
	read := kit.Tool{
		About: agent.Spec{
			Name: ReadResource, Description: kit.Describe(resourceReadText), Input: json.RawMessage(resourceReadSchema),
			Class: agent.Read, Group: "mcp", Risk: agent.RiskMedium,
		},
		Touches: func(_ agent.ToolContext, call agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[wanted](call)
			if err != nil || c.lists(in.Server, in.URI) {
				return agent.Effects{}, err
			}
			return agent.Effects{Class: agent.Unsafe}, nil
		},
		Does: func(ctx context.Context, _ agent.ToolContext, call agent.Call) (agent.Result, error) {
			in, err := kit.Decode[wanted](call)
			if err != nil {
				return agent.Result{}, err
			}
			if why := c.Barred(in.Server, in.URI); why != "" {
				return agent.Result{}, kit.Refuse(agent.ErrDenied, why, "Do not try it another way.")
			}
			return c.Read(ctx, in.Server, in.URI)
		},
	}
	return []agent.Tool{onlyWith{list, c.List}, onlyWith{read, c.List}}
}

// lists reports whether a server has named an address itself.
func (c ResourceConfig) lists(server, uri string) bool {
	for _, r := range c.List() {
		if r.Server == server && r.URI == uri && !r.Template {
			return true
		}
	}
	return false
}

// listed is the list as a model reads it.
func (c ResourceConfig) listed(server string) (agent.Result, error) {
	all := []Resource{}
	var b strings.Builder
	for _, r := range c.List() {
		if server != "" && r.Server != server || c.Barred(r.Server, r.URI) != "" {
			continue
		}
		all = append(all, r)
		fmt.Fprintf(&b, "%s %s", r.Server, r.URI)
		if r.Template {
			b.WriteString(" (template)")
		}
		if r.Name != "" && r.Name != r.URI {
			b.WriteString(" – " + r.Name)
		}
		if r.Type != "" {
			b.WriteString(", " + r.Type)
		}
		if about := strings.Join(strings.Fields(r.Description), " "); about != "" {
			b.WriteString(": " + strings.ToValidUTF8(about[:min(len(about), maxAbout)], ""))
		}
		b.WriteByte('\n')
	}
	r := agent.OK(cmp.Or(strings.TrimSpace(b.String()), "There are no resources."))
	r.Output = kit.Structured(all)
	return r, nil
}

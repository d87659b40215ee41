package connections

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/mcp"
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

// maxAbout limits the description of a resource in the list, in bytes.
const maxAbout = 160

// ReadResource is the tool that reads a resource of a server.
const ReadResource = "resource__read"

// resourceTools are the tools by which a session lists and reads what its servers let be read.
type resourceTools struct {
	x       *Extension
	session string
	policy  Policy
}

// onlyWith is a tool that there is only while there are resources.
type onlyWith struct {
	kit.Tool
	resourceTools
}

// Enabled reports whether a server has anything that can be read.
func (t onlyWith) Enabled() bool { return len(t.servers().resources()) > 0 }

// Tools returns the tools that list and read what the servers of a session let be read, and
// rules permit. An address that no server has listed is asked about: it may say anything to its
// server.
func (x *Extension) Tools(session string, p Policy) []agent.Tool {
	c := resourceTools{x, session, p}
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
			if err != nil || c.servers().lists(in.Server, in.URI) {
				return agent.Effects{}, err
			}
			return agent.Effects{Class: agent.Unsafe}, nil
		},
		Does: func(ctx context.Context, _ agent.ToolContext, call agent.Call) (agent.Result, error) {
			in, err := kit.Decode[wanted](call)
			if err != nil {
				return agent.Result{}, err
			}
			of := c.servers()
			if why := of.Barred(c.policy, in.Server, in.URI); why != "" {
				return agent.Result{}, kit.Refuse(agent.ErrDenied, why, "Do not try it another way.")
			}
			if of == nil {
				return agent.Failure(agent.ErrMCPUnavailable, "this session has no servers", ""), nil
			}
			return of.set.Read(ctx, in.Server, in.URI)
		},
	}
	return []agent.Tool{onlyWith{list, c}, onlyWith{read, c}}
}

func (c resourceTools) servers() *Servers { return c.x.Of(c.session) }

// lists reports whether a server has named an address itself.
func (c *Servers) lists(server, uri string) bool {
	return slices.ContainsFunc(c.resources(), func(r mcp.Resource) bool { return r.Server == server && r.URI == uri && !r.Template })
}

// listed is the list as a model reads it.
func (c resourceTools) listed(server string) (agent.Result, error) {
	all := []mcp.Resource{}
	var b strings.Builder
	of := c.servers()
	for _, r := range of.resources() {
		if server != "" && r.Server != server || of.Barred(c.policy, r.Server, r.URI) != "" {
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

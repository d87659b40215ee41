package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
)

// Bounds of what a server offers.
const (
	maxEntries = 1000 // of a list
	maxPages   = 100
	maxSchema  = 64 << 10
	maxDepth   = 64 // of a schema
	maxLeft    = 50
	maxURI     = 4096
	readLimit  = time.Minute // for reading the lists again
)

// offers is what a server has.
type offers struct {
	title        string
	protocol     string
	instructions string
	tools        []*Tool
	prompts      []Prompt
	resources    []Resource
	templates    []Resource
	left         []string
}

// A Prompt is a text of a server that a person can have put to the model.
type Prompt struct {
	Server      string
	Name        string // as the server has it
	Command     string // mcp__server__prompt
	Title       string
	Description string
	Arguments   []Argument
}

// An Argument is one that a prompt takes.
type Argument struct {
	Name        string
	Description string
	Required    bool
}

// A Resource is something that a server lets be read, or a template for the addresses
// of such.
type Resource struct {
	Server      string `json:"server"`
	URI         string `json:"uri"` // of a template: with {names} in it
	Name        string `json:"name,omitempty"`
	Title       string `json:"-"`
	Description string `json:"description,omitempty"`
	Type        string `json:"mimeType,omitempty"`
	Size        int64  `json:"-"`
	Template    bool   `json:"template,omitempty"`
}

// read asks the server for all that it has.
func (l *live) read(ctx context.Context) (offers, error) {
	var o offers
	hello := l.session.InitializeResult()
	if hello == nil || hello.Capabilities == nil {
		return o, errors.New("it did not say what it can do")
	}
	set, can := l.v.set, hello.Capabilities
	if i := hello.ServerInfo; i != nil {
		o.title = set.say(line(i.Name+" "+i.Version, maxRemote), maxRemote)
	}
	o.protocol, o.instructions = line(hello.ProtocolVersion, 32), set.say(hello.Instructions, maxTeach)
	if can.Tools != nil {
		list, err := pages(func(cursor string) ([]*sdk.Tool, string, error) {
			r, err := l.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Tools, r.NextCursor, nil
		})
		if err != nil {
			return o, fmt.Errorf("listing its tools: %w", err)
		}
		l.v.takeTools(&o, list)
	}
	// What is no tool may be missing: the server is of use without it.
	if can.Prompts != nil {
		list, err := pages(func(cursor string) ([]*sdk.Prompt, string, error) {
			r, err := l.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Prompts, r.NextCursor, nil
		})
		if err != nil {
			o.leave(set, "its prompts: "+err.Error())
		}
		l.v.takePrompts(&o, list)
	}
	if can.Resources != nil {
		l.readResources(ctx, &o)
	}
	return o, ctx.Err()
}

func (l *live) readResources(ctx context.Context, o *offers) {
	list, err := pages(func(cursor string) ([]*sdk.Resource, string, error) {
		r, err := l.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return r.Resources, r.NextCursor, nil
	})
	if err != nil {
		o.leave(l.v.set, "its resources: "+err.Error())
	}
	for _, r := range list {
		if r != nil {
			l.v.takeResource(o, &o.resources, Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, Type: r.MIMEType, Size: r.Size})
		}
	}
	more, err := pages(func(cursor string) ([]*sdk.ResourceTemplate, string, error) {
		r, err := l.session.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return r.ResourceTemplates, r.NextCursor, nil
	})
	if err != nil && !isNoMethod(err) {
		o.leave(l.v.set, "its templates: "+err.Error())
	}
	for _, r := range more {
		if r != nil {
			l.v.takeResource(o, &o.templates, Resource{URI: r.URITemplate, Name: r.Name, Title: r.Title, Description: r.Description, Type: r.MIMEType, Template: true})
		}
	}
}

// pages reads a list to its end, or to its bounds.
func pages[T any](page func(cursor string) ([]T, string, error)) ([]T, error) {
	var all []T
	seen := map[string]bool{}
	cursor := ""
	for range maxPages {
		var list []T
		var next string
		err := safely(func() (err error) { list, next, err = page(cursor); return err })
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if next == "" || len(all) >= maxEntries || seen[next] {
			break
		}
		seen[next], cursor = true, next
	}
	return all[:min(len(all), maxEntries)], nil
}

// leave notes what cannot be used.
func (o *offers) leave(s *Set, what string) {
	if len(o.left) < maxLeft {
		o.left = append(o.left, s.say(line(what, maxProblem), maxProblem))
	}
}

// takeTools makes tools of a list. The order is that of the names, so that it is the
// same each time.
func (v *server) takeTools(o *offers, list []*sdk.Tool) {
	byName := map[string]*sdk.Tool{}
	var names []string
	for _, t := range list {
		switch {
		case t == nil || t.Name == "" || len(t.Name) > maxRemote:
			o.leave(v.set, "a tool without a name, or with one that is too long")
		case byName[t.Name] != nil:
			o.leave(v.set, t.Name+": there are two of that name")
		default:
			byName[t.Name] = t
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	head := prefix + v.short + "__"
	short := tellApart(names, part, maxName-len(head))
	trusted := v.set.c.Trusted != nil && v.set.c.Trusted(v.def)
	for _, n := range names {
		t, err := v.newTool(byName[n], head+short[n], trusted)
		if err != nil {
			o.leave(v.set, n+": "+err.Error())
			continue
		}
		o.tools = append(o.tools, t)
	}
}

// newTool makes a tool of what the server says of it.
func (v *server) newTool(t *sdk.Tool, name string, trusted bool) (*Tool, error) {
	schema, err := v.set.schema(t.InputSchema)
	if err != nil {
		return nil, err
	}
	out := &Tool{v: v, remote: t.Name, spec: agent.Spec{
		Name: name, Description: v.set.say(t.Description, maxWords), Input: schema,
		Class: agent.Unsafe, Group: "mcp", Risk: agent.RiskMedium, Limit: v.callLimit() + grace,
	}}
	out.traits.Title = v.set.say(line(t.Title, maxRemote), maxRemote)
	if a := t.Annotations; a != nil {
		if out.traits.Title == "" {
			out.traits.Title = v.set.say(line(a.Title, maxRemote), maxRemote)
		}
		out.traits.ReadOnly = a.ReadOnlyHint
		if a.ReadOnlyHint && trusted {
			out.spec.Class = agent.Read
		}
	}
	out.traits.AlwaysLoad = v.def.AlwaysLoad || t.Meta["anthropic/alwaysLoad"] == true
	out.traits.Asks = t.Meta["anthropic/requiresUserInteraction"] == true
	if n, ok := t.Meta["anthropic/maxResultSizeChars"].(float64); ok && n >= 1 {
		out.spec.Budget = int(min(n, maxBudget))
	}
	out.print = fingerprint(t, schema)
	return out, nil
}

// fingerprint is the same as long as the model is told the same of a tool.
func fingerprint(t *sdk.Tool, schema json.RawMessage) string {
	h := sha256.New()
	for _, s := range []string{t.Name, t.Description, string(schema)} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// schema checks the schema of an input. It is passed on as it is, but for texts that
// models read: those are cleaned.
func (s *Set) schema(in any) (json.RawMessage, error) {
	m, ok := in.(map[string]any)
	if in == nil {
		m, ok = map[string]any{}, true
	}
	if !ok {
		return nil, errors.New("its schema is no object")
	}
	if _, has := m["type"]; !has {
		m["type"] = "object"
	}
	if m["type"] != "object" {
		return nil, errors.New("its input is no object")
	}
	if !s.cleanSchema(m, 0) {
		return nil, fmt.Errorf("its schema is deeper than %d", maxDepth)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, errors.New("its schema is no JSON")
	}
	if len(data) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d KiB", maxSchema>>10)
	}
	return data, nil
}

// cleanSchema cleans the texts of a schema, and reports whether it is not too deep.
func (s *Set) cleanSchema(in any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := in.(type) {
	case map[string]any:
		for k, e := range v {
			if text, ok := e.(string); ok && (k == "description" || k == "title" || k == "$comment") {
				v[k] = s.say(text, maxWords)
				continue
			}
			if !s.cleanSchema(e, depth+1) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !s.cleanSchema(e, depth+1) {
				return false
			}
		}
	}
	return true
}

func (v *server) takePrompts(o *offers, list []*sdk.Prompt) {
	var names []string
	byName := map[string]*sdk.Prompt{}
	for _, p := range list {
		if p == nil || p.Name == "" || len(p.Name) > maxRemote || byName[p.Name] != nil {
			o.leave(v.set, "a prompt without a name of its own")
			continue
		}
		byName[p.Name] = p
		names = append(names, p.Name)
	}
	slices.Sort(names)
	head := prefix + v.short + "__"
	short := tellApart(names, part, maxName-len(head))
	for _, n := range names {
		p := byName[n]
		out := Prompt{
			Server: v.def.Name, Name: n, Command: head + short[n],
			Title: v.set.say(line(p.Title, maxRemote), maxRemote), Description: v.set.say(p.Description, maxWords),
		}
		for _, a := range p.Arguments[:min(len(p.Arguments), maxFields)] {
			if a != nil {
				out.Arguments = append(out.Arguments, Argument{a.Name, v.set.say(a.Description, maxWords), a.Required})
			}
		}
		o.prompts = append(o.prompts, out)
	}
}

func (v *server) takeResource(o *offers, to *[]Resource, r Resource) {
	if r.URI == "" || len(r.URI) > maxURI || line(r.URI, maxURI) != r.URI {
		o.leave(v.set, "a resource whose address cannot be shown")
		return
	}
	r.Server = v.def.Name
	r.Name, r.Title = v.set.say(line(r.Name, maxRemote), maxRemote), v.set.say(line(r.Title, maxRemote), maxRemote)
	r.Description, r.Type = v.set.say(r.Description, maxWords), line(r.Type, maxRemote)
	*to = append(*to, r)
}

// refresh reads the lists again. When that fails the old ones stay.
func (v *server) refresh(ctx context.Context, l *live) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	ctx, done := l.during(ctx)
	defer done()
	o, err := l.read(ctx)
	if err != nil {
		v.set.c.Log.Info("mcp server", "server", v.def.Name, "problem", v.set.say(err.Error(), maxProblem))
		return
	}
	v.mu.Lock()
	v.offers = o
	v.mu.Unlock()
	v.set.c.OnChange(v.def.Name)
}

package mcpserve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/frontend/text"
)

// A loan is a lent session, with the calls that run in it.
type loan struct {
	Lent
	s *Server

	mu    sync.Mutex
	calls map[string]*calling // by ID; guarded by mu
}

// calling is a call on its way.
type calling struct {
	person
	by  string          // who calls, for the log
	ctx context.Context // of the call
}

// lendTools offers the tools of the catalog.
func (s *Server) lendTools() {
	for _, t := range s.c.Tools {
		no, world := false, t.Group == "web" || t.Group == "system"
		s.mcp.AddTool(&mcp.Tool{
			Name: s.c.Name(t.Name), Description: t.Description, InputSchema: t.Input,
			Annotations: &mcp.ToolAnnotations{
				ReadOnlyHint: t.Class == agent.Read && t.Group != "web", IdempotentHint: t.Class == agent.Read || t.Class == agent.Idempotent,
				DestructiveHint: hint(t.Class == agent.Read, &no), OpenWorldHint: &world,
			},
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.carryOut(ctx, req, func(ctx context.Context, p person) (*mcp.CallToolResult, error) {
				r, err := s.call(ctx, p, caller(req.ClientInfo()), t, req.Params.Arguments)
				if err != nil {
					return nil, err
				}
				return resultOf(r), nil
			})
		})
	}
}

// hint is a hint that is given where it holds.
func hint(holds bool, v *bool) *bool {
	if holds {
		return v
	}
	return nil
}

// caller names the client that a call comes from, for the log and the rules.
func caller(c *mcp.Implementation) string {
	const most = 40
	name := "client"
	if c != nil && c.Name != "" {
		name = text.Cut(text.OneLine(c.Name), most)
	}
	return "mcp:" + name
}

// call makes a call in a lent session.
func (s *Server) call(ctx context.Context, p person, by string, tool agent.Spec, input json.RawMessage) (agent.Result, error) {
	l, err := s.loan(p.ask != nil)
	if err != nil {
		return agent.Result{}, err
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	id := "mcp_" + rand.Text()[:16]
	l.mu.Lock()
	l.calls[id] = &calling{p, by, ctx}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, id)
	}()
	return l.Call(ctx, id, by, tool, input)
}

// loan returns the session whose tools are lent to clients that can ask somebody, or to
// those that cannot. It is opened when it is first needed.
func (s *Server) loan(asks bool) (*loan, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	l, closed := s.loans[asks], s.closed
	s.mu.Unlock()
	if l != nil || closed {
		return l, map[bool]error{true: errClosed}[closed]
	}
	lent, err := s.c.Lend(s.life, "mcp serve", asks)
	if err != nil {
		return nil, err
	}
	l = &loan{Lent: lent, s: s, calls: map[string]*calling{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = lent.Close(ctx) // nothing has happened in it
		return nil, errClosed
	}
	s.loans[asks] = l
	s.wg.Go(l.follow)
	return l, nil
}

// follow shows the calls of the session what becomes of them.
func (l *loan) follow() {
	for e, err := range l.s.c.Client.Attach(l.ID()).Events(l.s.life, 0) {
		if err != nil {
			if l.s.life.Err() == nil {
				l.s.c.Logger.Error("reading a session whose tools are lent", "session", l.ID(), "error", err)
			}
			return
		}
		switch b := e.Body.(type) {
		case agent.CallOutput:
			if c := l.calling(b.ID); c != nil {
				c.show(cut(text.Clean(b.Text), maxShownLine))
			}
		case agent.ApprovalAsked:
			c := l.calling(b.Proposal.Call.ID)
			l.s.wg.Go(func() { l.answer(c, b) })
		}
	}
}

func (l *loan) calling(id string) *calling {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[id]
}

// answer answers what the session asks. About what no call of a client is for, such as a
// call that a hook makes, nobody can be asked.
func (l *loan) answer(c *calling, a agent.ApprovalAsked) {
	ctx, p, by := l.s.life, person{}, "mcp"
	if c != nil {
		ctx, p, by = c.ctx, c.person, c.by
	}
	answer := l.s.approve(ctx, p, by, a)
	if err := l.s.c.Client.Attach(l.ID()).Send(l.s.life, answer); err != nil && l.s.life.Err() == nil {
		l.s.c.Logger.Error("answering an approval", "session", l.ID(), "error", err)
	}
}

// resultOf is what a client reads of a result: what a model of ours would.
func resultOf(r agent.Result) *mcp.CallToolResult {
	res := &mcp.CallToolResult{IsError: r.Failed(), Content: []mcp.Content{}}
	said := r.Text
	if said == "" && len(r.Output) > 0 {
		said = string(r.Output)
	}
	if said != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: said})
	}
	for _, b := range r.Blocks {
		switch {
		case b.Type == agent.TextBlock:
			res.Content = append(res.Content, &mcp.TextContent{Text: b.Text})
		case b.Type == agent.ImageBlock && b.Media != nil && len(b.Media.Data) > 0:
			res.Content = append(res.Content, &mcp.ImageContent{Data: b.Media.Data, MIMEType: b.Media.Type})
		case b.Type == agent.DocumentBlock && b.Media != nil && len(b.Media.Data) > 0:
			res.Content = append(res.Content, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
				URI: "dure://document", MIMEType: b.Media.Type, Blob: b.Media.Data,
			}})
		}
	}
	meta := mcp.Meta{}
	if r.Error != nil {
		meta["dure/code"] = string(r.Error.Code)
	}
	if r.Handle != "" {
		meta["dure/handle"] = r.Handle
	}
	if len(meta) > 0 {
		res.Meta = meta
	}
	return res
}

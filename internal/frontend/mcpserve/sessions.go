package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// tag is what sessions are tagged with that clients start.
const tag = "mcp"

// The bounds of what clients do with sessions.
const (
	maxOpen     = 16 // sessions that are open for clients at once
	maxListed   = 100
	maxEvents   = 200
	maxEvent    = 32 << 10  // bytes of an event that is shown whole
	maxAnswer   = 256 << 10 // bytes of what a request returns
	usualWait   = 60 * time.Second
	longestWait = 10 * time.Minute
)

// sessionIn is the input of the tools for sessions.
type sessionIn struct {
	Session  string `json:"session"`
	Prompt   string `json:"prompt"`
	Title    string `json:"title"`
	Model    string `json:"model"`
	Plan     bool   `json:"plan"`
	Wait     *int   `json:"wait_seconds"`
	After    int64  `json:"after"`
	Limit    int    `json:"limit"`
	Approval string `json:"approval"`
	Answer   string `json:"answer"`
	Reason   string `json:"reason"`
}

// The parameters of the tools.
const (
	sessionField = `"session":{"type":"string","description":"ID of the session"}`
	promptField  = `"prompt":{"type":"string","minLength":1,"description":"what the agent is to do, with all that it needs to know"}`
	waitField    = `"wait_seconds":{"type":"integer","minimum":0,"maximum":600,"description":"how long to wait for the end of the turn; 60 unless you say otherwise"}`
)

func fields(required, properties string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`)
}

// sessionTools offers what clients can do with sessions.
func (s *Server) sessionTools() {
	type work func(context.Context, person, *mcp.CallToolRequest, sessionIn) (any, error)
	add := func(name, about string, schema json.RawMessage, reads bool, do work) {
		closed := false
		s.mcp.AddTool(&mcp.Tool{
			Name: name, Description: about, InputSchema: schema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads, OpenWorldHint: &closed},
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in sessionIn
			if raw := req.Params.Arguments; len(raw) > 0 {
				if err := json.Unmarshal(raw, &in); err != nil {
					return nil, invalid("%s: %v", name, err)
				}
			}
			return s.carryOut(ctx, req, func(ctx context.Context, p person) (*mcp.CallToolResult, error) {
				v, err := do(ctx, p, req, in)
				return said(v, err)
			})
		})
	}
	add("session_start", "Hand a task to an agent of dure: it works in a new session, with its own tools and its user's rules. Returns its answer, or, when it takes longer, how far it is: ask again with session_events.",
		fields(`"prompt"`, promptField+`,"title":{"type":"string"},"model":{"type":"string","description":"one that dure knows; leave it out for the usual one"},"plan":{"type":"boolean","description":"have it plan first"},`+waitField), false, s.start)
	add("session_send", "Say something more in a session: it is answered in a turn of its own, or steers the one that runs.",
		fields(`"session","prompt"`, sessionField+`,`+promptField+`,`+waitField), false, s.send)
	add("session_events", "Read what happened in a session behind event number after, oldest first. With wait_seconds, wait for something to happen.",
		fields(`"session"`, sessionField+`,"after":{"type":"integer","minimum":0},"limit":{"type":"integer","minimum":1,"maximum":200},`+waitField), true, s.events)
	add("session_answer", "Answer an approval that a session waits for. To allow it takes the word of the user of this client.",
		fields(`"session","approval","answer"`, sessionField+`,"approval":{"type":"string","description":"its ID"},"answer":{"type":"string","enum":["allow","deny"]},"reason":{"type":"string"}`), false, s.answer)
	add("session_stop", "Stop what a session does, and close it. Its log stays, and session_send goes on with it.",
		fields(`"session"`, sessionField), false, s.stop)
	add("session_list", "List the sessions.", fields(``, `"limit":{"type":"integer","minimum":1,"maximum":100}`), true, s.list)
}

// said is a result that is an answer in JSON, or says what was wrong.
func said(v any, err error) (*mcp.CallToolResult, error) {
	if err != nil {
		if bad, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return nil, bad
		}
		words := err.Error()
		if p := agent.ProblemOf(err); p != nil {
			words = p.Message
			if p.Fix != "" {
				words += "\n" + p.Fix
			}
		}
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: words}}}, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}, StructuredContent: json.RawMessage(data)}, nil
}

// Progress is how far a session is.
type Progress struct {
	Session string `json:"session"`

	// Status is running, waiting (for an approval), or how the turn has ended.
	Status    string     `json:"status"`
	Answer    string     `json:"answer,omitempty"` // the newest
	Error     string     `json:"error,omitempty"`
	After     int64      `json:"after"` // the newest event that was looked at
	Approvals []Approval `json:"approvals,omitempty"`
}

// Approval is what a session waits for.
type Approval struct {
	ID     string          `json:"id"`
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

func (s *Server) start(ctx context.Context, p person, req *mcp.CallToolRequest, in sessionIn) (any, error) {
	o := agent.Open{Workdir: s.c.Workdir, Title: text.Cut(text.OneLine(in.Title), 80), Model: in.Model, Approver: s.answered(p)}
	session, err := s.opened(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := session.Send(ctx, agent.Change{Tags: &[]string{tag}}); err != nil {
		return nil, err
	}
	if in.Plan {
		if err := session.Send(ctx, agent.Change{Plan: agent.PlanAlways}); err != nil {
			return nil, err
		}
	}
	return s.say(ctx, p, req, session, session.Info.Head, in)
}

// answered reports whether somebody answers what a session asks.
func (s *Server) answered(p person) bool { return p.ask != nil || s.c.Answers }

// opened opens a session for a client, unless there are too many.
func (s *Server) opened(ctx context.Context, o agent.Open) (*client.Session, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	there, many, closed := s.open[o.Session], len(s.open) >= maxOpen, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case there:
		return s.c.Client.Attach(o.Session), nil
	case many:
		return nil, fmt.Errorf("%d sessions are open already; close one with session_stop", maxOpen)
	}
	session, err := s.c.Client.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[session.Info.ID] = true // [Server.Close] waits for whoever is here
	return session, nil
}

func (s *Server) send(ctx context.Context, p person, req *mcp.CallToolRequest, in sessionIn) (any, error) {
	info, err := s.may(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	session, err := s.opened(ctx, agent.Open{Session: info.ID, Approver: s.answered(p)})
	if err != nil {
		return nil, err
	}
	return s.say(ctx, p, req, session, info.Head, in)
}

// say says something in a session and waits for what comes of it.
func (s *Server) say(ctx context.Context, p person, req *mcp.CallToolRequest, session *client.Session, head int64, in sessionIn) (any, error) {
	if err := session.Send(ctx, agent.Prompt{Text: in.Prompt}); err != nil {
		return nil, err
	}
	return s.follow(ctx, p, caller(req.ClientInfo()), session, head, wait(in.Wait, usualWait))
}

// wait is how long a client wants to wait.
func wait(seconds *int, usual time.Duration) time.Duration {
	if seconds == nil {
		return usual
	}
	return min(max(time.Duration(*seconds)*time.Second, 0), longestWait)
}

// follow reads a session until its turn has ended or the time is over. What it asks is put
// to the client's person, and the time that takes does not count.
func (s *Server) follow(ctx context.Context, p person, by string, session *client.Session, after int64, patience time.Duration) (Progress, error) {
	out := Progress{Session: session.Info.ID, Status: "running", After: after}
	open := map[string]agent.ApprovalAsked{}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	timer := time.AfterFunc(patience, stop)
	defer timer.Stop()
	for e, err := range session.Events(reading, after) {
		if err != nil {
			if reading.Err() != nil {
				break
			}
			return out, err
		}
		if !e.Live() {
			out.After = e.Seq
		}
		switch b := e.Body.(type) {
		case agent.ModelAnswered:
			if b.Purpose == "" && b.Said() != "" {
				out.Answer = cut(b.Said(), maxAnswer)
				p.show(cut(text.OneLine(b.Said()), maxShownLine))
			}
		case agent.CallStarted:
			p.show(s.c.Name(b.Tool))
		case agent.ApprovalAsked:
			open[b.ID] = b
			if p.ask == nil {
				break
			}
			paused := timer.Stop()
			if err := session.Send(ctx, s.approve(ctx, p, by, b)); err != nil {
				return out, err
			}
			if paused {
				timer.Reset(patience)
			}
		case agent.ApprovalResolved:
			delete(open, b.ID)
		case agent.TurnEnded:
			out.Status, out.Error = string(b.Reason), b.Error
			return out, nil
		}
		if len(open) > 0 && p.ask == nil {
			break // nobody will answer while this waits
		}
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	for _, id := range slices.Sorted(maps.Keys(open)) {
		out.Status = "waiting"
		out.Approvals = append(out.Approvals, s.approvalOf(open[id]))
	}
	return out, nil
}

func (s *Server) approvalOf(a agent.ApprovalAsked) Approval {
	in := a.Proposal.Call.Input
	if len(in) > maxEvent {
		in = nil
	}
	return Approval{ID: a.ID, Tool: s.c.Name(a.Proposal.Call.Tool), Input: in, Reason: a.Reason}
}

// may returns a session that clients may use, by its whole ID.
func (s *Server) may(ctx context.Context, id string) (agent.SessionInfo, error) {
	missing := fmt.Errorf("there is no session %q for this client; session_list lists them", text.Cut(text.OneLine(id), 80))
	if id == "" {
		return agent.SessionInfo{}, missing
	}
	info, err := client.Query[agent.SessionInfo](ctx, s.c.Client, agent.FindSession{Name: id})
	if err != nil || info.ID != id || !s.sees(info) {
		return agent.SessionInfo{}, missing
	}
	return info, nil
}

func (s *Server) sees(i agent.SessionInfo) bool {
	return i.Workdir == s.c.Workdir && (s.c.Sessions == Folder || s.c.Sessions == Own && slices.Contains(i.Tags, tag))
}

// Events are events of a session.
type Events struct {
	Session string            `json:"session"`
	Events  []json.RawMessage `json:"events"`
	After   int64             `json:"after"` // where to go on
	Head    int64             `json:"head"`  // the newest event
}

func (s *Server) events(ctx context.Context, _ person, _ *mcp.CallToolRequest, in sessionIn) (any, error) {
	info, err := s.may(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	limit := maxEvents
	if in.Limit > 0 {
		limit = min(in.Limit, maxEvents)
	}
	out := Events{Session: info.ID, Events: []json.RawMessage{}, After: max(in.After, 0), Head: info.Head}
	patience := wait(in.Wait, 0)
	if out.After >= out.Head && patience == 0 {
		return out, nil
	}
	reading, stop := context.WithTimeout(ctx, max(patience, closeTime))
	defer stop()
	size := 0
	for e, err := range s.c.Client.Attach(info.ID).Events(reading, out.After) {
		if err != nil {
			if reading.Err() != nil {
				break
			}
			return nil, err
		}
		if e.Live() {
			continue
		}
		data, err := shown(e)
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxAnswer && len(out.Events) > 0 {
			break
		}
		out.Events, out.After, out.Head = append(out.Events, data), e.Seq, max(out.Head, e.Seq)
		if len(out.Events) == limit || e.Seq >= out.Head {
			break
		}
	}
	return out, ctx.Err()
}

// shown is an event as a client reads it: one that is too long by its size alone.
func shown(e agent.Event) (json.RawMessage, error) {
	data, err := json.Marshal(e)
	if err != nil || len(data) <= maxEvent {
		return data, err
	}
	return json.Marshal(map[string]any{"seq": e.Seq, "k": e.Kind(), "ts": e.Time.UTC().Format(time.RFC3339Nano), "bytes": len(data)})
}

func (s *Server) answer(ctx context.Context, p person, req *mcp.CallToolRequest, in sessionIn) (any, error) {
	info, err := s.may(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	asked, err := s.asked(ctx, info, in.Approval)
	if err != nil {
		return nil, err
	}
	by := caller(req.ClientInfo())
	answer := agent.Resolve{ID: asked.ID, Decision: agent.Decision{Verdict: agent.Deny, By: by, Reason: text.Cut(text.OneLine(in.Reason), maxShownLine)}}
	switch {
	case in.Answer == "deny":
	case in.Answer != "allow":
		return nil, invalid("answer is allow or deny")
	case p.ask != nil:
		answer = s.approve(ctx, p, by, asked)
	case s.c.Answers:
		answer.Decision.Verdict = agent.Allow
	default:
		return nil, errors.New("it takes the word of a person to allow it, and this client cannot ask one; answer in dure, or deny it")
	}
	if err := s.c.Client.Attach(info.ID).Resolve(ctx, answer); err != nil {
		return nil, err
	}
	return map[string]any{"session": info.ID, "approval": asked.ID, "verdict": answer.Decision.Verdict}, nil
}

// asked returns an approval that a session waits for.
func (s *Server) asked(ctx context.Context, info agent.SessionInfo, id string) (found agent.ApprovalAsked, err error) {
	if info.Head == 0 {
		return found, invalid("the session waits for nothing")
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	for e, err := range s.c.Client.Attach(info.ID).Events(reading, 0) {
		if err != nil {
			return found, err
		}
		switch b := e.Body.(type) {
		case agent.ApprovalAsked:
			if b.ID == id {
				found = b
			}
		case agent.ApprovalResolved:
			if b.ID == id {
				return found, fmt.Errorf("the approval %s was answered before", id)
			}
		}
		if !e.Live() && e.Seq >= info.Head {
			break
		}
	}
	if found.ID == "" {
		return found, fmt.Errorf("the session waits for no approval %q", text.Cut(text.OneLine(id), 80))
	}
	return found, ctx.Err()
}

func (s *Server) stop(ctx context.Context, _ person, _ *mcp.CallToolRequest, in sessionIn) (any, error) {
	info, err := s.may(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	open := s.open[info.ID]
	delete(s.open, info.ID)
	s.mu.Unlock()
	if !open {
		return nil, errors.New("the session is not open here")
	}
	if err := s.c.Client.Attach(info.ID).Close(ctx); err != nil {
		return nil, err
	}
	return map[string]any{"session": info.ID, "status": "closed"}, nil
}

// listed are the sessions that clients may see, the newest first.
func (s *Server) listed(ctx context.Context, limit int) ([]agent.SessionInfo, error) {
	q := agent.ListSessions{Workdir: s.c.Workdir, Limit: maxListed}
	if s.c.Sessions == Own {
		q.Tag = tag
	}
	if limit > 0 {
		q.Limit = min(limit, maxListed)
	}
	all, err := client.Query[agent.SessionList](ctx, s.c.Client, q)
	return append([]agent.SessionInfo{}, all.Sessions...), err
}

func (s *Server) list(ctx context.Context, _ person, _ *mcp.CallToolRequest, in sessionIn) (any, error) {
	all, err := s.listed(ctx, in.Limit)
	return map[string]any{"sessions": all}, err
}

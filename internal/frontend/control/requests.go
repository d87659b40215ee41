package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/client/protocol"
	"dure/internal/frontend/text"
)

const (
	maxName = 40 // cells of a name of the host's that is shown

	maxRegistered = 64 // events of hooks
)

// requests are what a host may ask for. Those that concern a session are carried out by it,
// one after the other.
var requests map[protocol.Type]func(*conn, *request)

func init() { // they lead back to it
	requests = map[protocol.Type]func(*conn, *request){
		protocol.TypeInitialize:         (*conn).initialize,
		protocol.TypeUserMessage:        (*conn).userMessage,
		protocol.TypeSetPermissionMode:  within((*session).setMode),
		protocol.TypeSetModel:           within((*session).setModel),
		protocol.TypeInterrupt:          within((*session).interrupt),
		protocol.TypeGetContextUsage:    within((*session).contextUsage),
		protocol.TypeRewindFiles:        within((*session).rewind),
		protocol.TypeCanUseToolResponse: (*conn).canUseTool,
		protocol.TypeHookCallback:       (*conn).hookCallback,
		protocol.TypeTerminate:          (*conn).terminate,
	}
}

// messages are what a host is sent.
var messages = []protocol.Type{
	protocol.TypeInitializeResult, protocol.TypeAssistantToken, protocol.TypeAssistantMessage, protocol.TypeToolUseStart,
	protocol.TypeToolProgress, protocol.TypeToolResult, protocol.TypeSessionResult, protocol.TypeHookEvent,
	protocol.TypeCanUseTool, protocol.TypeNotification, protocol.TypeError,
}

// within has a request carried out by the session that it is about.
func within[T any](do func(*session, context.Context, *request, T) error) func(*conn, *request) {
	return func(c *conn, r *request) {
		p, err := protocol.Payload[T](r.Message)
		var s *session
		if err == nil {
			s, err = c.sessionOf(r.Session)
		}
		if err != nil {
			c.refuse(r, err)
			return
		}
		s.ask(job{r, func(s *session, ctx context.Context) error { return do(s, ctx, r, p) }})
	}
}

// sessionOf returns the session that a request is about.
func (c *conn) sessionOf(id string) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if id == "" {
		s = c.first
	}
	if s == nil {
		return nil, &protocol.Error{
			Code: protocol.CodeNoSession, Message: "no such session is open on this connection",
			Fix: "open one with UserMessage, or with open in Initialize",
		}
	}
	return s, nil
}

// initialize agrees on what is spoken, and has the program built.
func (c *conn) initialize(r *request) {
	p, err := protocol.Payload[protocol.InitializePayload](r.Message)
	if err == nil {
		err = c.agree(&p)
	}
	if err != nil {
		c.refuse(r, err)
		return
	}
	var agents json.RawMessage
	if len(p.Agents) > 0 {
		agents, _ = json.Marshal(p.Agents) // it was read from JSON
	}
	c.host = p // its hooks are asked for from now on
	program, err := c.cfg.Start(c.life, Begin{Settings: p.Settings, Agents: agents, Hooks: registered(p.Hooks), Call: c.hook})
	if err != nil {
		c.refuse(r, err)
		return
	}
	c.program, c.name, c.begun = program, caller(p.Client.Name), true
	result := protocol.InitializeResultData{
		Version: protocol.Version, Program: protocol.Client{Name: "dure", Version: c.cfg.Version}, Workdir: c.program.Workdir,
		Requests: slices.Sorted(maps.Keys(requests)), Messages: messages, Capabilities: c.capabilities(),
		Limits: protocol.Limits{MessageBytes: protocol.MaxMessage, OpenRequests: maxRequests, Sessions: maxSessions, AskTime: p.CanUseToolTimeout},
	}
	if p.Open == nil {
		c.answer(r, protocol.TypeInitializeResult, "", result)
		return
	}
	_, err = c.newSession(*p.Open, &job{r, func(s *session, _ context.Context) error {
		result.Session = s.sess.Info.ID
		c.answer(r, protocol.TypeInitializeResult, result.Session, result)
		return nil
	}})
	if err != nil {
		c.refuse(r, err)
	}
}

// agree checks what a host has said of itself, and fills in what it has not.
func (c *conn) agree(p *protocol.InitializePayload) error {
	bad := func(format string, args ...any) error {
		return &protocol.Error{Code: protocol.CodePayload, Message: "the payload of Initialize: " + fmt.Sprintf(format, args...)}
	}
	if p.Version < 0 {
		return &protocol.Error{Code: protocol.CodeVersion, Message: fmt.Sprintf("there is no version %d of the protocol", p.Version), Fix: fmt.Sprintf("send version %d", protocol.Version)}
	}
	if p.CanUseToolTimeout == 0 {
		p.CanUseToolTimeout = protocol.DefaultAskTime
	}
	if p.CanUseToolTimeout < 1 || p.CanUseToolTimeout > protocol.MaxAskTime {
		return bad("can_use_tool_timeout_ms is not 1 to %d", protocol.MaxAskTime)
	}
	if len(p.Hooks) > maxRegistered {
		return bad("more than %d hooks", maxRegistered)
	}
	if err := hookTime(p.Hooks); err != nil {
		return err
	}
	if len(p.Settings) > 0 && string(p.Settings) != "null" {
		if p.Settings[0] != '{' {
			return bad("settings are no JSON object")
		}
	} else {
		p.Settings = nil
	}
	if !c.cfg.Own && (p.Settings != nil || len(p.Agents) > 0 || len(p.Hooks) > 0) {
		return bad("settings, agents and hooks are taken from a host that has started dure for itself, and from no other")
	}
	return nil
}

// capabilities are what a host may make use of.
func (c *conn) capabilities() []string {
	list := []string{"can_use_tool", "rewind", "sessions"}
	if c.cfg.Own {
		list = append(list, "agents", "hooks", "settings")
	}
	slices.Sort(list)
	return list
}

// newSession begins to open a session. hello, unless it is nil, is done before anything else.
func (c *conn) newSession(o protocol.OpenSession, hello *job) (*session, error) {
	open := agent.Open{
		Session: o.Resume, Fork: o.Fork, At: o.At, New: o.New, Workdir: o.Workdir, Model: o.Model, Mode: agent.Mode(o.Mode),
		Title: text.Cut(text.OneLine(o.Title), maxTitle), Profile: o.Profile, Agent: o.Agent, MaxSteps: o.MaxSteps, Approver: c.host.CanUseTool,
	}
	if err := openable(o); err != nil {
		return nil, err
	}
	if open.Session == "" && open.Fork == "" {
		if open.Workdir == "" {
			open.Workdir = c.program.Workdir
		}
		if open.Mode == "" {
			open.Mode = c.program.Mode
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.deaf:
		return nil, errClosed
	case c.sessions[o.Resume] != nil && o.Resume != "":
		return c.sessions[o.Resume], nil
	case len(c.all) >= maxSessions:
		return nil, &protocol.Error{
			Code: protocol.CodeManySessions, Message: fmt.Sprintf("%d sessions are open on this connection", maxSessions),
			Fix: "close one with Terminate",
		}
	}
	s := openedBy(c, open, hello)
	c.all[s] = true
	if c.first == nil {
		c.first = s
	}
	if o.Resume != "" {
		c.sessions[o.Resume] = s
	}
	c.wg.Go(s.run)
	return s, nil
}

const maxTitle = 80 // cells

// openable checks what a host wants opened, as far as nobody else does.
func openable(o protocol.OpenSession) error {
	bad := func(why string) error {
		return &protocol.Error{Code: protocol.CodePayload, Message: "the session to be opened: " + why}
	}
	switch {
	case o.Resume != "" && (o.Fork != "" || o.New != ""):
		return bad("resume excludes fork and new")
	case o.At != 0 && o.Fork == "", o.At < 0:
		return bad("at is the number of an event, and goes with fork")
	case o.MaxSteps < 0:
		return bad("max_steps is below 0")
	case len(o.Resume) > protocol.MaxID || len(o.Fork) > protocol.MaxID:
		return bad("an ID is too long")
	case o.New != "" && !plainID(o.New):
		return bad("new is no ID: 1 to 64 letters, digits, - or _")
	}
	return nil
}

// plainID reports whether a session may be called so.
func plainID(id string) bool {
	return len(id) <= 64 && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// userMessage says something in a session, which is opened if need be.
func (c *conn) userMessage(r *request) {
	p, err := protocol.Payload[protocol.UserMessagePayload](r.Message)
	var s *session
	if err == nil {
		s, err = c.addressed(r, p)
	}
	if err != nil {
		c.refuse(r, err)
		return
	}
	s.ask(job{r, func(s *session, ctx context.Context) error { return s.say(ctx, r, p) }})
}

// addressed returns the session that a message goes to.
func (c *conn) addressed(r *request, p protocol.UserMessagePayload) (*session, error) {
	switch {
	case p.Open != nil && r.Session != "":
		return nil, &protocol.Error{Code: protocol.CodePayload, Message: "the payload of UserMessage: open excludes session"}
	case p.Open != nil:
		return c.newSession(*p.Open, nil)
	}
	s, err := c.sessionOf(r.Session)
	if err != nil && r.Session == "" {
		return c.newSession(protocol.OpenSession{}, nil)
	}
	return s, err
}

// terminate closes one session. The end of all is taken where requests are.
func (c *conn) terminate(r *request) {
	s, err := c.sessionOf(r.Session)
	if err != nil {
		c.refuse(r, err)
		return
	}
	c.wg.Go(func() {
		s.close("")
		c.reply(r, r.Session)
	})
}

// explain is what a host is told of an error.
func (c *conn) explain(t protocol.Type, err error) protocol.ErrorData {
	d := protocol.ErrorData{Code: protocol.CodeInternal, Message: err.Error(), Request: t}
	if p := agent.ProblemOf(err); p != nil {
		d.Code, d.Args = protocol.Code(p.Code), p.Args
		d.Message, d.Fix = c.program.Text.Problem(p)
	} else if e, ok := errors.AsType[*protocol.Error](err); ok {
		d.Code, d.Message, d.Fix = e.Code, e.Message, e.Fix
	}
	return d
}

// readable is an error if a text is a command that a session cannot make a prompt of.
func (s *session) readable(ctx context.Context, said string) error {
	if !strings.HasPrefix(said, "/") {
		return nil
	}
	read, err := client.Query[query.CommandRead](ctx, s.c.program.Client, query.ReadCommand{Session: s.sess.Info.ID, Text: said})
	if err != nil {
		return err
	}
	t, name := s.c.program.Text, "/"+text.Cut(text.OneLine(read.Name), maxName)
	p := &agent.Problem{Code: agent.ProblemUsage}
	switch {
	case read.Is == query.ReadSend:
		return nil
	case read.Is == query.ReadRun, read.Kind == query.CommandBuiltIn:
		p.Message = t.Say(text.CommandNotHere, "name", name)
	case read.Is == query.ReadRefuse:
		p.Message = t.Say(text.CommandOff, "name", name, "why", text.Cut(text.OneLine(read.Why), maxTitle))
	default:
		p.Message = t.Say(text.SlashUnknown, "name", name)
	}
	return p
}

// askTime is how long the host's word is waited for.
func (c *conn) askTime() time.Duration {
	return time.Duration(c.host.CanUseToolTimeout) * time.Millisecond
}

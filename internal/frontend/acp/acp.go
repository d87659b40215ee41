// Package acp is the front-end for editors: the Agent Client Protocol, version 1, over
// lines of JSON-RPC.
//
// It decides nothing and keeps nothing: what it tells a client are the events of sessions,
// and what a client asks becomes commands. Questions of the gate are put to the client's
// person; whatever is no clear yes is a no. It starts a goroutine for each request that
// runs, for each session that is open and for each question that waits; all end with
// [Server.Run], but for one that waits for standard input.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
)

// protocol is the version of the protocol that is spoken.
const protocol = 1

// The bounds of a connection.
const (
	maxLine    = 32 << 20        // bytes of a message
	maxAtOnce  = 32              // requests that run, prompts apart: the next ones wait to be read
	maxOpen    = 64              // sessions that are open
	maxPrompts = 16              // of one session that wait for their end
	maxHeld    = 128 << 20       // bytes of requests that run
	closeTime  = 5 * time.Second // for what runs when a client has gone, and for what is closed

	// For a client that asks and does not read the answers: whether it is still there
	// cannot be seen while what it says waits to be read.
	stallTime = 10 * time.Minute
)

// Place is the program for the folder of a session.
type Place struct {
	Client client.Client

	Mode   agent.Mode   // of a new session
	Modes  []agent.Mode // that sessions may have
	Effort string       // as the settings have it; "" = it cannot be chosen
	Notes  []agent.Note // what is wrong with the settings

	Close func() error
}

// Folder is where a session works, with what its client brings along.
type Folder struct {
	Dir     string   // absolute
	Session string   // that is stored, and is to be gone on with; "" = a new one
	More    []string // folders beside it, absolute
	Servers []byte   // of the Model Context Protocol, as an object of mcpServers; nil = none
	Editor  Editor   // nil = the client shows no files

	Terminal agent.Terminal // of the client, for commands that nothing confines; nil = it has none
}

// Editor is a client in which files are open that may not be saved yet.
type Editor interface {
	// Read returns the text of a file as it stands in the editor; ok says that it has one. On
	// an error nobody knows whether it has.
	Read(ctx context.Context, path string) (text string, ok bool, err error)
	// Write has the editor take over what a file says now; ok says that it did.
	Write(ctx context.Context, path, text string) (ok bool)
}

// Config says what is served. All fields are required unless they say otherwise.
type Config struct {
	Text    text.Catalog // in which a client's person is told and asked
	Version string
	Logger  *slog.Logger

	// Open builds the program for a folder; the zero folder is where the program runs.
	Open func(Folder) (Place, error)

	// Login is how a person signs in within a terminal: arguments behind those of this
	// program.
	Login []string

	// Ready says why no model can be asked for now; nil = one can be.
	Ready func(context.Context) error
}

// Server serves one client.
type Server struct {
	c    Config
	line *line
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	terminals sync.WaitGroup // that are being made, or given back

	slots chan struct{}
	base  func() (Place, error)

	mu       sync.Mutex
	ready    bool       // the client has been welcomed
	caps     clientCaps // what it can do
	running  map[string]context.CancelCauseFunc
	held     int // what the requests that run hold, in bytes
	asked    map[int64]chan heard
	next     int64
	sessions map[string]*session // that are open, or about to be: nil
	based    *Place
}

// New returns a server for one client. Nothing is built before it is needed.
func New(c Config) *Server {
	s := &Server{
		c: c, slots: make(chan struct{}, maxAtOnce),
		running: map[string]context.CancelCauseFunc{}, asked: map[int64]chan heard{}, sessions: map[string]*session{},
	}
	s.base = sync.OnceValues(func() (Place, error) {
		p, err := c.Open(Folder{})
		if err == nil {
			s.mu.Lock()
			s.based = &p
			s.mu.Unlock()
		}
		return p, err
	})
	return s
}

// errGone ends what runs for a client that is there no more.
var errGone = errors.New("the client has gone")

// Run serves the client at a pair of streams, one message a line, until the input ends or
// ctx is done. What runs when the input ends has a while to end by itself; turns are
// interrupted then, and their sessions closed. What reads the input ends with it.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	s.life, s.end = context.WithCancel(ctx)
	defer s.end()
	s.line = newLine(in, out)
	go s.hurry(ctx)
	for {
		var data []byte
		select {
		case data = <-s.line.in:
		case <-s.line.over:
			s.finish()
			return s.close()
		case <-s.line.broken:
			return s.close()
		case <-s.line.closed:
			return s.close()
		case <-ctx.Done():
			return errors.Join(s.close(), context.Cause(ctx))
		}
		stuck := time.AfterFunc(stallTime, s.line.close)
		s.take(data)
		stuck.Stop()
	}
}

// hurry closes the line of a client that is gone, or is to be left, and does not read what
// is left for it. It ends with the line.
func (s *Server) hurry(ctx context.Context) {
	select {
	case <-s.line.over:
	case <-ctx.Done():
	case <-s.line.closed:
		return
	}
	late := time.NewTimer(2 * closeTime)
	defer late.Stop()
	select {
	case <-late.C:
		s.line.close()
	case <-s.line.closed:
	}
}

// finish lets what still runs end by itself for a while.
func (s *Server) finish() {
	grace := time.AfterFunc(closeTime, s.end)
	defer grace.Stop()
	idle := make(chan struct{})
	go func() { // ends with the requests
		s.wg.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-s.life.Done():
	}
}

// close ends all that runs, and closes the sessions.
func (s *Server) close() error {
	s.end()
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), closeTime)
	defer cancel()
	defer time.AfterFunc(closeTime, s.line.close).Stop() // a client that does not read holds nobody up for ever
	var err error
	for _, x := range all {
		if x != nil {
			err = errors.Join(err, x.close(ctx))
		}
	}
	s.wg.Wait()
	s.terminals.Wait()
	s.line.close()
	select {
	case <-s.line.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	base := s.based
	s.mu.Unlock()
	if base != nil {
		err = errors.Join(err, base.Close())
	}
	return err
}

// A method is what a client may ask for.
type method struct {
	early bool // before it was welcomed
	waits bool // it lasts as long as a turn, and takes no slot
	bare  bool // it may come without params
	do    func(s *Server, ctx context.Context, params json.RawMessage) (answer, error)
}

// answer is what a request comes to. After is done once it has been written.
type answer struct {
	result any
	after  func()
}

// takes is a method whose params are read for do. It returns an [answer], or the result of one.
func takes[T any](do func(*Server, context.Context, T) (any, error)) method {
	return method{do: func(s *Server, ctx context.Context, params json.RawMessage) (answer, error) {
		var in T
		if err := decode(params, &in); err != nil {
			return answer{}, err
		}
		v, err := do(s, ctx, in)
		if a, whole := v.(answer); whole {
			return a, err
		}
		return answer{result: v}, err
	}}
}

func methods() map[string]method {
	first, list := takes((*Server).initialize), takes((*Server).listSessions)
	first.early, list.bare = true, true
	return map[string]method{
		"initialize":                first,
		"authenticate":              takes((*Server).authenticate),
		"session/new":               takes((*Server).newSession),
		"session/load":              takes((*Server).loadSession),
		"session/resume":            takes((*Server).resumeSession),
		"session/list":              list,
		"session/close":             takes((*Server).closeSession),
		"session/delete":            takes((*Server).deleteSession),
		"session/prompt":            {waits: true}, // see begin
		"session/set_mode":          takes((*Server).setMode),
		"session/set_config_option": takes((*Server).setOption),
	}
}

var table = sync.OnceValue(methods)

// take does what a line asks for.
func (s *Server) take(data []byte) {
	m, bad := parse(data)
	switch {
	case bad != nil && m.isAnswer(): // whoever waits for it need not wait any more
		s.answered(m.ID, heard{bad: errors.New("the client's answer cannot be understood: " + bad.Message)})
	case bad != nil:
		s.reply(m.ID, nil, bad)
	case m.Method == "": // an answer
		s.answered(m.ID, heard{message: m})
	case m.ID == nil:
		s.notified(m)
	default:
		s.begin(m)
	}
}

// begin begins with a request.
func (s *Server) begin(m message) {
	at, known := table()[m.Method]
	s.mu.Lock()
	_, twice := s.running[string(m.ID)]
	early, full := !s.ready && !at.early, s.held > 0 && s.held+len(m.Params) > maxHeld
	s.mu.Unlock()
	switch {
	case !known:
		s.reply(m.ID, nil, &wireError{Code: codeMethod, Message: "there is no method " + text.Cut(text.OneLine(m.Method), 80)})
		return
	case early:
		s.reply(m.ID, nil, &wireError{Code: codeRequest, Message: "initialize comes first"})
		return
	case twice:
		s.reply(m.ID, nil, &wireError{Code: codeRequest, Message: "a request with this id runs already"})
		return
	case full:
		s.reply(m.ID, nil, &wireError{Code: codeRequest, Message: "the requests that run hold 128 MiB already: wait for the end of one"})
		return
	}
	if at.waits { // it is known from here on, so that it can be cancelled
		at.do = s.promptOf(m.Params)
	}
	if at.early { // what comes behind it relies on it
		a, err := s.protected(s.life, at, m)
		s.reply(m.ID, a.result, err)
		return
	}
	if !at.waits {
		select {
		case s.slots <- struct{}{}:
		case <-s.life.Done():
			return
		}
	}
	ctx, cancel := context.WithCancelCause(s.life)
	s.mu.Lock()
	s.running[string(m.ID)] = cancel
	s.held += len(m.Params)
	s.mu.Unlock()
	s.wg.Go(func() {
		a, err := s.protected(ctx, at, m)
		cancelled := context.Cause(ctx)
		cancel(nil)
		s.mu.Lock()
		delete(s.running, string(m.ID))
		s.held -= len(m.Params)
		s.mu.Unlock()
		if err != nil && errors.Is(cancelled, errCancelled) {
			err = errCancelled
		}
		s.reply(m.ID, a.result, err)
		if a.after != nil {
			a.after()
		}
		if !at.waits {
			<-s.slots
		}
	})
}

// protected keeps a request that goes wrong from taking the others with it.
func (s *Server) protected(ctx context.Context, at method, m message) (a answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.c.Logger.Error("a request of a client panicked", "method", m.Method, "panic", v, "stack", string(debug.Stack()))
			a, err = answer{}, &wireError{Code: codeInternal, Message: "internal error"}
		}
	}()
	if at.bare && len(m.Params) == 0 {
		m.Params = json.RawMessage("{}")
	}
	return at.do(s, ctx, m.Params)
}

// errCancelled ends a request that its client has cancelled.
var errCancelled = &wireError{Code: codeCancelled, Message: "the request was cancelled"}

// notified takes what needs no answer. What is not known is passed over.
func (s *Server) notified(m message) {
	switch m.Method {
	case "session/cancel":
		var in ofSession
		if json.Unmarshal(m.Params, &in) == nil {
			if x := s.find(in.Session); x != nil {
				x.cancel()
			}
		}
	case "$/cancel_request":
		var in struct {
			ID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &in) != nil || in.ID == nil {
			return
		}
		s.mu.Lock()
		cancel := s.running[string(in.ID)]
		s.mu.Unlock()
		if cancel != nil {
			cancel(errCancelled)
		}
	}
}

// reply answers a request.
func (s *Server) reply(id json.RawMessage, result any, err error) {
	m := message{Version: "2.0", ID: id}
	if m.ID == nil {
		m.ID = json.RawMessage("null")
	}
	if err == nil {
		if m.Result, err = json.Marshal(result); err == nil {
			s.write(m)
			return
		}
	}
	m.Error = s.fault(err)
	s.write(m)
}

// fault is an error as a client gets it.
func (s *Server) fault(err error) *wireError {
	if w, ok := errors.AsType[*wireError](err); ok {
		return s.helped(w)
	}
	w := &wireError{Code: codeInternal, Message: err.Error()}
	p := agent.ProblemOf(err)
	if p == nil {
		if s.life.Err() != nil {
			w.Message = errGone.Error()
		}
		return w
	}
	said, fix := s.c.Text.Problem(p)
	w.Message = said
	switch p.Code {
	case agent.ProblemNoKey, agent.ProblemAuth:
		w.Code = codeAuth
	case agent.ProblemMissing, agent.ProblemNone:
		w.Code = codeMissing
	case agent.ProblemUsage, agent.ProblemModel, agent.ProblemWorkdir, agent.ProblemGone, agent.ProblemSettings:
		w.Code = codeParams
	}
	w.Data, _ = json.Marshal(map[string]string{"code": string(p.Code), "fix": fix}) // texts always encode
	return w
}

// helped is an error of the protocol with the code of dure, and what helps, where it has none.
func (s *Server) helped(w *wireError) *wireError {
	code, fix := agent.ProblemUsage, ""
	switch {
	case w.Data != nil:
		return w
	case w.Code == codeParams:
		fix = s.c.Text.Say(text.FixParams)
	case w.Code == codeMissing:
		code = agent.ProblemMissing
		_, fix = s.c.Text.Problem(&agent.Problem{Code: code})
	default:
		return w
	}
	with := *w
	with.Data, _ = json.Marshal(map[string]string{"code": string(code), "fix": fix}) // texts always encode
	return &with
}

// tell sends a notification.
func (s *Server) tell(method string, params any) {
	data, err := json.Marshal(params)
	if err != nil {
		s.c.Logger.Error("telling a client", "method", method, "error", err)
		return
	}
	s.write(message{Version: "2.0", Method: method, Params: data})
}

func (s *Server) write(m message) {
	data, err := json.Marshal(m)
	if err != nil {
		s.c.Logger.Error("writing a message", "error", err)
		return
	}
	s.line.write(data)
}

// heard is what came back from the client.
type heard struct {
	message
	bad error // it is no answer: nobody knows what the client has done
}

// ask asks the client something, and waits for the answer. What the client itself has refused
// is a [*wireError], and nothing else is one: of all that fails here, such as an answer that
// cannot be understood, the client may have done what it was asked for.
func (s *Server) ask(ctx context.Context, method string, params, result any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	got := make(chan heard, 1)
	s.mu.Lock()
	s.next++
	n := s.next
	s.asked[n] = got
	s.mu.Unlock()
	id, _ := json.Marshal(n) // a number always encodes
	s.write(message{Version: "2.0", ID: id, Method: method, Params: data})
	defer func() {
		s.mu.Lock()
		delete(s.asked, n)
		s.mu.Unlock()
	}()
	select {
	case h := <-got:
		return h.read(method, result)
	case <-ctx.Done():
		s.tell("$/cancel_request", map[string]int64{"requestId": n})
		return context.Cause(ctx)
	case <-s.line.over: // what it has said before counts
		select {
		case h := <-got:
			return h.read(method, result)
		default:
			return errGone
		}
	case <-s.line.broken:
		return errGone
	case <-s.line.closed:
		return errGone
	}
}

// read takes what the client has answered.
func (h heard) read(method string, result any) error {
	switch {
	case h.bad != nil:
		return fmt.Errorf("%s: %w", method, h.bad)
	case h.Error != nil:
		return h.Error
	case len(h.Result) == 0:
		return errors.New(method + ": the answer has no result")
	}
	if err := json.Unmarshal(h.Result, result); err != nil {
		return fmt.Errorf("%s: the client's answer cannot be understood: %w", method, err)
	}
	return nil
}

// answered hands an answer of the client to whoever waits for it.
func (s *Server) answered(id json.RawMessage, h heard) {
	var n int64
	if json.Unmarshal(id, &n) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.asked[n]; got != nil {
		delete(s.asked, n)
		got <- h // it has room for one
	}
}

// can returns what the client can do.
func (s *Server) can() clientCaps {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps
}

// initialize welcomes the client.
func (s *Server) initialize(_ context.Context, in initializeIn) (any, error) {
	if in.Version == nil {
		return nil, badParams("protocolVersion is missing")
	}
	s.mu.Lock()
	s.ready, s.caps = true, in.Client
	s.mu.Unlock()
	out := initializeOut{Version: protocol, Info: implementation{Name: "dure", Title: "dure", Version: s.c.Version}, Auth: s.logins()}
	a := &out.Agent
	a.Load, a.Prompt.Image, a.Prompt.Embedded, a.MCP.HTTP, a.MCP.SSE = true, true, true, true, true
	a.Session.List, a.Session.Delete, a.Session.More, a.Session.Resume, a.Session.Close = has, has, has, has, has
	return out, nil
}

// decode reads the parameters of a request.
func decode(params json.RawMessage, into any) error {
	if len(params) == 0 {
		return badParams("params are missing")
	}
	if err := json.Unmarshal(params, into); err != nil {
		return badParams("params: %v", err)
	}
	return nil
}

package swarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"dure/agent"
)

// Bounds of the agents in the background of a session.
const (
	maxRunning    = 16 // at once
	maxRemembered = 64 // running ones included
	maxLatest     = 12 // lines of what one that runs has done
	settleGrace   = 5 * time.Second
)

// handlePrefix is the type of the handle of an agent in the background. What follows is
// the ID of its session.
const (
	handlePrefix = agent.ChildHandle
	againMark    = "-" // before what tells the times apart that one goes on
)

// A job is a task that an agent works on, or did.
type job struct {
	kind    string
	model   string
	task    Task
	message *Message      // that it answers; nil = none
	limit   time.Duration // 0 = none
	place   *place        // nil = the folder of the session
	again   string        // of the call by which it goes on; "" = it is new
	begun   time.Time
	now     func() time.Time

	opened chan struct{} // closed when child is known
	done   chan struct{} // closed when its result is
	stop   context.CancelFunc

	mu      sync.Mutex
	child   string // ID of its session
	calls   int
	latest  []string // what it did last, a line each
	result  agent.Result
	settled bool
}

func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// id is that of its session; "" = it has none yet.
func (j *job) id() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.child
}

// handle is that of its session. Each time that an agent goes on has one of its own, because
// a handle is settled once.
func (j *job) handle() string {
	if j.again == "" {
		return handlePrefix + j.id()
	}
	return handlePrefix + j.id() + againMark + j.again
}

// work runs a child to its end.
func (s *Swarm) work(ctx context.Context, j *job, child agent.Child, show func(string)) (agent.Result, error) {
	var following sync.WaitGroup
	watch, leave := context.WithCancel(ctx)
	child.Opened = func(id string) {
		j.mu.Lock()
		j.child = id
		j.mu.Unlock()
		close(j.opened)
		if s.c.Follow != nil {
			following.Go(func() { s.follow(watch, j, id, show) })
		}
	}
	empty := s.occupy(j.place)
	out, err := s.c.Spawn(ctx, child)
	empty()
	leave()
	following.Wait()
	kept := s.kept(ctx, j)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && j.limit > 0 {
		return agent.Result{}, refuse(agent.ErrTimeout, fmt.Sprintf("the agent took more than %s%s", j.limit, kept), s.goOn(out.Session))
	}
	if ctx.Err() != nil {
		return agent.Result{}, refuse(agent.ErrAborted, "the agent was stopped before its end"+kept, s.goOn(out.Session))
	}
	if err != nil && out.Reason == "" {
		return agent.Result{}, refuse(agent.ErrTool, "the agent failed: "+err.Error()+kept, s.goOn(out.Session))
	}
	r := s.answer(j, out)
	r.Text += kept
	return r, nil
}

// goOn says how an agent that was cut short can go on.
func (s *Swarm) goOn(child string) string {
	if child == "" {
		return ""
	}
	return "It can go on: resume " + child + "."
}

// follow shows what a child does.
func (s *Swarm) follow(ctx context.Context, j *job, child string, show func(string)) {
	for e, err := range s.c.Follow(ctx, child) {
		if err != nil || ctx.Err() != nil {
			return
		}
		d, ok := e.Body.(agent.CallDecided)
		if !ok {
			continue
		}
		text := line(d.Proposal.Call.Tool+" "+string(d.Proposal.Call.Input), 120)
		if d.Decision.Verdict == agent.Deny {
			text += " (denied)"
		}
		j.mu.Lock()
		j.calls++
		if j.latest = append(j.latest, text); len(j.latest) > maxLatest {
			j.latest = slices.Delete(j.latest, 0, 1)
		}
		j.mu.Unlock()
		if show != nil {
			show(text + "\n")
		}
	}
}

// answer is what comes of a child's end. The report of one that failed stays in it.
func (s *Swarm) answer(j *job, out agent.Outcome) agent.Result {
	text := strings.TrimSpace(out.Text)
	if text == "" {
		text = "The agent has ended without a report."
	}
	var failed string
	switch out.Reason {
	case agent.EndDone:
	case agent.EndLimit:
		text = "The agent has come to its limit; this is what it had said last:\n" + text
	default:
		failed = "the agent's work was cut short (" + string(out.Reason) + ")"
		if out.Error != "" {
			failed = "the agent failed: " + out.Error
		}
	}
	text = capped(text)
	r := agent.OK(text + fmt.Sprintf("\n\n[agentId %s, %s, %d calls, %d tokens]", out.Session, j.kind, out.Calls, out.Usage.Context()+out.Usage.Output))
	if failed != "" {
		r = agent.Failure(agent.ErrTool, failed, s.goOn(out.Session))
		if out.Text != "" {
			r.Text += "\nIt had said last:\n" + text
		}
	}
	path, branch := j.place.names()
	r.Output = structured(answer{
		Path: path, Branch: branch,
		Status: "completed", ID: out.Session, Type: j.kind, Content: []content{{"text", text}}, Model: j.model, Prompt: j.task.Prompt,
		Tokens: out.Usage.Context() + out.Usage.Output, Millis: j.now().Sub(j.begun).Milliseconds(), Calls: out.Calls,
		Usage: &usage{out.Usage.Input, out.Usage.Output, out.Usage.CacheRead, out.Usage.CacheWrite},
	})
	return r
}

// capped is a report as far as it is handed on. All of it is in the log of its agent.
func capped(text string) string {
	if utf8.RuneCountInString(text) <= report {
		return text
	}
	n := 0
	for i := range text {
		if n == report {
			text = text[:i]
			break
		}
		n++
	}
	return text + "\n[result exceeded 100,000 characters and was cut]"
}

// answer is the structured answer.
type answer struct {
	Status  string    `json:"status"` // completed or async_launched
	Async   bool      `json:"isAsync,omitempty"`
	ID      string    `json:"agentId"`
	Type    string    `json:"agentType"`
	Title   string    `json:"description,omitempty"`
	Prompt  string    `json:"prompt"`
	Content []content `json:"content,omitempty"`
	Model   string    `json:"resolvedModel,omitempty"`
	Tokens  int       `json:"totalTokens,omitempty"`
	Millis  int64     `json:"totalDurationMs,omitempty"`
	Calls   int       `json:"totalToolUseCount,omitempty"`
	Usage   *usage    `json:"usage,omitempty"`
	Path    string    `json:"worktreePath,omitempty"`
	Branch  string    `json:"worktreeBranch,omitempty"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type usage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Read   int `json:"cache_read_input_tokens"`
	Write  int `json:"cache_creation_input_tokens"`
}

func structured(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("swarm: an answer that cannot be encoded: " + err.Error()) // a programmer's mistake
	}
	return bytes.TrimSpace(b.Bytes())
}

// launch starts a child in the background, and returns when its session is open.
func (s *Swarm) launch(ctx context.Context, j *job, child agent.Child) (agent.Result, error) {
	if j.limit == 0 {
		j.limit = longest
	}
	var life context.Context
	life, j.stop = context.WithTimeout(s.life, j.limit)
	if err := s.admit(j); err != nil {
		j.stop()
		return agent.Result{}, err
	}
	child.Mate = j.kind
	go func() {
		defer s.watching.Done()
		defer j.stop()
		r, err := s.work(life, j, child, nil)
		if te, ok := errors.AsType[*agent.ToolError](err); ok {
			r = agent.Failure(te.Code, te.Message, te.Suggestion)
		}
		r = j.reply(r)
		j.mu.Lock()
		j.result = r
		j.mu.Unlock()
		close(j.done)
		s.settle(j, r)
	}()
	select {
	case <-j.opened:
	case <-j.done:
		select {
		case <-j.opened:
		default: // it has never been open, and nobody knows it
			return j.result, nil
		}
	case <-ctx.Done():
		j.stop()
		return agent.Result{}, refuse(agent.ErrAborted, "the agent was stopped before it began", "")
	}
	return agent.Result{
		Status: agent.StatusPending, Handle: j.handle(),
		Text: fmt.Sprintf("The agent %s works in the background as %s (%s for short). You will be told when it ends; meanwhile, %s shows what it does and %s stops it.",
			j.kind, j.handle(), short(j.id()), s.c.OutputTool, s.c.StopTool),
		Output: structured(answer{Status: "async_launched", Async: true, ID: j.id(), Type: j.kind, Title: j.task.Title, Prompt: j.task.Prompt, Model: j.model}),
	}, nil
}

// settle tells the session how a job came out that it knows of.
func (s *Swarm) settle(j *job, r agent.Result) {
	select {
	case <-j.opened:
		// What cannot be settled now is settled as lost when the session is opened again.
		_ = s.c.Settle(s.settling, agent.Settlement{Handle: j.handle(), Result: r})
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j.settled = true
	left := len(s.jobs)
	s.jobs = slices.DeleteFunc(s.jobs, func(k *job) bool {
		drop := k.settled && left > maxRemembered
		if drop {
			left--
		}
		return drop
	})
}

// admit takes a job into the list, and promises its goroutine.
func (s *Swarm) admit(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.c.Settle == nil:
		return refuse(agent.ErrInput, "agents cannot work in the background here", "Call it without run_in_background.")
	case s.closed:
		return refuse(agent.ErrAborted, "the session is being closed", "")
	}
	var busy []string
	for _, k := range s.jobs {
		if !k.over() {
			busy = append(busy, k.handle())
		}
	}
	if len(busy) >= maxRunning {
		return refuse(agent.ErrTool, fmt.Sprintf("%d agents already work in the background: %s", len(busy), strings.Join(busy, ", ")),
			"Wait for one to end, or stop one with "+s.c.StopTool+".")
	}
	s.jobs = append(s.jobs, j)
	s.watching.Add(1)
	return nil
}

// Close stops the agents in the background and settles them, and waits for that: for
// their sessions to close, and settleGrace for Settle.
func (s *Swarm) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	defer time.AfterFunc(settleGrace, s.endAll).Stop()
	s.watching.Wait()
	s.endAll()
}

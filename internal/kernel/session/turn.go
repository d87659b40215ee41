package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// turn runs one turn in a goroutine of its own.
func (s *Session) turn(ctx context.Context, id string) (int, error) {
	release, err := s.reg.cfg.Lanes.Acquire(ctx, s.lane(), s.id)
	if err != nil {
		return 0, err
	}
	defer release()
	if err := s.awaitBegun(ctx); err != nil {
		return 0, err
	}
	cfg := s.loopConfig(ctx, id)
	started := agent.TurnStarted{Turn: id}
	s.rec.read(func(st *transcript.State) {
		if st.Turn.Open && st.Turn.ID == id {
			started.Attempt = st.Turn.Attempt + 1
			cfg.Pending, cfg.Stopped, cfg.First = st.Open, st.Turn.Stop, nextStep(st.Turn)
			cfg.Fallback = behind(cfg.Fallback, st.Turn.Instead)
		}
	})
	if err := s.rec.store(false, started); err != nil {
		return 0, err
	}
	if started.Attempt > 0 && cfg.Pending == nil && cfg.Stopped == "" {
		if _, err := s.steer(ctx, false); err != nil {
			return 0, err
		}
	}
	if held := s.held.Swap(false); started.Attempt == 0 && (held || s.screens()) {
		if said, err := s.steer(ctx, true); err != nil || !said && !s.unread() {
			return 0, errors.Join(err, loop.ErrStopped)
		}
	}
	return loop.Turn(ctx, cfg)
}

// nextStep is the number of the step that a resumed turn goes on with: the one
// whose request got no answer is asked again under its own number.
func nextStep(t transcript.Turn) int {
	if t.Asking {
		return t.Step
	}
	return t.Step + 1
}

// behind returns the fallbacks that a resumed turn has not asked yet.
func behind(fallback []string, asked string) []string {
	return fallback[slices.Index(fallback, asked)+1:]
}

func (s *Session) lane() string {
	if s.parts.Lane == "" {
		return LaneMain
	}
	return s.parts.Lane
}

// loopConfig returns the loop's configuration for a turn of this session.
func (s *Session) loopConfig(ctx context.Context, turn string) loop.Config {
	return loop.Config{
		Session: s.id, Turn: turn, Agent: s.parts.Agent, Workdir: s.parts.Workdir, Logger: s.reg.cfg.Logger,
		Prepare: s.prepare, Gate: s.gate, Person: s.askPerson, Guard: s.points.Guard.Check, Clean: s.points.Guard.Stream, Wrap: s.points.Wrap,
		Store: s.settling, Live: s.rec.live, Steer: func() (bool, error) { return s.steer(ctx, false) },
		Shorten: func(ctx context.Context) (bool, error) { return s.shorten(ctx, plug.TriggerOverflow, "") },
		Hooks:   s.turnHooks(),
		Reap:    s.reg.cfg.Reap, AskAgain: s.approver, Defers: !s.approver && s.front == s, Retry: s.parts.Retry, Limits: s.limits, Fallback: s.parts.Fallback,
		First: 1, Strays: &s.strays,
	}
}

// catalog returns the tools of a step that begins; a question has none.
func (s *Session) catalog(ctx context.Context, w loop.Want) (plug.Catalog, error) {
	if w.Question != nil {
		return plug.Catalog{}, nil
	}
	c := s.parts.Catalog()
	if s.points.Choose == nil {
		return c, nil
	}
	return s.points.Choose(ctx, c)
}

// prepare builds a request from the log, and what the log has to say about it.
func (s *Session) prepare(ctx context.Context, w loop.Want) (loop.Step, error) {
	if w.Calls { // what comes into the conversation now would stand between calls and their results
		catalog, err := s.catalog(ctx, w)
		return loop.Step{Tools: catalog.Tools, Request: agent.Request{Names: catalog.Names}}, err
	}
	var name string
	var messages, since []agent.Message
	var hashes [][]byte
	if w.Question == nil {
		if err := s.ready(ctx); err != nil {
			return loop.Step{}, err
		}
	}
	var counted int
	var change *agent.ToolsChanged
	req := agent.ModelRequested{Params: s.parts.Params}
	s.rec.read(func(st *transcript.State) {
		req.Params.Thinking = s.thinking(st.Effort())
		name, counted, since = st.Current(), st.Context, st.Uncounted()
		messages, hashes = st.Conversation()
	})
	var system []agent.Section
	catalog, err := s.catalog(ctx, w)
	if err != nil {
		return loop.Step{}, err
	}
	if q := w.Question; q != nil {
		name = or(q.Model, name)
		messages, hashes, counted, since = q.Messages, transcript.Hashes(q.Messages), 0, q.Messages
		system = []agent.Section{{Name: q.Purpose, Text: q.System}}
		if err := s.aside(ctx, q, &req); err != nil {
			return loop.Step{}, err
		}
	}
	req.Params.NoTools = w.NoTools
	name = or(w.Model, name)
	model, err := s.parts.Model(name)
	if err != nil {
		return loop.Step{}, err
	}
	req.Model, req.Messages = model.Info().ID, len(messages)
	if w.Question == nil {
		system = s.system(req.Model)
	}
	if req.System, err = s.blobs.system.store(ctx, s.rec, system); err != nil {
		return loop.Step{}, err
	}
	if req.Tools, err = s.blobs.tools.store(ctx, s.rec, catalog.Specs); err != nil {
		return loop.Step{}, err
	}
	info := model.Info()
	size := s.size(info, counted, since, func() []agent.Section { return system }, catalog.Specs)
	if w.Question == nil {
		var fresh []agent.Spec
		if change, fresh = s.offers(ctx, offered{req.Tools, catalog.Specs}); counted > 0 {
			size += s.tokens(info, nil, fresh, nil)
		}
	}
	if fit(&req.Params, info, size); w.Question == nil {
		if err := s.tooLarge(info, size); err != nil {
			return loop.Step{}, err
		}
	}
	release, err := s.begin(info, size, &req.Params, change)
	if err != nil {
		return loop.Step{}, err
	}
	req.Hash = transcript.RequestHash(req, hashes)
	return loop.Step{
		Release: release,
		Model:   model,
		Request: agent.Request{
			Model: req.Model, System: system, Tools: catalog.Specs, Messages: messages, Names: catalog.Names,
			MaxTokens: req.Params.MaxTokens, Temperature: req.Params.Temperature,
			Thinking: req.Params.Thinking, NoTools: req.Params.NoTools,
		},
		Requested: req,
		Tools:     catalog.Tools,
	}, nil
}

// begin puts aside what a request may cost, and says how its tools have changed.
func (s *Session) begin(info agent.ModelInfo, size int, p *agent.Params, change *agent.ToolsChanged) (func(agent.Usage), error) {
	release, err := s.reserve(info, size, p)
	if err != nil || change == nil {
		return release, err
	}
	if err = s.rec.store(false, *change); err != nil && release != nil {
		release(agent.Usage{})
	}
	return release, err
}

// aside has a request ask a question beside the conversation.
func (s *Session) aside(ctx context.Context, q *agent.Question, req *agent.ModelRequested) error {
	req.Params, req.Purpose = s.parts.Params, q.Purpose
	if req.Params.MaxTokens = q.MaxTokens; q.MaxTokens > 0 {
		bound(&req.Params)
	}
	data, err := json.Marshal(q.Messages)
	if err != nil {
		return fmt.Errorf("encoding the question: %w", err)
	}
	req.Input, err = s.rec.putBlob(ctx, data)
	return err
}

// thinking is how many tokens a turn of an effort may think for.
func (s *Session) thinking(effort string) int {
	if s.points.Thinks != nil {
		if tokens, ok := s.points.Thinks(); ok {
			return tokens
		}
	}
	if tokens, ok := s.parts.Thinking[effort]; ok {
		return tokens
	}
	return s.parts.Params.Thinking
}

// ready makes the conversation fit, whole, and complete. What is to be shortened need
// not be at hand, and less is left to read then.
func (s *Session) ready(ctx context.Context) error {
	if _, err := s.shorten(ctx, plug.TriggerAuto, ""); err != nil {
		return err
	}
	if err := s.rec.fill(ctx); err != nil {
		return err
	}
	return s.extras(ctx)
}

// blobs remembers which parts of the request a session has stored. The system
// prompt and the catalog stay the same for thousands of steps, and so do their
// slices.
type blobs struct {
	system slot[agent.Section]
	tools  slot[agent.Spec]
}

// slot is the slice that was stored last, and its hash.
type slot[T any] struct {
	mu    sync.Mutex
	first *T
	len   int
	hash  string
}

// store stores the JSON of v, unless it is the same slice as last time.
func (l *slot[T]) store(ctx context.Context, rec *record, v []T) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hash != "" && len(v) > 0 && l.first == &v[0] && l.len == len(v) {
		return l.hash, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encoding the request: %w", err)
	}
	hash, err := rec.putBlob(ctx, data)
	if err == nil && len(v) > 0 {
		l.first, l.len, l.hash = &v[0], len(v), hash
	}
	return hash, err
}

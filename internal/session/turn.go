package session

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"dure/agent"
	"dure/internal/loop"
	"dure/internal/transcript"
)

// turn runs one turn in a goroutine of its own.
func (s *Session) turn(ctx context.Context, id string) (int, error) {
	release, err := s.reg.cfg.Lanes.Acquire(ctx, s.lane(), s.id)
	if err != nil {
		return 0, err
	}
	defer release()
	cfg := s.loopConfig(id)
	started := agent.TurnStarted{Turn: id}
	s.rec.read(func(st *transcript.State) {
		if st.Turn.Open && st.Turn.ID == id {
			started.Attempt = st.Turn.Attempt + 1
			cfg.Pending, cfg.Stopped, cfg.First = st.Open, st.Turn.Stop, nextStep(st.Turn)
		}
	})
	if err := s.rec.store(false, started); err != nil {
		return 0, err
	}
	if started.Attempt > 0 && cfg.Pending == nil && cfg.Stopped == "" {
		if _, err := s.rec.steer(false); err != nil {
			return 0, err
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

func (s *Session) lane() string {
	if s.parts.Lane == "" {
		return LaneMain
	}
	return s.parts.Lane
}

// loopConfig returns the loop's configuration for a turn of this session.
func (s *Session) loopConfig(turn string) loop.Config {
	return loop.Config{
		Session: s.id, Turn: turn, Agent: s.parts.Agent, Workdir: s.parts.Workdir, Logger: s.reg.cfg.Logger,
		Prepare: s.prepare, Gate: s.parts.Gate, Person: s.askPerson, Guard: s.parts.Guard, Clean: s.parts.Clean, Wrap: s.parts.Wrap,
		Store: s.rec.store, Live: s.rec.live, Steer: func() (bool, error) { return s.rec.steer(false) },
		Reap: s.parts.Reap, AskAgain: s.approver, Retry: s.parts.Retry, Limits: s.limits,
		First: 1, Strays: &s.strays,
	}
}

// prepare builds a request from the log, and what the log has to say about it.
func (s *Session) prepare(ctx context.Context, w loop.Want) (loop.Step, error) {
	var name string
	var messages []agent.Message
	var hashes [][]byte
	s.rec.read(func(st *transcript.State) {
		name = st.Model
		messages, hashes = st.Conversation()
	})
	system := s.system
	catalog := s.parts.Catalog()
	req := agent.ModelRequested{Params: s.parts.Params}
	if q := w.Question; q != nil {
		if q.Model != "" {
			name = q.Model
		}
		messages, hashes = q.Messages, transcript.Hashes(q.Messages)
		system, catalog = []agent.Section{{Name: q.Purpose, Text: q.System}}, Catalog{}
		req.Purpose, req.Params.MaxTokens = q.Purpose, q.MaxTokens
		data, err := json.Marshal(messages)
		if err != nil {
			return loop.Step{}, fmt.Errorf("encoding the question: %w", err)
		}
		if req.Input, err = s.rec.putBlob(ctx, data); err != nil {
			return loop.Step{}, err
		}
	}
	req.Params.NoTools = w.NoTools
	model, err := s.parts.Model(name)
	if err != nil {
		return loop.Step{}, err
	}
	req.Model, req.Messages = model.Info().ID, len(messages)
	if req.System, err = s.blobs.system.store(ctx, s.rec, system); err != nil {
		return loop.Step{}, err
	}
	if req.Tools, err = s.blobs.tools.store(ctx, s.rec, catalog.Specs); err != nil {
		return loop.Step{}, err
	}
	req.Hash = transcript.RequestHash(req, hashes)
	return loop.Step{
		Model: model,
		Request: agent.Request{
			Model: req.Model, System: system, Tools: catalog.Specs, Messages: messages, Names: catalog.Names,
			MaxTokens: req.Params.MaxTokens, Temperature: req.Params.Temperature,
			Thinking: req.Params.Thinking, NoTools: req.Params.NoTools,
		},
		Requested: req,
		Tools:     catalog.Tools,
	}, nil
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

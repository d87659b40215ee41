package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// Shares of the window from which on a compaction is thought of, and there is hardly any
// room left, unless the parts say otherwise.
const (
	fullAt  = 0.8
	brinkAt = 0.95
)

// shorten compacts the conversation if there is reason to, and reports whether it
// did. What goes wrong with it is noted: the conversation goes on as it is.
func (s *Session) shorten(ctx context.Context, trigger, focus string) (bool, error) {
	if s.points.Compactor.Compact == nil {
		return false, nil
	}
	if trigger == plug.TriggerAuto { // at each step: it has to cost nothing
		if full, brink, err := s.full(); err != nil || !full || !brink && s.rests() {
			return false, err
		}
	}
	c, err := s.conversation(ctx)
	if err != nil {
		return false, err
	}
	c.Trigger, c.Focus, c.Before = trigger, focus, s.points.Hooks.Compacting
	done, err := s.points.Compactor.Compact(ctx, c)
	s.vain = 0
	if done == nil && trigger == plug.TriggerAuto {
		s.vain = len(c.Messages)
	}
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, s.unshortened("the conversation could not be shortened: " + err.Error())
	case done == nil:
		return false, nil
	}
	done.Trigger, done.Focus = trigger, focus
	var grown bool
	s.rec.read(func(st *transcript.State) {
		grown = len(st.Hashes) != len(c.Messages) || st.Edited > c.Head
		if st.Turn.Open {
			done.Turn = st.Turn.ID
		}
	})
	if grown { // nobody else adds messages while a request is built
		return false, errors.New("the conversation changed while it was being shortened")
	}
	if err := s.rec.store(true, *done); err != nil {
		return false, err
	}
	s.whyLong = ""
	if tell := s.points.Hooks.Compacted; tell != nil {
		tell(ctx, *done)
	}
	if s.points.Hooks.Opened != nil {
		s.points.Hooks.Opened(ctx, "compact") // the conversation has begun by now
	}
	return true, nil
}

// restFor is how many messages have to come after an attempt to shorten a conversation
// of which nothing came: it would come to nothing again, and may have asked a model.
const restFor = 4

// rests reports whether it is too early for another attempt.
func (s *Session) rests() bool {
	if s.vain == 0 {
		return false
	}
	var now int
	s.rec.read(func(st *transcript.State) { now = len(st.Hashes) })
	return now >= s.vain && now < s.vain+restFor
}

// unshortened notes why the conversation stays as it is, once: it is tried again at
// each step.
func (s *Session) unshortened(why string) error {
	if s.whyLong == why {
		return nil
	}
	s.whyLong = why
	return s.rec.store(false, agent.Note{Level: "warn", Text: why})
}

// full reports whether the next request may be too long, and whether there is hardly any
// room left in the window.
func (s *Session) full() (full, brink bool, err error) {
	var model string
	var counted int
	var since []agent.Message
	s.rec.read(func(st *transcript.State) { model, counted, since = st.Current(), st.Context, st.Uncounted() })
	m, err := s.parts.Model(model)
	if err != nil {
		return false, false, err
	}
	info := m.Info()
	if info.Window <= 0 {
		return false, false, nil
	}
	size := s.size(info, counted, since, func() []agent.Section { return s.system(info.ID) }, s.parts.Catalog().Specs)
	if s.points.Compactor.Full == nil {
		share := float64(size) / float64(info.Window)
		return share >= fullAt, share >= brinkAt, nil
	}
	full, brink = s.points.Compactor.Full(info, size)
	return full, brink, nil
}

// conversation returns what there is to shorten.
func (s *Session) conversation(ctx context.Context) (c plug.Compaction, err error) {
	c.Specs, c.Pending = s.parts.Catalog().Specs, map[string]string{}
	var model string
	err = s.rec.survey(ctx, func(st *transcript.State, messages []agent.Timed) {
		model, c.Messages = st.Current(), messages
		c.Context, c.Counted, c.Head, c.Task = st.Context, st.Counted, st.Head, st.Task
		c.Asides = maps.Clone(st.Asides)
		if p := st.Agreed; p != nil {
			c.Plan, c.PlanSeq = planText(p), p.Seq
		}
		for handle, p := range st.Pending {
			c.Pending[handle] = p.Tool
		}
		if n := len(st.Compactions); n > 0 {
			c.Pinned, c.Last = st.Compactions[n-1].Pinned, st.Compactions[n-1].Seq
		}
	})
	if err != nil {
		return c, err
	}
	m, err := s.parts.Model(model)
	if err != nil {
		return c, err
	}
	c.Model = m.Info()
	c.System = s.system(c.Model.ID)
	return c, nil
}

// context tells what fills the window of an open session.
func (r *Registry) context(ctx context.Context, id string) (agent.ContextReport, error) {
	s := r.get(id)
	if s == nil || s.points.Compactor.Usage == nil {
		return agent.ContextReport{}, problem(fmt.Errorf("the session is not open here: %w", journal.ErrMissing), id)
	}
	c, err := s.conversation(ctx)
	if err != nil {
		return agent.ContextReport{}, problem(err, id)
	}
	report := s.points.Compactor.Usage(c)
	report.Session, report.Model = id, c.Model.ID
	return report, nil
}

// aside runs what takes its time in the place of a turn.
func (r *runner) aside(f func(context.Context) error) {
	ctx, cancel := context.WithCancelCause(r.rec.lease.Valid())
	r.cancel = cancel
	go func() { r.ended <- ended{err: f(ctx), aside: true} }()
}

// asideEnded notes what came of it, and starts a turn for what was said meanwhile.
func (r *runner) asideEnded(end ended) error {
	if err := end.err; err != nil && !errors.Is(err, agent.ErrInterrupted) {
		r.note("warn", err.Error())
	}
	if r.closing {
		return nil
	}
	if err := r.planQueued(); err != nil {
		return err
	}
	said, err := r.unqueue()
	if err != nil || !said {
		return err
	}
	return r.start()
}

// compact shortens the conversation because the user wants it.
func (r *runner) compact(c agent.Compact) error {
	facts, err := r.atRest("shorten the conversation")
	if err != nil {
		return err
	}
	if r.points.Compactor.Compact == nil {
		return errors.New("conversations are not shortened here")
	}
	if err := r.rec.store(true, facts...); err != nil {
		return err
	}
	r.aside(func(ctx context.Context) error {
		done, err := r.shorten(ctx, plug.TriggerManual, c.Focus)
		if err == nil && !done {
			r.note("info", "the conversation is short already")
		}
		return err
	})
	return nil
}

// restore takes the newest compaction back.
func (r *runner) restore(batch journal.Batch) error {
	facts, err := r.atRest("take a compaction back")
	if err != nil {
		return err
	}
	var of int64
	r.rec.read(func(s *transcript.State) {
		if n := len(s.Compactions); n > 0 {
			of = s.Compactions[n-1].Seq
		}
	})
	if of == 0 {
		return &agent.Problem{
			Code: agent.ProblemWhole, Message: "there is no compaction to take back",
			Fix: "there is nothing to take back", Args: map[string]string{"session": r.id},
		}
	}
	return r.rec.append(batch, append(facts, agent.ContextRestored{Of: of})...)
}

// rewind goes back to how things were after an event. Files come first: a crash
// in between leaves a conversation that knows more than they show, and not less.
func (r *runner) rewind(c agent.Rewind, batch journal.Batch) error {
	bodies, err := r.atRest("rewind")
	if err != nil {
		return err
	}
	var head int64
	r.rec.read(func(s *transcript.State) { head = s.Head })
	if c.To < 0 || c.To >= head {
		return &agent.Problem{
			Code: agent.ProblemEvent, Message: fmt.Sprintf("there is no event %d to go back to; the newest is %d", c.To, head),
			Fix:  "see its events with: dure show " + r.id,
			Args: map[string]string{"session": r.id, "seq": fmt.Sprint(c.To), "head": fmt.Sprint(head)},
		}
	}
	if c.Files {
		if r.points.Undo.Rewind == nil {
			return r.noUndo()
		}
		back, err := r.points.Undo.Rewind(r.life, c)
		if err != nil {
			return err
		}
		back.Seq, back.By = c.To, "user"
		bodies = append(bodies, back)
	}
	if c.Conversation {
		bodies = append(bodies, agent.ConversationRewound{To: c.To, By: "user"})
	}
	if err := r.rec.append(batch, bodies...); err != nil || !c.Conversation || r.points.Hooks.Rewound == nil {
		return err
	}
	var past []agent.Message
	r.rec.read(func(s *transcript.State) { past = s.Past() })
	r.points.Hooks.Rewound(past)
	return nil
}

// atRest is an error while a turn runs. One that was cut short, and that nobody has
// gone on with, does not hold anything up: it returns the fact that it is over.
func (r *runner) atRest(what string) (facts []agent.Body, err error) {
	if r.cancel == nil {
		r.rec.read(func(s *transcript.State) {
			if s.Turn.Open {
				facts = append(facts, endOf(s.Turn, ended{turn: s.Turn.ID, err: agent.ErrInterrupted}, r.reg.cfg.Now()))
			}
		})
		return facts, nil
	}
	return nil, &agent.Problem{
		Code: agent.ProblemBusy, Message: "a turn is running: cannot " + what + " now",
		Fix: "wait until it ends, or stop it", Args: map[string]string{"session": r.id},
	}
}

// fork makes the session that o asks for out of another one, and returns its ID.
func (r *Registry) fork(ctx context.Context, o agent.Open) (string, error) {
	id := o.New
	if id == "" {
		id = journal.NewID(r.cfg.Now())
	}
	at := o.At
	for m, err := range r.cfg.Store.List(ctx, journal.Query{Prefix: o.Fork}) {
		if err != nil {
			return "", err
		}
		if m.ID == o.Fork && at == 0 {
			at = m.Head
		}
	}
	if s := r.get(o.Fork); s != nil && o.At == 0 {
		s.rec.read(func(st *transcript.State) { at = st.Head })
	}
	return id, r.cfg.Store.Fork(ctx, o.Fork, at, id)
}

// forked is the tag that a fork gets.
const forked = "forked"

// tagged returns what marks a session as a fork.
func tagged(st *transcript.State) agent.SettingsChanged {
	tags := slices.Clone(st.Tags)
	if !slices.Contains(tags, forked) {
		tags = append(tags, forked)
	}
	return agent.SettingsChanged{Tags: &tags, By: "fork"}
}

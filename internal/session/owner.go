package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dure/agent"
	"dure/internal/journal"
	"dure/internal/loop"
	"dure/internal/transcript"
)

// runner is the owner goroutine's view of its session.
type runner struct {
	*Session
	cancel  context.CancelCauseFunc // non-nil while a turn runs
	closing bool
}

// serve takes commands and turn ends in order. It returns when the session is
// stopped, after its turn has ended.
func (r *runner) serve() error {
	fenced := r.rec.lease.Valid().Done()
	quit := r.life.Done()
	for {
		select {
		case e := <-r.inbox:
			e.reply <- r.take(e.command, nil)
		case <-r.rec.lease.Mail():
			r.takeMail()
		case end := <-r.ended:
			if err := r.turnEnded(end); err != nil {
				return err
			}
			if r.closing && r.cancel == nil {
				return nil
			}
		case <-fenced:
			return r.lost()
		case <-quit:
			if r.cancel == nil {
				return nil
			}
			r.closing, quit = true, nil
			r.cancel(r.closeCause())
		}
	}
}

// closeCause says why the turn ends when the session is closed: a turn that
// waits for a person is only parked, so that the wait outlives the program.
func (r *runner) closeCause() error {
	cause := agent.ErrInterrupted
	r.rec.read(func(s *transcript.State) {
		for _, a := range s.Approvals {
			if a.Child == "" { // a child ends with this session, and its question too
				cause = agent.ErrParked
			}
		}
	})
	return cause
}

// lost stops everything when the log cannot be written any more: an effect
// without a fact must not happen.
func (r *runner) lost() error {
	cause := context.Cause(r.rec.lease.Valid())
	if r.cancel != nil {
		r.cancel(cause)
		<-r.ended
	}
	return fmt.Errorf("session %s: %w", r.id, cause)
}

// take does what a command asks for. taken are the inbox messages it came in.
func (r *runner) take(c agent.Command, taken []string) error {
	batch := journal.Batch{Taken: taken, Sync: journal.Barrier}
	switch c := c.(type) {
	case agent.Prompt:
		return r.prompt(c, batch)
	case agent.Interrupt:
		if r.cancel != nil {
			r.cancel(agent.ErrInterrupted)
		}
	case agent.Resolve:
		return r.resolve(c, batch)
	case agent.Change:
		return r.change(c, batch)
	case agent.Continue:
		if err := r.proceed(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("session %s: unknown command %q", r.id, c.Command())
	}
	if len(taken) > 0 {
		return r.rec.append(batch)
	}
	return nil
}

// takeMail takes what others left in the inbox. What cannot be read is noted
// and taken, so that it does not come again.
func (r *runner) takeMail() {
	msgs, err := r.rec.lease.Inbox(context.Background())
	if err != nil {
		r.note("warn", fmt.Sprintf("reading the inbox: %v", err))
		return
	}
	for _, m := range msgs {
		c, err := agent.DecodeCommand(m.Kind, m.Body)
		if p, ok := c.(agent.Prompt); ok && p.ID == "" {
			p.ID = m.ID
			c = p
		}
		if err == nil {
			err = r.take(c, []string{m.ID})
		}
		if err != nil {
			_ = r.rec.append(journal.Batch{Taken: []string{m.ID}}, agent.Note{Level: "warn", Text: fmt.Sprintf("inbox message %s: %v", m.ID, err)})
		}
	}
}

func (r *runner) note(level, text string) {
	_ = r.rec.store(false, agent.Note{Level: level, Text: text})
}

// prompt takes user input: into the conversation when nothing runs, else into
// the queue.
func (r *runner) prompt(c agent.Prompt, batch journal.Batch) error {
	var seen, open bool
	r.rec.read(func(s *transcript.State) { seen, open = s.Inputs[c.ID], s.Turn.Open })
	if c.ID != "" && seen {
		if len(batch.Taken) > 0 {
			return r.rec.append(batch)
		}
		return nil
	}
	if c.Text == "" && len(c.Blocks) == 0 {
		return fmt.Errorf("session %s: the prompt is empty", r.id)
	}
	if c.ID == "" {
		c.ID = newID("in_")
	}
	if r.cancel != nil || open {
		err := r.rec.append(batch, agent.InputQueued{Input: c.ID, Text: c.Text, Parts: c.Blocks, Later: c.Later})
		if err == nil && r.cancel == nil {
			err = r.start()
		}
		return err
	}
	if err := r.rec.append(batch, agent.InputAdded{Input: c.ID, Text: c.Text, Parts: c.Blocks}); err != nil {
		return err
	}
	return r.start()
}

// change alters the session's settings.
func (r *runner) change(c agent.Change, batch journal.Batch) error {
	if c.Model != "" {
		m, err := r.parts.Model(c.Model)
		if err != nil {
			return err
		}
		c.Model = m.Info().ID
	}
	if c.Mode != "" && r.parts.SetMode != nil {
		if err := r.parts.SetMode(c.Mode); err != nil {
			return err
		}
		r.mu.Lock()
		r.mode = c.Mode
		r.mu.Unlock()
	}
	return r.rec.append(batch, agent.SettingsChanged{Model: c.Model, Mode: c.Mode, Title: c.Title, By: "user"})
}

// proceed goes on with a turn that was cut short.
func (r *runner) proceed() error {
	if r.cancel != nil {
		return nil
	}
	var last agent.Role
	var open, queued bool
	r.rec.read(func(s *transcript.State) {
		open, queued = s.Turn.Open, len(s.Queued) > 0
		if n := len(s.Messages); n > 0 {
			last = s.Messages[n-1].Role
		}
	})
	if !open && queued { // as it would have been at the end of the last turn
		if _, err := r.rec.steer(true); err != nil {
			return err
		}
		return r.start()
	}
	if !open && last != agent.User {
		return &agent.Problem{
			Code: agent.ProblemOver, Message: "there is nothing to continue: the last turn has ended",
			Fix: "send a new prompt", Args: map[string]string{"session": r.id},
		}
	}
	return r.start()
}

// start runs a turn: the one that is open, or a new one.
func (r *runner) start() error {
	var turn transcript.Turn
	r.rec.read(func(s *transcript.State) { turn = s.Turn })
	if turn.Open && turn.Stuck >= maxStuck {
		return r.giveUp(turn)
	}
	id := turn.ID
	if !turn.Open {
		id = newID("tn_")
	}
	ctx, cancel := context.WithCancelCause(r.rec.lease.Valid())
	r.cancel = cancel
	go func() {
		steps, err := r.turn(ctx, id)
		r.ended <- ended{id, steps, err}
	}()
	return nil
}

// giveUp ends a turn that has crashed again and again at the same place.
func (r *runner) giveUp(turn transcript.Turn) error {
	_, err := r.rec.steer(true)
	end := ended{turn.ID, turn.Step, fmt.Errorf("the turn was started %d times and crashed each time at step %d; send a new prompt to go on from here", turn.Stuck, turn.Step)}
	return errors.Join(err, r.rec.append(journal.Batch{Sync: journal.Barrier, Seal: true}, endOf(turn, end, r.reg.cfg.Now())))
}

// turnEnded records how a turn came out and starts the next one when input
// waits.
func (r *runner) turnEnded(end ended) error {
	r.cancel(nil)
	r.cancel = nil
	if errors.Is(end.err, agent.ErrParked) {
		return nil // it goes on when the session is opened again
	}
	var body agent.TurnEnded
	var queued bool
	r.rec.read(func(s *transcript.State) {
		body = endOf(s.Turn, end, r.reg.cfg.Now())
		queued = len(s.Queued) > 0
	})
	if err := r.rec.append(journal.Batch{Sync: journal.Barrier, Seal: true}, body); err != nil {
		return err
	}
	if !queued || r.closing {
		return nil
	}
	if _, err := r.rec.steer(true); err != nil {
		return err
	}
	return r.start()
}

// endOf returns the event for the end of a turn. t is the newest turn of the
// log: another one when the turn ended before it could begin.
func endOf(t transcript.Turn, end ended, now time.Time) agent.TurnEnded {
	if t.ID != end.turn {
		t = transcript.Turn{ID: end.turn, Started: now}
	}
	b := agent.TurnEnded{
		Turn: t.ID, Reason: agent.EndDone, Steps: max(end.steps, t.Step),
		Millis: now.Sub(t.Started).Milliseconds(), Usage: t.Usage,
	}
	if !t.Unknown {
		cost := t.Cost
		b.Cost = &cost
	}
	switch err := end.err; {
	case err == nil:
		return b
	case errors.Is(err, agent.ErrInterrupted), errors.Is(err, context.Canceled):
		b.Reason = agent.EndInterrupted
		return b
	case errors.Is(err, loop.ErrLimit):
		b.Reason = agent.EndLimit
	case errors.Is(err, loop.ErrRefused):
		b.Reason = agent.EndRefused
	case errors.Is(err, loop.ErrStopped):
		b.Reason = agent.EndStopped
	default:
		b.Reason, b.Fail = agent.EndFailed, agent.ClassOf(err)
	}
	b.Error = end.err.Error()
	return b
}

// resolve records a person's answer to a question that is open, and gives it to
// the call that waits for it. The first answer wins; the log says which it was,
// also for a call that comes to wait only later.
func (r *runner) resolve(c agent.Resolve, batch journal.Batch) error {
	var asked agent.ApprovalAsked
	var open bool
	r.rec.read(func(s *transcript.State) { asked, open = s.Approvals[c.ID] })
	if !open {
		if len(batch.Taken) > 0 {
			return r.rec.append(batch)
		}
		return nil
	}
	if !json.Valid(c.Decision.Input) {
		c.Decision.Input = nil
	}
	if c.Decision.By == "" {
		c.Decision.By = "user"
	}
	answer := agent.ApprovalResolved(c)
	if err := r.rec.append(batch, answer); err != nil {
		return err
	}
	if c.Remember == "session" && c.Decision.Verdict == agent.Allow && r.parts.Grant != nil {
		r.parts.Grant(asked.Proposal)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if reply, ok := r.waiting[c.ID]; ok {
		reply <- answer // buffered, and only once: the question is not open any more
	}
	return nil
}

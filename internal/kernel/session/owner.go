package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/kernel/plug"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// runner is the owner goroutine's view of its session.
type runner struct {
	*Session
	cancel  context.CancelCauseFunc // non-nil while a turn runs
	closing bool
	left    bool // it was to end, and takes nothing any more
	again   bool // somebody wants to go on with the turn that runs, should it be left open
}

// serve takes commands and turn ends in order. It returns when the session is
// stopped, after its turn has ended.
func (r *runner) serve() error {
	fenced := r.rec.lease.Valid().Done()
	quit := r.life.Done()
	for {
		select {
		case e := <-r.inbox:
			err := r.take(e.command, nil)
			if _, ok := e.command.(settled); ok && r.cancel == nil {
				r.rest() // it may have been the last thing to come
			}
			e.reply <- err
		case <-r.rec.lease.Mail():
			r.takeMail()
		case end := <-r.ended:
			if err := r.turnEnded(end); err != nil {
				return err
			}
			if r.cancel == nil {
				if r.closing {
					return nil
				}
				r.rest()
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
	if r.left {
		return fmt.Errorf("session %s: %w", r.id, journal.ErrClosed)
	}
	if err := check(c); err != nil {
		return err
	}
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
		return r.change(c, "user", batch)
	case plug.ChooseMode:
		return r.change(agent.Change{Mode: c.Mode}, c.By, batch)
	case plug.GrantRules:
		return r.granted(c.RulesGranted, batch)
	case agent.Revoke:
		return r.revoke(c, batch)
	case agent.ChangePlan:
		return r.changePlan(c, batch)
	case agent.DecidePlan:
		return r.decidePlan(c, batch)
	case agreed:
		return r.agreed(c, batch)
	case planFirst:
		return r.planByModel(batch)
	case agent.Rewind:
		return r.rewind(c, batch)
	case agent.Accept:
		return r.accept(c, batch)
	case agent.Reject:
		return r.reject(c, batch)
	case agent.Restore:
		return r.restore(batch)
	case agent.Rate:
		return r.rate(c, batch)
	case agent.Compact:
		if err := r.compact(c); err != nil {
			return err
		}
	case settled:
		return r.settled(c)
	case plug.Wake:
		return r.wake(c)
	case finish:
		return r.finish()
	case agent.Continue:
		err := r.planQueued()
		if err == nil {
			err = r.proceed()
		}
		if err != nil {
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
	if r.left {
		return // it is for whoever opens the session next
	}
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
		if change, ok := c.(agent.Change); ok && err == nil && change.Model != "" && r.points.Hooks.Switching != nil {
			r.strays.Go(func() { r.changeLater(change) }) // somebody has a word on it, and may take long
			err = r.rec.append(journal.Batch{Taken: []string{m.ID}})
		} else if err == nil {
			err = r.take(c, []string{m.ID})
		}
		if err != nil {
			_ = r.rec.append(journal.Batch{Taken: []string{m.ID}}, agent.Note{Level: "warn", Text: fmt.Sprintf("inbox message %s: %v", m.ID, err)})
		}
	}
}

// changeLater makes a change that came in the inbox.
func (r *runner) changeLater(c agent.Change) {
	if err := r.Send(r.life, c); err != nil && r.life.Err() == nil {
		r.note("warn", err.Error())
	}
}

func (r *runner) note(level, text string) {
	_ = r.rec.store(false, agent.Note{Level: level, Text: text})
}

// prompt takes user input: into the conversation when nothing runs, else into
// the queue. A request may have to be planned first.
func (r *runner) prompt(c agent.Prompt, batch journal.Batch) error {
	var seen bool
	r.rec.read(func(s *transcript.State) { seen = s.Inputs[c.ID] })
	if c.ID != "" && seen {
		if len(batch.Taken) > 0 {
			return r.rec.append(batch)
		}
		return nil
	}
	if c.ID == "" {
		c.ID = newID("in_")
	}
	if tell := r.points.Hooks.Spoken; tell != nil {
		tell()
	}
	var first []agent.Body
	if r.cancel == nil {
		var err error
		if first, err = r.firstPlan(c.Text); err != nil {
			return err
		}
	}
	return r.said(agent.InputQueued{Input: c.ID, Text: c.Text, Parts: c.Blocks, Later: c.Later, Without: c.Without}, first, batch)
}

// said takes words in, in one write with the facts in front of them, and has them
// answered.
func (r *runner) said(q agent.InputQueued, first []agent.Body, batch journal.Batch) error {
	var queue bool
	r.rec.read(func(s *transcript.State) { queue = s.Turn.Open || len(s.Queued) > 0 })
	if h := r.points.Hooks; r.cancel != nil || queue || r.holds() || h.Takes != nil && h.Takes(q) {
		err := r.rec.append(batch, append(first, q)...)
		if err == nil {
			err = r.proceed()
		}
		return err
	}
	if err := r.extras(r.rec.lease.Valid()); err != nil {
		return err
	}
	if err := r.rec.append(batch, append(first, agent.InputAdded{Input: q.Input, Text: q.Text, Parts: q.Parts, Without: q.Without})...); err != nil {
		return err
	}
	return r.start()
}

// change alters the session's settings, by somebody's word.
func (r *runner) change(c agent.Change, by string, batch journal.Batch) error {
	if c.Model != "" {
		m, err := r.parts.Model(c.Model)
		if err != nil {
			return err
		}
		c.Model = m.Info().ID
	}
	if _, known := r.parts.Thinking[c.Effort]; c.Effort != "" && !known {
		return wrong(fmt.Sprintf("say in effort one of: %v", slices.Sorted(maps.Keys(r.parts.Thinking))), "there is no effort %.80q", c.Effort)
	}
	if c.Plan == agent.PlanOff && c.Mode == "" && r.points.Plans.Now != nil && r.points.Plans.Now() == agent.ModePlan {
		c.Mode = r.afterPlan()
	}
	if c.Mode != "" && r.points.Permissions.SetMode != nil {
		if err := r.points.Permissions.SetMode(c.Mode); err != nil {
			return &agent.Problem{Code: agent.ProblemUsage, Message: err.Error(), Err: err, Fix: "take another mode"}
		}
		r.mu.Lock()
		r.mode = c.Mode
		r.mu.Unlock()
	}
	return r.rec.append(batch, agent.SettingsChanged{
		Model: c.Model, Mode: c.Mode, Title: c.Title, By: by, Tags: c.Tags, Pinned: c.Pinned, Archived: c.Archived, Plan: c.Plan, Effort: c.Effort,
	})
}

// proceed goes on with a turn that was cut short.
func (r *runner) proceed() error {
	if r.cancel != nil {
		r.again = true
		return nil
	}
	var last agent.Role
	var open, queued bool
	r.rec.read(func(s *transcript.State) {
		open, queued = s.Turn.Open, s.Waits(true)
		for _, m := range slices.Backward(s.Messages) {
			if m.Origin == "" { // what nobody has said waits for no answer
				last = m.Role
				break
			}
		}
	})
	if !open && queued { // as it would have been at the end of the last turn
		if _, err := r.unqueue(); err != nil {
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

// start runs a turn: the one that is open, or a new one. What a session has to answer
// whose tools are lent waits until somebody goes on with it.
func (r *runner) start() error {
	if r.lent {
		return nil
	}
	var turn transcript.Turn
	r.rec.read(func(s *transcript.State) { turn = s.Turn })
	if turn.Open && turn.Stuck >= maxStuck {
		return r.giveUp(turn)
	}
	if err := r.planOn(); err != nil {
		return err
	}
	id := turn.ID
	if !turn.Open {
		id = newID("tn_")
	}
	ctx, cancel := context.WithCancelCause(r.rec.lease.Valid())
	r.cancel, r.again = cancel, false
	go func() {
		steps, err := r.turn(ctx, id)
		r.ended <- ended{turn: id, steps: steps, err: err}
	}()
	return nil
}

// giveUp ends a turn that has crashed again and again at the same place.
func (r *runner) giveUp(turn transcript.Turn) error {
	_, err := r.unqueue() // what somebody has a word on waits for the next turn
	end := ended{turn: turn.ID, steps: turn.Step, err: fmt.Errorf("the turn was started %d times and crashed each time at step %d; send a new prompt to go on from here", turn.Stuck, turn.Step)}
	return errors.Join(err, r.rec.append(journal.Batch{Sync: journal.Barrier, Seal: true}, endOf(turn, end, r.reg.cfg.Now())))
}

// turnEnded records how a turn came out and starts the next one when input
// waits. Notices alone do that only for a turn that was done: what the user has
// stopped stays stopped, and what has failed would fail again.
func (r *runner) turnEnded(end ended) error {
	r.cancel(nil)
	r.cancel = nil
	if r.rec.isParked() {
		return nil // it goes on when the session is opened again
	}
	if end.aside {
		return r.asideEnded(end)
	}
	if errors.Is(end.err, agent.ErrDeferred) && r.again && !r.closing {
		return r.start() // they had been faster than its end
	}
	if errors.Is(end.err, agent.ErrParked) || errors.Is(end.err, agent.ErrDeferred) {
		return nil // it goes on when the session is opened again
	}
	var body agent.TurnEnded
	var words bool
	r.rec.read(func(s *transcript.State) {
		body = endOf(s.Turn, end, r.reg.cfg.Now())
		words = slices.ContainsFunc(s.Queued, func(q agent.InputQueued) bool { return q.Origin != settledOrigin })
	})
	if err := r.rec.append(journal.Batch{Sync: journal.Barrier, Seal: true}, body); err != nil {
		return err
	}
	if tell := r.points.Hooks.Over; tell != nil {
		tell(body, r.outcome().Text)
	}
	if tell := r.points.Hooks.Ended; tell != nil {
		r.strays.Go(func() { tell(r.life, body) })
	}
	if r.closing {
		return nil // what is queued is read when the session is opened again
	}
	if err := r.planQueued(); err != nil {
		return err
	}
	said, err := r.unqueue()
	if err != nil || !said || !words && body.Reason != agent.EndDone {
		return err
	}
	return r.start()
}

// unqueue moves all input that waits into the conversation, and reports whether anything
// was said with it. Where others have a word on it, the turn that begins does that.
func (r *runner) unqueue() (said bool, err error) {
	if !r.holds() {
		return r.rec.steer(true)
	}
	r.rec.read(func(s *transcript.State) { said = s.Waits(true) })
	return said, nil
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
	if why, ok := spent(end.err); ok {
		b.Reason, b.Fail, b.Problem, b.Error = agent.EndLimit, "", agent.ProblemBudget, why
	} else if p := agent.ProblemOf(end.err); p != nil {
		b.Problem = p.Code
	} else if errors.Is(end.err, syscall.ENOSPC) {
		b.Problem = agent.ProblemDisk
	}
	return b
}

// remembered returns what an answer stands for beyond its call: the rules that it
// names, or else those of the choice that it takes.
func remembered(asked agent.ApprovalAsked, c agent.Resolve) (remember string, rules []string) {
	if c.Decision.Verdict != agent.Allow || c.Remember != agent.RememberSession && c.Remember != agent.RememberAlways {
		return "", nil
	}
	rules = c.Rules
	for _, choice := range asked.Choices {
		if choice.Remember == c.Remember && len(rules) == 0 {
			rules = choice.Rules
		}
	}
	if len(rules) == 0 { // nothing to go by: it holds for the call
		return "", nil
	}
	return c.Remember, rules
}

// resolve records a person's answer to a question that is open, and gives it to
// the call that waits for it. The first answer wins; the log says which it was,
// also for a call that comes to wait only later.
func (r *runner) resolve(c agent.Resolve, batch journal.Batch) error {
	return r.answer(c, agent.PlanRejected, batch)
}

// answer is resolve; to refuse a plan means what refused says.
func (r *runner) answer(c agent.Resolve, refused agent.PlanVerdict, batch journal.Batch) error {
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
	if c.Decision.Verdict == agent.Allow || c.Decision.Code != agent.ErrApprovalTimeout { // the others are not for who answers
		c.Decision.Code = ""
	}
	c.Remember, c.Rules = remembered(asked, c)
	facts := r.planAnswer(asked, &c, refused)
	answer := agent.ApprovalResolved(c)
	if err := r.rec.append(batch, append(facts, answer)...); err != nil {
		return err
	}
	if c.Remember != "" && r.points.Permissions.Grant != nil {
		if err := r.points.Permissions.Grant(c.Remember, c.Rules); err != nil {
			r.note("warn", "what was allowed is not remembered: "+err.Error())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if reply, ok := r.waiting[c.ID]; ok {
		reply <- answer // buffered, and only once: the question is not open any more
	}
	return nil
}

package acp

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// follower tells the client of a session what its events show. It belongs to the goroutine
// that follows them.
type follower struct {
	*view.View
	x    *session
	past bool // what comes now is history
	told bool // which its client is told

	asking  map[string]context.CancelFunc // questions that wait for the client's person, by ID
	message string                        // ID of the answer in progress
	spent   agent.Money
	priced  bool
	turned  bool // a turn runs
}

// What the client has been told of a call: its mark in the view.
const (
	announced = 1 + iota // without its input
	described
	decided
)

// update tells the client something about the session.
func (x *session) update(u any) { x.s.tell("session/update", notification{x.id, u}) }

// follow tells the client what happens in the session, from its beginning if told. It ends
// with the session.
func (x *session) follow(ctx context.Context, told bool) {
	defer close(x.done)
	v := &follower{View: view.New(x.id, view.Limits{Rows: view.OpenOnly}), x: x, told: told, asking: map[string]context.CancelFunc{}}
	head := x.sess.Info.Head
	v.past = head > 0
	caught := func() {
		v.past = false
		close(x.caught)
		<-x.known
		for _, a := range v.Asks { // that were open when the session was
			v.put(ctx, a.ApprovalAsked)
		}
	}
	if !v.past {
		caught()
	}
	var failed error
	for e, err := range x.sess.Events(ctx, 0) {
		if err != nil {
			failed = err
			break
		}
		v.event(ctx, e)
		if v.past && e.Seq >= head {
			caught()
		}
	}
	v.unask()
	if v.past {
		close(x.caught)
	}
	x.mu.Lock()
	x.over = true
	left := x.prompts
	x.mu.Unlock()
	for _, p := range left {
		if failed != nil && ctx.Err() == nil {
			p.over("", failed)
			continue
		}
		p.over(stopCancelled, nil)
	}
}

// tell tells the client something that belongs to the history too.
func (v *follower) tell(u any) {
	if !v.past || v.told {
		v.x.update(u)
	}
}

// event takes in an event, and tells the client of it.
func (v *follower) event(ctx context.Context, e agent.Event) {
	thought, said := v.Live(view.ThoughtRow), v.Live(view.AnswerRow) // the client has that
	rows := v.Apply(e)
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		v.opened(b)
	case agent.SettingsChanged:
		v.changed(ctx, b)
	case agent.InputAdded:
		v.input(b)
	case agent.InputDropped:
		v.dropped(b)
	case agent.TurnStarted:
		v.turned = true
		v.started()
	case agent.TurnEnded:
		v.ended(b, rows)
	case agent.ModelRequested:
		if b.Purpose == "" {
			v.message = newMessage(b.Turn, b.Step, b.Attempt)
		}
	case agent.Fragment:
		v.fragment(b)
	case agent.ModelAnswered:
		if b.Purpose == "" {
			v.rest("agent_thought_chunk", b.Message.Thought(), thought)
			v.rest("agent_message_chunk", b.Said(), said)
			v.answered(b, rows)
		}
	case agent.ContextCompacted:
		v.remark("info", v.x.s.c.Text.Say(text.ACPCompacted, "before", b.Before, "after", b.After))
	case agent.Note:
		v.remark(b.Level, v.x.s.c.Text.Phrase(text.OneLine(b.Text)))
	case agent.CallDeferred:
		v.finish(stopEnd, nil)
	default:
		v.called(ctx, e, rows)
	}
}

// remark tells what is said beside the conversation, while it happens.
func (v *follower) remark(level, words string) {
	if !v.past {
		v.x.notice(level, words)
	}
}

func (v *follower) opened(b agent.SessionOpened) {
	x := v.x
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mode, x.model = cmp.Or(b.Mode, x.mode), cmp.Or(b.Model, x.model)
	v.turned = false
}

// changed takes over settings that have changed, by whoever's word.
func (v *follower) changed(ctx context.Context, b agent.SettingsChanged) {
	x := v.x
	x.mu.Lock()
	x.mode, x.model, x.effort = cmp.Or(b.Mode, x.mode), cmp.Or(b.Model, x.model), cmp.Or(b.Effort, x.effort)
	x.mu.Unlock()
	if b.Title != "" {
		v.tell(infoUpdate{Kind: "session_info_update", Title: text.OneLine(b.Title)})
	}
	if v.past {
		return
	}
	if b.Mode != "" {
		x.update(modeUpdate{Kind: "current_mode_update", Mode: string(b.Mode)})
	}
	if b.Mode != "" || b.Model != "" || b.Effort != "" {
		x.update(optionsUpdate{Kind: "config_option_update", Options: x.options(ctx)})
	}
}

// input tells what somebody has said. What the client has said it knows.
func (v *follower) input(b agent.InputAdded) {
	x := v.x
	x.mu.Lock()
	own := false
	for _, p := range x.prompts {
		if p.id == b.Input {
			p.added, own = true, true
		}
	}
	x.mu.Unlock()
	if own || b.Origin != "" {
		return
	}
	if b.Text != "" {
		v.tell(chunk{Kind: "user_message_chunk", Content: textBlock(b.Text), Message: b.Input})
	}
	for _, part := range b.Parts {
		if c, ok := shownBlock(part); ok {
			v.tell(chunk{Kind: "user_message_chunk", Content: c, Message: b.Input})
		}
	}
}

// dropped says why an input is not answered.
func (v *follower) dropped(b agent.InputDropped) {
	x := v.x
	x.mu.Lock()
	for _, p := range x.prompts {
		p.added = p.added || p.id == b.Input
	}
	x.mu.Unlock()
	v.tell(chunk{Kind: "agent_message_chunk", Content: textBlock(x.s.c.Text.Say(text.ACPDropped, "why", text.OneLine(cmp.Or(b.Reason, b.By))))})
	if !v.turned {
		v.finish(stopEnd, nil)
	}
}

// started stops a turn whose prompt was cancelled before it began.
func (v *follower) started() {
	x := v.x
	x.mu.Lock()
	stop := false
	for _, p := range x.prompts {
		stop = stop || p.cancelled
	}
	x.mu.Unlock()
	if stop {
		x.interrupt()
	}
}

// ended ends the prompts of a turn.
func (v *follower) ended(b agent.TurnEnded, rows []*view.Row) {
	v.turned = false
	v.unask()
	for _, r := range rows {
		if r.Call != nil && r.Mark > 0 {
			v.x.endedOn(r.Call.ID)
		}
	}
	if v.past {
		return
	}
	t := v.x.s.c.Text
	switch b.Reason {
	case agent.EndInterrupted:
		v.finish(stopCancelled, nil)
	case agent.EndRefused:
		v.finish(stopRefusal, nil)
	case agent.EndLimit:
		if b.Problem == agent.ProblemBudget {
			words, fix := t.Problem(&agent.Problem{Code: b.Problem, Args: map[string]string{"error": t.Phrase(b.Error)}})
			v.tell(chunk{Kind: "agent_message_chunk", Content: textBlock("\n\n" + strings.TrimSpace(words+" "+fix))})
		}
		v.finish(stopSteps, nil)
	case agent.EndFailed:
		v.finish("", failure(t, b))
	default:
		if v.Stop() == agent.StopLength {
			v.finish(stopLength, nil)
			return
		}
		v.finish(stopEnd, nil)
	}
}

// unask takes back what the client's person is asked.
func (v *follower) unask() {
	for _, cancel := range v.asking {
		cancel()
	}
	clear(v.asking)
}

// failure is why a turn has failed.
func failure(t text.Catalog, b agent.TurnEnded) error {
	if b.Problem != "" && b.Fail == "" {
		return &agent.Problem{Code: b.Problem, Message: cmp.Or(b.Error, string(b.Problem))}
	}
	w := &wireError{Code: codeInternal, Message: t.Phrase(b.Error)}
	if b.Fail != "" {
		said, fix := t.Failure(b.Fail, "")
		w.Message = strings.TrimSpace(said + " " + fix)
		if b.Error != "" {
			w.Message += " (" + t.Phrase(b.Error) + ")"
		}
	}
	if b.Fail == agent.FailAuth {
		w.Code = codeAuth
	}
	return w
}

// finish ends the prompts that are part of the turn.
func (v *follower) finish(stop string, err error) {
	x := v.x
	x.mu.Lock()
	var done []*prompt
	for _, p := range x.prompts {
		if p.added {
			done = append(done, p)
		}
	}
	x.mu.Unlock()
	for _, p := range done {
		p.over(stop, err)
	}
	if !v.past && len(done) > 0 && errors.Is(err, nil) {
		x.update(infoUpdate{Kind: "session_info_update", Updated: time.Now().UTC().Format(time.RFC3339)})
	}
}

// fragment tells a piece of an answer.
func (v *follower) fragment(b agent.Fragment) {
	switch b.What {
	case agent.DeltaText:
		v.say("agent_message_chunk", b.Text)
	case agent.DeltaThinking:
		v.say("agent_thought_chunk", b.Text)
	case agent.DeltaCall:
		if r := v.Call(b.Call); r != nil {
			v.announce(r, r.Call.Call)
		}
	}
}

func (v *follower) say(kind, words string) {
	if words != "" {
		v.tell(chunk{Kind: kind, Content: textBlock(words), Message: v.message})
	}
}

// answered tells of the calls of an answer, and of what was used.
func (v *follower) answered(b agent.ModelAnswered, rows []*view.Row) {
	for _, r := range rows {
		if r.Call != nil && !r.Gone {
			v.announce(r, r.Call.Call)
		}
	}
	v.message = ""
	v.usage(b)
}

// rest tells the end of a text of which the client has the beginning. Where it has
// something else, it is told all of it, as another message.
func (v *follower) rest(kind, all, has string) {
	end, ok := strings.CutPrefix(all, has)
	if !ok {
		v.message = randomID()
		end = all
	}
	v.say(kind, end)
}

// usage tells how full the model's window is, and what the session has cost.
func (v *follower) usage(b agent.ModelAnswered) {
	if b.Cost != nil {
		v.spent += *b.Cost
		v.priced = true
	}
	if v.past && !v.told {
		return
	}
	size := v.Window
	v.x.mu.Lock()
	for _, m := range v.x.models {
		if m.ID == v.x.model || m.ID == b.Model {
			size = cmp.Or(m.Window, size)
		}
	}
	v.x.mu.Unlock()
	if size <= 0 {
		return
	}
	u := usageUpdate{Kind: "usage_update", Used: b.Usage.Input + b.Usage.CacheRead + b.Usage.CacheWrite + b.Usage.Output, Size: size}
	if v.priced {
		u.Cost = &cost{Amount: float64(v.spent) / 1e9, Currency: "USD"}
	}
	v.tell(u)
}

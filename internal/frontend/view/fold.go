package view

import (
	"slices"
	"strconv"
	"strings"

	"dure/agent"
)

// model takes in what the model is asked and says.
func (v *View) model(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.ModelRequested:
		if b.Purpose != "" {
			return
		}
		v.void()
		v.request, v.Turn.Step = e.Seq, b.Step
		v.Turn.Doing = Doing{What: Waiting, Since: e.Time}
	case agent.Fragment:
		v.fragment(e, b)
	case agent.ModelAnswered:
		if b.Purpose == "" {
			v.answer(e, b)
			v.Turn.Doing = Doing{What: Waiting, Since: e.Time}
		}
	case agent.ModelFailed:
		if b.Purpose != "" {
			return
		}
		v.void()
		v.Turn.Doing = Doing{What: Failing, Class: b.Class, Since: e.Time}
		if b.Retry {
			v.note(e)
		}
	}
}

// fragment adds a piece to the answer in progress.
func (v *View) fragment(e agent.Event, b agent.Fragment) {
	var r *Row
	switch b.What {
	case agent.DeltaThinking:
		if r = v.piece(e, ThoughtRow, b.Index); v.Turn.Doing.What != Thinking {
			v.Turn.Doing = Doing{What: Thinking, Since: e.Time}
		}
	case agent.DeltaText:
		r = v.piece(e, AnswerRow, b.Index)
		v.Turn.Doing = Doing{What: Answering, Since: e.Time}
	case agent.DeltaCall:
		v.Turn.Doing = Doing{What: Calling, Tool: b.Tool, Since: e.Time}
		v.proposed(v.place(e, CallRow, min(len(v.live), maxOpen)), agent.Call{ID: b.Call, Tool: b.Tool})
		return
	default:
		return
	}
	if r.text.Len() < maxAnswer {
		r.text.WriteString(b.Text)
		r.Text = r.text.String()
		v.touch(r)
	}
}

// piece returns the row that a piece of a text belongs to.
func (v *View) piece(e agent.Event, k Kind, index int) *Row {
	if n := len(v.live); n > 0 && v.live[n-1].Kind == k && (v.live[n-1].index == index || n >= maxOpen) {
		return v.live[n-1]
	}
	r := v.place(e, k, min(len(v.live), maxOpen))
	r.index = index
	return r
}

// place returns row i of the answer in progress, as one of a kind.
func (v *View) place(e agent.Event, k Kind, i int) *Row {
	if i < len(v.live) {
		r := v.live[i]
		if r.Kind = k; k != CallRow {
			r.Of, r.Mark = "", 0
		}
		r.Call, r.Text = nil, ""
		r.text.Reset()
		return v.touch(r)
	}
	if v.request == 0 { // it was not seen
		v.request = v.Seq
	}
	r := &Row{ID: strconv.FormatInt(v.request, 10) + "." + strconv.Itoa(i), Seq: v.request, Kind: k, Time: e.Time, Open: true, upto: e.Seq}
	v.live = append(v.live, r)
	return v.insert(r)
}

// answer completes the answer in progress: live pieces may be missing, or be others.
func (v *View) answer(e agent.Event, b agent.ModelAnswered) {
	v.Context = b.Usage.Context()
	i := 0
	next := func(k Kind) *Row {
		r := v.place(e, k, i)
		r.Time, r.upto, r.done = e.Time, e.Seq, k != CallRow
		i++
		return r
	}
	shown := b.Shown
	for _, block := range b.Message.Blocks {
		switch {
		case block.Type == agent.TextBlock && b.Shown != nil:
			if shown != nil && *shown != "" {
				next(AnswerRow).Text = *shown
			}
			shown = nil
		case block.Type == agent.TextBlock && strings.TrimSpace(block.Text) != "":
			next(AnswerRow).Text = block.Text
		case block.Type == agent.ThinkingBlock && block.Text != "":
			next(ThoughtRow).Text = block.Text
		case block.Type == agent.CallBlock && block.Call != nil:
			v.proposed(next(CallRow), *block.Call)
		}
	}
	if shown != nil && *shown != "" { // in the place of no text
		next(AnswerRow).Text = *shown
	}
	v.live = v.live[i:]
	v.void()
	v.close(func(r *Row) bool { return r.done })
}

// void takes back what an answer has shown that does not come any more.
func (v *View) void() {
	if len(v.live) > 0 {
		gone := v.live
		v.remove(func(r *Row) bool { return slices.Contains(gone, r) })
	}
	v.live, v.request = nil, 0
}

func (v *View) proposed(r *Row, c agent.Call) {
	if r.Of != c.ID { // it is another call than live events had
		r.Mark = 0
	}
	r.Of, r.Call = c.ID, &Call{Call: c, State: CallProposed}
}

// known returns a call that is not over, or a new one: not only the model makes calls.
func (v *View) known(e agent.Event, c agent.Call) *Call {
	r := v.Call(c.ID)
	if r == nil {
		r = v.put(e, Row{Kind: CallRow, Open: true})
		v.proposed(r, c)
	}
	return v.touch(r).Call
}

// call takes in what happens to calls.
func (v *View) call(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.CallDecided:
		c := v.known(e, b.Proposal.Call)
		c.Call, c.By, c.Reason, c.Verdict = b.Proposal.Call, b.Decision.By, b.Decision.Reason, b.Decision.Verdict
		if c.State = CallAllowed; c.Verdict != agent.Allow {
			c.State = CallDenied
		}
	case agent.CallStarted:
		c := v.known(e, agent.Call{ID: b.ID, Tool: b.Tool})
		c.State, c.Began = CallRunning, e.Time
		v.Turn.Doing = Doing{What: Executing, Tool: b.Tool, Call: &c.Call, Since: e.Time}
	case agent.CallOutput:
		if r := v.Call(b.ID); r != nil {
			c := v.touch(r).Call
			c.Output += b.Text
			if n := len(c.Output) - maxOutput; n > 0 {
				c.Output = strings.ToValidUTF8(c.Output[n:], "")
			}
		}
	case agent.CallFinished:
		c := v.known(e, agent.Call{ID: b.Result.ID, Tool: b.Tool})
		c.Millis = b.Millis
		v.Turn.Doing = Doing{What: Waiting, Since: e.Time}
		if b.Result.Status == agent.StatusPending {
			c.State, c.Handle, c.Result = CallBackground, b.Result.Handle, &b.Result
			v.Tasks = capped(append(v.Tasks, Task{e.Seq, b.Result.Handle, b.Tool, c.Call, b.Result}))
			return
		}
		v.finished(c, b.Result)
	case agent.CallSettled:
		v.Tasks = slices.DeleteFunc(v.Tasks, func(t Task) bool { return t.Handle == b.Handle })
		if r := v.Call(b.ID); r != nil && r.Call.State == CallBackground {
			v.finished(r.Call, b.Result)
		}
		v.note(e)
	}
}

func (v *View) finished(c *Call, result agent.Result) {
	switch {
	case result.Failed() && c.State != CallDenied:
		c.State = CallFailed
	case !result.Failed():
		if c.State = CallDone; c.Tool == todoTool {
			v.Todos = c.Input
		}
	}
	c.Output, c.Result, c.Changes = "", &result, Changes(result.Output)
	for _, f := range result.Files {
		v.Files = slices.DeleteFunc(v.Files, func(was agent.FileState) bool { return was.Path == f.Path })
		v.Files = append(v.Files, f)
	}
	v.Files = capped(v.Files)
	v.close(func(r *Row) bool { return r.Call == c })
}

// todoTool writes the task list, and askTool has questions for the user.
const (
	todoTool = "todo__write"
	askTool  = "user__ask"
)

// ask takes in what people are asked.
func (v *View) ask(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.ApprovalAsked:
		v.answered(b.ID, nil)
		if b.Child == "" {
			c := v.known(e, b.Proposal.Call)
			c.Call, c.State, c.Asked = b.Proposal.Call, CallAsked, true
		}
		k := ApprovalRow
		if b.Proposal.Call.Tool == askTool {
			k = QuestionRow
		}
		v.Asks = append(v.Asks, v.put(e, Row{Kind: k, Of: b.ID, Open: true, Ask: &Ask{Seq: e.Seq, ApprovalAsked: b}}).Ask)
	case agent.ApprovalResolved:
		v.answered(b.ID, &b)
	}
}

// answered closes what was asked; with no answer, nobody waits for it any more.
func (v *View) answered(id string, b *agent.ApprovalResolved) {
	if r := v.find(id, ApprovalRow, QuestionRow); r != nil {
		r.Ask.Answer = b
		v.close(func(x *Row) bool { return x == r })
	}
}

// plan takes in what is said about plans. What was handed out of one stays as it is.
func (v *View) plan(e agent.Event) {
	var next agent.StoodPlan
	change := func(id string) (known bool) {
		if v.Plan == nil || v.Plan.ID != id {
			return false
		}
		next = *v.Plan
		v.Plan = &next
		if r := v.find(id, PlanRow); r != nil {
			v.touch(r).Plan = &next
		}
		return true
	}
	switch b := e.Body.(type) {
	case agent.PlanProposed:
		v.close(func(r *Row) bool { return r.Kind == PlanRow })
		v.Plan = &agent.StoodPlan{ID: b.Plan, Seq: e.Seq, Body: b.Body}
		v.put(e, Row{Kind: PlanRow, Of: b.Plan, From: b.Call, Open: true, Plan: v.Plan})
	case agent.PlanChanged:
		if change(b.Plan) {
			next.Body, next.Edits = b.Body, next.Edits+1
		}
	case agent.PlanDecided:
		if change(b.Plan) {
			next.State = b.Verdict
		}
	}
}

// child takes in the sessions of agents.
func (v *View) child(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.ChildOpened:
		if v.find(b.Child, ChildRow) == nil { // else it goes on
			v.put(e, Row{Kind: ChildRow, Of: b.Child, From: b.Agent, Open: true, Child: &ChildSession{ChildOpened: b}})
		}
	case agent.ChildEnded:
		if r := v.find(b.Child, ChildRow); r != nil {
			r.Child.Outcome = &b.Outcome
		}
		v.close(func(r *Row) bool {
			return r.Kind == ChildRow && r.Of == b.Child || r.Ask != nil && r.Ask.Child == b.Child
		})
	}
}

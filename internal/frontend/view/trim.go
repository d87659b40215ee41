package view

import (
	"encoding/json"
	"slices"
	"strings"

	"dure/agent"
)

// trim cuts the rows that the event before has changed, as far as they are over, and drops
// the oldest rows beyond the limits.
func (v *View) trim() {
	v.drop(max(len(v.rows)-max(v.limits.Rows, 0), 0))
	for _, r := range v.changed {
		if r.moved = false; !r.Open && !r.Gone && !r.left {
			v.bytes -= r.size
			r.size = r.cut(v.limits.Text)
			v.bytes += r.size
		}
	}
	clear(v.changed)
	v.changed = v.changed[:0]
	n, bytes := 0, v.bytes
	for n < len(v.rows) && bytes > v.limits.Bytes {
		bytes -= v.rows[n].size
		n++
	}
	v.drop(n)
}

// drop drops the n oldest rows. Those that are open still change.
func (v *View) drop(n int) {
	for _, r := range v.rows[:n] {
		v.bytes -= r.size
		r.left = true
	}
	v.rows, v.Left = slices.Delete(v.rows, 0, n), v.Left+n
}

// cut leaves of a long row the beginning of its texts. It returns about how much the row holds.
func (r *Row) cut(limit int) int {
	r.text.Reset()
	switch b := r.Body.(type) { // what the model reads is not shown
	case agent.ContextAdded:
		b.Text, b.Blocks = "", nil
		r.Body = b
	case agent.ContextCompacted:
		b.Head, b.Trimmed = nil, nil
		r.Body = b
	}
	whole := r.weight()
	if whole <= limit {
		return whole
	}
	short := Row{
		ID: r.ID, Seq: r.Seq, Kind: r.Kind, Time: r.Time, Size: whole, upto: r.upto,
		Of: clip(r.Of, limit), From: clip(r.From, limit), Text: clip(r.Text, limit), Event: r.Event,
	}
	if c := r.Call; c != nil {
		short.Call = &Call{Call: agent.Call{ID: short.Of, Tool: clip(c.Tool, limit)}, State: c.State, Verdict: c.Verdict, Millis: c.Millis}
		if len(c.Input) <= limit {
			short.Call.Input = c.Input
		}
		if was := c.Result; was != nil {
			short.Call.Result = &agent.Result{Status: was.Status, Text: clip(was.Text, limit), Fence: was.Fence, Spill: was.Spill}
		}
	}
	if a := r.Ask; a != nil {
		short.Ask = &Ask{Seq: a.Seq, Answer: a.Answer}
		short.Ask.ID, short.Ask.Reason = short.Of, clip(a.Reason, limit)
		short.Ask.Proposal.Call.Tool = clip(a.Proposal.Call.Tool, limit)
	}
	if c := r.Child; c != nil {
		short.Child = &ChildSession{View: c.View}
		short.Child.Child, short.Child.Agent, short.Child.Title, short.Child.Prompt = short.Of, short.From, clip(c.Title, limit), clip(c.Prompt, limit)
		if o := c.Outcome; o != nil {
			short.Child.Outcome = &agent.Outcome{Reason: o.Reason, Text: clip(o.Text, limit), Usage: o.Usage, Cost: o.Cost, Steps: o.Steps, Calls: o.Calls}
		}
	}
	if p := r.Plan; p != nil {
		short.Plan = &agent.StoodPlan{Seq: p.Seq, Edits: p.Edits, State: p.State}
	}
	*r = short
	return r.weight()
}

// weight is about how many bytes a row holds, without the view of a child. What is rare is
// measured as JSON.
func (r *Row) weight() int {
	const fields = 256
	n := fields + len(r.Of) + len(r.From) + len(r.Text) + weightOf(r.Blocks)
	if c := r.Call; c != nil {
		n += len(c.Input) + len(c.Raw) + len(c.Invalid) + len(c.Reason)
		if o := c.Result; o != nil {
			n += len(o.Text) + 2*len(o.Output) + weightOf(o.Blocks) + fields*(len(o.Files)+len(o.Meta)) // its changes are of its output
			for _, m := range o.Meta {
				n += len(m)
			}
			if o.Error != nil {
				n += len(o.Error.Message) + len(o.Error.Suggestion)
			}
		}
	}
	if c := r.Child; c != nil {
		n += len(c.Prompt) + len(c.Title)
		if c.Outcome != nil {
			n += len(c.Outcome.Text) + len(c.Outcome.Error)
		}
	}
	if r.Ask != nil || r.Plan != nil || r.Body != nil {
		data, _ := json.Marshal([]any{r.Ask, r.Plan, r.Body}) // what cannot be encoded was not stored
		n += len(data)
	}
	return n
}

func weightOf(blocks []agent.Block) (n int) {
	for _, b := range blocks {
		n += len(b.Text) + len(b.Raw)
		if b.Media != nil {
			n += len(b.Media.Data) + len(b.Media.Name) + len(b.Media.URL)
		}
	}
	return n
}

// clip returns the beginning of a text, and keeps nothing of the rest.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:limit], ""))
}

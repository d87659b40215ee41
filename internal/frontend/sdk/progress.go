package sdk

import (
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/view"
)

// beatEvery is how often hosts are told of calls that take long.
const beatEvery = 10 * time.Second

// execution is a call that runs.
type execution struct {
	*view.Call
	kid *child // whose call it is; nil = of the session itself
}

func (h *Host) executions() (list []execution) {
	add := func(v *view.View, kid *child) {
		for _, r := range v.Open() {
			if r.Call != nil && r.Call.State == view.CallRunning {
				list = append(list, execution{r.Call, kid})
			}
		}
	}
	add(h.show.View, nil)
	for _, kid := range h.show.kids {
		add(kid.view, kid)
	}
	return list
}

// beating has the clock run for as long as there is something to tell of.
func (h *Host) beating() {
	runs := len(h.executions())+len(h.show.hooks) > 0
	switch {
	case runs && h.beat == nil:
		h.beat = time.NewTicker(beatEvery)
	case !runs && h.beat != nil:
		h.beat.Stop()
		h.beat = nil
	}
}

type toolProgress struct {
	head
	Call    string  `json:"tool_use_id"`
	Tool    string  `json:"tool_name"`
	Parent  *string `json:"parent_tool_use_id"`
	Seconds float64 `json:"elapsed_time_seconds"`
	Agent   string  `json:"subagent_type,omitempty"`
}

// beats tells of the calls and hooks that have run for long.
func (h *Host) beats() {
	now := h.c.Now()
	h.hooksRun(now)
	for _, c := range h.executions() {
		took := now.Sub(c.Began)
		if took < beatEvery {
			continue
		}
		p := toolProgress{head: h.head("tool_progress", "", ""), Call: c.ID, Tool: h.prog.Name(c.Tool), Seconds: took.Truncate(time.Millisecond).Seconds()}
		if c.kid != nil {
			p.Agent = c.kid.agent
			if c.kid.call != "" {
				p.Parent = &c.kid.call
			}
		}
		h.out.put(p)
	}
}

type taskProgress struct {
	head
	ID    string `json:"task_id"`
	Call  string `json:"tool_use_id,omitempty"`
	About string `json:"description"`
	Agent string `json:"subagent_type,omitempty"`
	Usage used   `json:"usage"`
	Last  string `json:"last_tool_name,omitempty"`
}

// worked tells how far an agent is: a call of it is done.
func (h *Host) worked(e agent.Event, kid *child, tool string) {
	kid.used.Calls++
	kid.used.Millis = e.Time.Sub(kid.began).Milliseconds()
	t, ok := h.show.tasks[kid.id]
	if !ok {
		return
	}
	h.out.put(taskProgress{h.head("system", "task_progress", ""), t.ID, t.call, t.About, t.Agent, kid.used, h.prog.Name(tool)})
}

type permissionDenied struct {
	head
	Tool    string `json:"tool_name"`
	Call    string `json:"tool_use_id"`
	Agent   string `json:"agent_id,omitempty"`
	Type    string `json:"decision_reason_type,omitempty"`
	Reason  string `json:"decision_reason,omitempty"`
	Message string `json:"message"`
}

// refused notes that a call was denied of which nobody was asked.
func (h *Host) refused(b agent.CallDecided) {
	c, d := b.Proposal.Call, b.Decision
	if d.Verdict != agent.Deny || d.Code == agent.ErrBlockedByHook || h.show.asked[c.ID] {
		return
	}
	h.show.refused[c.ID] = permissionDenied{Tool: h.prog.Name(c.Tool), Call: c.ID, Type: denialType(d), Reason: h.c.Text.Phrase(d.Reason)}
}

// denies tells of a call that was denied, in front of what the model reads of it.
func (h *Host) denies(r agent.Result, kid *child) {
	p, ok := h.show.refused[r.ID]
	if !ok {
		return
	}
	delete(h.show.refused, r.ID)
	p.head, p.Message = h.head("system", "permission_denied", ""), r.Unfenced()
	if kid != nil {
		p.Agent = kid.id
	}
	h.out.put(p)
}

// denialType is the kind of reason for which a call was denied.
func denialType(d agent.Decision) string {
	by, _, _ := strings.Cut(d.By, ":")
	by, _, _ = strings.Cut(by, ".")
	switch {
	case d.Rule != "":
		return "rule"
	case strings.HasPrefix(by, "mode"):
		return "mode"
	case strings.HasPrefix(by, "hook"):
		return "hook"
	}
	return "other"
}

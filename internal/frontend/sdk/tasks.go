package sdk

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
	"dure/internal/state/transcript"
)

// task is work that goes on behind a turn, or for a call of it.
type task struct {
	ID         string `json:"task_id"`
	Kind       string `json:"task_type"`
	Agent      string `json:"subagent_type,omitempty"`
	About      string `json:"description"`
	call       string
	background bool
	job        bool // a command, and not an agent
}

// The kinds of tasks, as hosts know them.
const (
	kindJob   = "local_bash"
	kindAgent = "local_agent"
)

// maxAbout is how much of a command or a report says what it is.
const maxAbout = 200

type taskStarted struct {
	head
	task
	Call       string `json:"tool_use_id,omitempty"`
	Background bool   `json:"is_backgrounded"`
	Prompt     string `json:"prompt,omitempty"`
}

// begins tells of a task.
func (h *Host) begins(t task, prompt string) {
	h.show.tasks[t.ID] = t
	h.expired = h.expired && !t.background
	h.out.put(taskStarted{head: h.head("system", "task_started", ""), task: t, Call: t.call, Background: t.background, Prompt: prompt})
	if t.background {
		h.tasksChanged()
	}
}

// goesOn is a call that was answered although its work goes on.
func (h *Host) goesOn(b agent.CallFinished) {
	id := b.Result.Handle
	if kid, ok := strings.CutPrefix(id, agent.ChildHandle); ok {
		if t, ok := h.show.tasks[kid]; ok {
			t.background, h.expired = true, false
			h.show.tasks[kid] = t
			h.out.put(updated{h.head("system", "task_updated", ""), kid, map[string]any{"is_backgrounded": true}})
			h.tasksChanged()
		}
		return
	}
	var c agent.Call
	if r := h.show.Call(b.Result.ID); r != nil {
		c = r.Call.Call
	}
	h.begins(task{ID: id, Kind: kindJob, About: aboutCall(c), call: b.Result.ID, background: true, job: true}, "")
}

// aboutCall is what a call does, in a line.
func aboutCall(c agent.Call) string {
	var in struct {
		Description string `json:"description"`
		Command     string `json:"command"`
	}
	_ = json.Unmarshal(c.Input, &in) // another tool has other fields
	about := in.Description
	if about == "" {
		about = in.Command
	}
	if about == "" {
		about = c.Tool
	}
	return text.Cut(text.OneLine(about), maxAbout)
}

type updated struct {
	head
	ID    string         `json:"task_id"`
	Patch map[string]any `json:"patch"`
}

type notified struct {
	head
	ID      string `json:"task_id"`
	Call    string `json:"tool_use_id,omitempty"`
	Status  string `json:"status"`
	Output  string `json:"output_file"`
	Summary string `json:"summary"`
	Usage   *used  `json:"usage,omitempty"`
}

type used struct {
	Tokens int   `json:"total_tokens"`
	Calls  int   `json:"tool_uses"`
	Millis int64 `json:"duration_ms"`
}

// over tells that a task is.
func (h *Host) over(id, how, summary string, u *used) {
	t, ok := h.show.tasks[id]
	if !ok {
		return
	}
	delete(h.show.tasks, id)
	patch := map[string]any{"status": how, "end_time": h.c.Now().UnixMilli()}
	if how == "stopped" {
		patch["status"] = "killed"
	}
	h.out.put(updated{h.head("system", "task_updated", ""), id, patch})
	h.out.put(notified{h.head("system", "task_notification", ""), id, t.call, how, "", text.Cut(summary, 4*maxAbout), u})
	if t.background {
		h.tasksChanged()
	}
}

// tasksChanged tells what runs in the background.
func (h *Host) tasksChanged() {
	list := []task{}
	for _, id := range slices.Sorted(maps.Keys(h.show.tasks)) {
		if t := h.show.tasks[id]; t.background {
			list = append(list, t)
		}
	}
	h.out.put(struct {
		head
		Tasks []task `json:"tasks"`
	}{h.head("system", "background_tasks_changed", ""), list})
}

// settled is work that has come out.
func (h *Host) settled(b agent.CallSettled) {
	if strings.HasPrefix(b.Handle, agent.ChildHandle) {
		h.over(strings.TrimPrefix(b.Handle, agent.ChildHandle), howOf(b.Result.Failed(), b.Lost), b.Result.Unfenced(), nil)
		return
	}
	h.over(b.Handle, howOf(b.Result.Failed(), b.Lost), b.Notice, nil)
}

func howOf(failed, stopped bool) string {
	switch {
	case stopped:
		return "stopped"
	case failed:
		return "failed"
	}
	return "completed"
}

// childOpened follows the session of an agent.
func (h *Host) childOpened(b agent.ChildOpened) {
	kid := &child{id: b.Child, view: view.New(b.Child, view.Limits{Rows: view.OpenOnly}), call: h.show.keys[b.Key], agent: b.Agent, began: h.c.Now()}
	if h.show.kids[b.Child] != nil {
		return // it goes on
	}
	h.show.kids[b.Child] = kid
	h.begins(task{ID: b.Child, Kind: kindAgent, Agent: b.Agent, About: text.Cut(text.OneLine(b.Title), maxAbout), call: kid.call}, b.Prompt)
	kid.ended = make(chan struct{})
	h.followChild(kid)
}

// lookAgain is how often the log of an agent is read that another process writes.
const lookAgain = 200 * time.Millisecond

// followChild hands the events of an agent's session on until it has ended. It may not be
// there yet, and what another process writes is read from time to time. The goroutine ends
// with the session.
func (h *Host) followChild(kid *child) {
	ctx, stop := context.WithCancel(h.following)
	h.wg.Go(func() {
		defer stop()
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		after := int64(0)
		for {
			for e, err := range h.prog.Client.Attach(kid.id).Events(ctx, after) {
				if err != nil {
					break
				}
				if !h.hand(ctx, found{session: kid.id, event: e}) {
					return
				}
				if !e.Live() {
					after = e.Seq
				}
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			case <-kid.ended:
				return
			}
		}
	})
	h.wg.Go(func() { // ends with the session of the agent, or with the host's
		select {
		case <-kid.ended:
			stop()
		case <-ctx.Done():
		}
	})
}

// rest of an agent's session: what it has said last comes before it is told of as done.
func (h *Host) restOf(kid *child) {
	if kid == nil || kid.over {
		return
	}
	kid.over = true
	close(kid.ended)
	ctx, done := context.WithTimeout(h.following, closeTime)
	defer done()
	info, err := client.Query[agent.SessionInfo](ctx, h.prog.Client, agent.FindSession{Name: kid.id})
	if err != nil || info.Head <= kid.view.Seq {
		return // what comes of it is in the session's own events
	}
	for e, err := range h.prog.Client.Attach(kid.id).Events(ctx, kid.view.Seq) {
		if err != nil {
			return
		}
		h.childShown(kid, e)
		if !e.Live() && e.Seq >= info.Head {
			return
		}
	}
}

// childEnded is an agent that is done. One in the background is told of when what it says
// is there for the model.
func (h *Host) childEnded(b agent.ChildEnded) {
	h.restOf(h.show.kids[b.Child])
	h.unasked(b.Child)
	defer h.answered()
	if t := h.show.tasks[b.Child]; t.background {
		return
	}
	o := b.Outcome
	h.over(b.Child, howOf(o.Reason == agent.EndFailed, o.Reason == agent.EndInterrupted), o.Text, &used{Tokens: o.Usage.Context(), Calls: o.Calls})
}

// childEvent turns an event of an agent's session into messages.
func (h *Host) childEvent(f found) {
	if kid := h.show.kids[f.session]; kid != nil {
		h.childShown(kid, f.event)
	}
}

// childShown shows an event of an agent's session, once.
func (h *Host) childShown(kid *child, e agent.Event) {
	if e.Live() || e.Seq <= kid.view.Seq {
		return
	}
	kid.view.Apply(e)
	h.beating()
	switch b := e.Body.(type) {
	case agent.ModelRequested:
		if b.Purpose == "" {
			kid.request = e.ID
		}
	case agent.InputAdded:
		if h.c.Forward && b.Origin == "" {
			s := said{head: h.head("user", "", transcript.InputID(b.Input, e.ID)), Message: userMessage{"user", b.Text}, Time: stamp(e.Time)}
			kid.mark(&s)
			h.out.put(s)
		}
	case agent.ModelAnswered:
		kid.used.Tokens = max(kid.used.Tokens, b.Usage.Context())
		if b.Purpose == "" {
			h.answeredBy(e, b, kid)
		}
	case agent.CallFinished:
		h.denies(b.Result, kid)
		delete(h.show.asked, b.Result.ID)
		h.finished(e, b.Result, kid)
		h.worked(e, kid, b.Tool)
	case agent.ChildOpened:
		h.childOpened(agent.ChildOpened{Child: b.Child, Agent: b.Agent, Title: b.Title, Prompt: b.Prompt, Key: b.Key})
	case agent.ChildEnded:
		h.childEnded(b)
	case agent.CallDecided:
		h.show.keys[b.Key] = b.Proposal.Call.ID
		h.refused(b)
	case agent.SessionOpened:
		kid.began = e.Time
	}
}

// running reports what goes on in the background: commands, and all else.
func (h *Host) running() (jobs, others bool) {
	others = len(h.show.unread) > 0
	for _, t := range h.show.tasks {
		if t.background && t.job {
			jobs = true
		} else if t.background {
			others = true
		}
	}
	return jobs, others
}

package sdk

import (
	"slices"
	"time"

	"dure/agent"
)

// hookRun is a hook that runs.
type hookRun struct {
	started hookStarted
	since   time.Time
}

type hookStarted struct {
	head
	ID    string `json:"hook_id"`
	Name  string `json:"hook_name"`
	Event string `json:"hook_event"`
}

// hookTold is what a hook has to say, while it runs and when it is over.
type hookTold struct {
	head
	ID      string `json:"hook_id"`
	Name    string `json:"hook_name"`
	Event   string `json:"hook_event"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	Output  string `json:"output"`
	Exit    *int   `json:"exit_code,omitempty"`
	Outcome string `json:"outcome,omitempty"` // "" = it runs
}

// tellsHooks reports whether the host is told of hooks of an event. What they do at the
// beginning is shown to every host.
func (h *Host) tellsHooks(event string) bool {
	return h.c.Hooks || slices.Contains([]string{"SessionStart", "Setup"}, event)
}

// hooked shows what hooks do.
func (h *Host) hooked(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.HookStarted:
		if !h.tellsHooks(b.Event) {
			break
		}
		m := hookStarted{h.head("system", "hook_started", ""), b.Run, b.Event + ":" + b.Hook, b.Event}
		h.out.put(m)
		h.show.hooks[b.Run] = hookRun{m, e.Time}
		h.beating()
	case agent.HookRan:
		delete(h.show.hooks, b.Run)
		h.beating()
		if !h.tellsHooks(b.Event) {
			break
		}
		r := hookTold{head: h.head("system", "hook_response", ""), ID: b.Run, Name: b.Event + ":" + b.Hook, Event: b.Event, Exit: b.Exit, Outcome: "success"}
		switch b.Outcome {
		case agent.HookFailed, agent.HookTimedOut, agent.HookBlocked:
			r.Outcome, r.Stderr = "error", b.Reason
		case agent.HookCancelled:
			r.Outcome = "cancelled"
		default:
			r.Stdout = b.Context
		}
		if r.Output = r.Stdout; r.Output == "" {
			r.Output = r.Stderr
		}
		h.out.put(r)
	}
}

// hooksRun tells of the hooks that have run for long. What they print is known when they are
// over.
func (h *Host) hooksRun(now time.Time) {
	for _, r := range h.show.hooks {
		if now.Sub(r.since) >= beatEvery {
			h.out.put(hookTold{head: h.head("system", "hook_progress", ""), ID: r.started.ID, Name: r.started.Name, Event: r.started.Event})
		}
	}
}

package run

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// maxGoOn is how often in a row hooks may make a turn go on that is done, unless the
// environment says otherwise.
const maxGoOn = 8

// goOnCap is what the environment says of that; 0 = as often as they like.
func goOnCap(getenv func(string) string) int {
	n, err := strconv.Atoi(cmp.Or(getenv("DURE_STOP_HOOK_BLOCK_CAP"), getenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP")))
	if err != nil || n < 0 {
		return maxGoOn
	}
	return n
}

// idleAfter is how long a session waits for its user before hooks are told.
const idleAfter = time.Minute

// idle tells the hooks that nobody says anything. The end of a turn may be told when the
// next one has begun: while a step runs, nobody is waited for.
type idle struct {
	timer *time.Timer
	steps int // that run
}

func (i *idle) stop() {
	if i.timer != nil {
		i.timer.Stop()
	}
}

// moments are those of a session at which hooks run.
func (h *Session) moments() plug.Hooks {
	return plug.Hooks{
		TurnHooks: plug.TurnHooks{Asking: h.asking, After: h.after, Batch: h.batch, Denied: h.denied, Stopping: h.stopping, Step: h.step, Showing: h.showing, Veils: h.veils},
		Opened:    h.opened, Speaks: h.speaks, Heard: h.input, Screens: h.screens,
		Switching: h.switching, Switched: h.switched, Ended: h.ended, Closing: h.closing,
		Added: h.added, Compacting: h.compacting, Compacted: h.compacted,
		Rewound: func(past []agent.Message) { h.noted(lastTasks(past)) },
	}
}

// opened tells the hooks that the session begins, or its conversation anew.
func (h *Session) opened(ctx context.Context, how string) (words, origin string) {
	if how == "startup" && begunAnew(h.b) {
		how = "clear"
	}
	m := hooks.Moment{Event: hooks.SessionStart, Match: how, Fields: map[string]any{"source": how, "model": h.b.Model(), "session_title": h.b.Stored.Title}}
	if h.child {
		if how == "compact" {
			return "", ""
		}
		m = hooks.Moment{Event: hooks.SubagentStart, Match: h.kind, Fields: map[string]any{"agent_id": h.b.ID, "agent_type": h.kind}}
	}
	h.begin()
	if how != "compact" {
		h.setUp(ctx)
	}
	if was := h.b.Stored.Workdir; how == "resume" && was != "" && was != h.b.Workdir && !h.child {
		h.moved(ctx, was)
	}
	if how != "compact" {
		h.widened()
	}
	if !h.set.Has(m.Event) {
		return "", ""
	}
	if !h.child {
		m.EnvFile = h.envFile()
	}
	out := h.set.Fire(ctx, m)
	h.readEnv()
	h.took(out)
	if len(out.First) > 0 && !h.b.Open.Approver && how != "compact" {
		return h.masked(out.First[len(out.First)-1]), by(out)
	}
	return "", ""
}

// widened tells the hooks of folders that somebody has added to the workspace.
func (h *Session) widened() {
	if h.child {
		return
	}
	for _, dir := range h.b.Open.Added {
		h.tell(hooks.Moment{Event: hooks.DirectoryAdded, Match: "slash_command", Fields: map[string]any{"directory": dir, "source": "slash_command"}})
	}
}

// setUp tells the hooks that a person wants the place to be made ready.
func (h *Session) setUp(ctx context.Context) {
	if why := h.b.Open.Setup; why != "" && !h.child && h.set.Has(hooks.Setup) {
		h.set.Fire(ctx, hooks.Moment{Event: hooks.Setup, Match: why, EnvFile: h.envFile(), Fields: map[string]any{"trigger": why}})
		h.readEnv()
	}
}

// veils reports whether hooks look at what the model says before people do.
func (h *Session) veils() bool { return !h.child && h.set.Has(hooks.MessageDisplay) }

// showing asks the hooks what people are to see of an answer. They are told all of it at
// once.
func (h *Session) showing(ctx context.Context, a agent.ModelAnswered) *string {
	if !h.veils() {
		return nil
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.MessageDisplay, Fields: map[string]any{
		"turn_id": a.Turn, "message_id": fmt.Sprintf("%s-%d", a.Turn, a.Step), "index": 0, "final": true, "delta": a.Message.Text(),
	}})
	if out.Show == nil {
		return nil
	}
	shown := h.masked(*out.Show)
	return &shown
}

// moved tells the hooks that the session goes on in another folder than before.
func (h *Session) moved(ctx context.Context, from string) {
	if !h.set.Has(hooks.CwdChanged) {
		return
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.CwdChanged, EnvFile: h.envFile(), Fields: map[string]any{"old_cwd": from, "new_cwd": h.b.Workdir}})
	h.readEnv()
	h.took(out)
}

// speaks reports whether hooks may say the first words of the session: where a program is
// alone with it.
func (h *Session) speaks() bool {
	return !h.child && !h.b.Open.Approver && h.set.Has(hooks.SessionStart)
}

// begin starts what looks at the disk for hooks, once.
func (h *Session) begin() {
	h.changes.start(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch == nil && !h.closed && !h.child {
		h.watch = newWatch(h)
		h.watch.files(h.all)
	}
}

// maxTitle is how much of a title counts that hooks give a session, in bytes.
const maxTitle = 200

// took takes over what hooks say of the session.
func (h *Session) took(out hooks.Outcome) {
	title := strings.Join(strings.Fields(h.masked(out.Title)), " ")
	if title = strings.ToValidUTF8(title[:min(len(title), maxTitle)], ""); title != "" && title != h.b.Stored.Title {
		if err := h.b.Record(agent.SettingsChanged{Title: title, By: by(out)}); err != nil {
			h.c.Logger.Warn("naming a session for a hook", "session", h.b.ID, "error", err)
		}
	}
	if out.Reload {
		h.Reread()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if out.Watch != nil && h.watch != nil {
		h.watch.also(out.Watch)
	}
}

// screens reports whether hooks look at input. Once they do, that stays so: what waits in
// the queue is let through by nobody else.
func (h *Session) screens() bool {
	if h.set.Has(hooks.UserPromptSubmit) && !h.child {
		h.heard.Store(true)
	}
	return h.heard.Load()
}

// input asks the hooks about what a person says. They may drop it, or put another text in
// its place.
func (h *Session) input(ctx context.Context, q agent.InputQueued) (string, *agent.InputDropped) {
	if q.Origin != "" || h.child || !h.set.Has(hooks.UserPromptSubmit) {
		return q.Text, nil
	}
	h.spoke(q.Input)
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.UserPromptSubmit, Fields: map[string]any{
		"prompt": q.Text, "source": "user", "session_title": h.b.Stored.Title,
	}})
	if out.Block || out.Stop {
		return "", &agent.InputDropped{Reason: h.masked(reason(out)), By: by(out)}
	}
	h.took(out)
	if len(out.First) > 0 {
		return out.First[len(out.First)-1], nil
	}
	return q.Text, nil
}

// step tells the hooks that a request is about to be made, or that its answer is dealt
// with. Before one, settings that have changed are looked at.
func (h *Session) step(ctx context.Context, number int, begins bool) {
	e := hooks.AgentIterationEnd
	h.busy(begins)
	if begins {
		e = hooks.AgentIterationStart
		if number == 1 {
			h.mu.Lock()
			h.goes = 0
			h.mu.Unlock()
		}
		h.words.clear() // another call may have the name of one of the last step
		h.changes.ask(ctx, h)
	}
	if h.set.Has(e) && ctx.Err() == nil {
		h.set.Fire(ctx, hooks.Moment{Event: e, Fields: map[string]any{"iteration": number}})
	}
}

// busy notes that a step begins or is over.
func (h *Session) busy(begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if begins {
		h.idle.stop()
		h.idle.steps++
	} else {
		h.idle.steps--
	}
}

// waits tells the hooks that nobody has said anything for long, unless a turn runs.
func (h *Session) waits() {
	h.mu.Lock()
	rests := h.idle.steps == 0
	h.mu.Unlock()
	if rests {
		h.Notify("idle_prompt", h.c.Idle())
	}
}

// stopping asks the hooks whether a turn that is done is to go on.
func (h *Session) stopping(ctx context.Context, said string) (words, origin string) {
	h.mu.Lock()
	goes := h.goes
	h.mu.Unlock()
	m := hooks.Moment{Event: hooks.Stop}
	fields := map[string]any{"stop_hook_active": goes > 0, "last_assistant_message": said}
	if h.child {
		m.Event, m.Match = hooks.SubagentStop, h.kind
		fields["agent_id"], fields["agent_type"] = h.b.ID, h.kind
		fields["agent_transcript_path"] = h.c.LogPath(h.b.ID)
	}
	m.Fields = fields
	out := h.set.Fire(ctx, m)
	if words = goingOn(out); words == "" && !out.Stop && ctx.Err() == nil && h.isMate() {
		m = hooks.Moment{Event: hooks.TeammateIdle, Fields: h.asMate(map[string]any{})}
		out = h.set.Fire(ctx, m)
		words = goingOn(out)
	}
	if out.Ran == 0 && goes == 0 {
		return "", ""
	}
	words = h.masked(words)
	most := goOnCap(h.c.Getenv)
	h.mu.Lock()
	if words == "" {
		h.goes = 0
	} else {
		h.goes++
	}
	capped := most > 0 && h.goes > most
	h.mu.Unlock()
	if capped {
		words = ""
		h.note("warn", "hooks have made the turn go on as often as they may; it ends")
	}
	origin = by(out)
	if origin == originOfHooks {
		origin += string(m.Event)
	}
	return words, origin
}

// goingOn is what hooks want a turn to go on with that would end; "" = it may end.
func goingOn(out hooks.Outcome) string {
	switch {
	case out.Stop:
		return ""
	case out.Block:
		return reason(out)
	}
	return strings.Join(out.Context, "\n")
}

// isMate reports whether the session is an agent that works beside others, for nobody who
// waits for it.
func (h *Session) isMate() bool { return h.child && h.b.Child.Mate != "" }

// asMate adds who such an agent is to what hooks are told.
func (h *Session) asMate(fields map[string]any) map[string]any {
	if h.isMate() {
		fields["teammate_name"], fields["team_name"] = h.b.Child.Mate, "session-"+h.top[:min(len(h.top), 8)]
	}
	return fields
}

// stopErrors are the words of the ecosystem for the failures of models.
var stopErrors = map[agent.FailureClass]string{
	agent.FailRate: "rate_limit", agent.FailServer: "server_error", agent.FailTimeout: "server_error", agent.FailDown: "server_error",
	agent.FailContext: "invalid_request", agent.FailInvalid: "invalid_request", agent.FailAuth: "authentication_failed",
	agent.FailQuota: "billing_error", agent.FailNotFound: "model_not_found",
}

// ended tells the hooks of a turn that has failed, and waits for somebody to say
// something.
func (h *Session) ended(ctx context.Context, end agent.TurnEnded) {
	if end.Reason == agent.EndFailed && h.set.Has(hooks.StopFailure) {
		what := stopErrors[end.Fail]
		if what == "" {
			what = "unknown"
		}
		ctx, done := outlasting(ctx, afterEnd)
		defer done()
		h.set.Fire(ctx, hooks.Moment{Event: hooks.StopFailure, Match: what, Fields: map[string]any{
			"error": what, "error_details": end.Error, "last_assistant_message": end.Error,
		}})
	}
	if !h.b.Open.Approver || h.child {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle.stop()
	if !h.closed {
		h.idle.timer = time.AfterFunc(idleAfter, h.waits)
	}
}

// afterEnd is how long hooks may still run that were asked before a session ended.
const afterEnd = 1500 * time.Millisecond

// outlasting returns a context that is done d after ctx is.
func outlasting(ctx context.Context, d time.Duration) (context.Context, func()) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			end()
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); end() }
}

// Notify tells the hooks what people are told, and what kind of message that is.
func (h *Session) Notify(kind, message string) {
	if h != nil {
		h.tell(hooks.Moment{Event: hooks.Notification, Match: kind, Fields: map[string]any{
			"notification_type": kind, "message": message, "title": "dure",
		}})
	}
}

// closing tells the hooks that the session ends. They have a short time together.
func (h *Session) closing(ctx context.Context) {
	if h.child {
		return
	}
	h.mu.Lock()
	why := h.why
	h.mu.Unlock()
	switch {
	case why != "":
	case h.b.Open.Approver:
		why = "prompt_input_exit"
	default:
		why = "other"
	}
	h.set.Fire(ctx, hooks.Moment{Event: hooks.SessionEnd, Match: why, Fields: map[string]any{"reason": why}})
}

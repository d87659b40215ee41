package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory/instruct"
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
func (h *hooked) moments() plug.Hooks {
	return plug.Hooks{
		TurnHooks: plug.TurnHooks{Asking: h.asking, After: h.after, Batch: h.batch, Denied: h.denied, Stopping: h.stopping, Step: h.step, Showing: h.showing, Veils: h.veils},
		Opened:    h.opened, Speaks: h.speaks, Heard: h.input, Screens: h.screens,
		Switching: h.switching, Switched: h.switched, Ended: h.ended, Closing: h.closing,
		Added: h.added, Compacting: h.compacting, Compacted: h.compacted,
		Rewound: func(past []agent.Message) { h.noted(lastTasks(past)) },
	}
}

// opened tells the hooks that the session begins, or its conversation anew.
func (h *hooked) opened(ctx context.Context, how string) (words, origin string) {
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
	if was := h.b.Stored.Workdir; how == "resume" && was != "" && was != h.workdir && !h.child {
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
func (h *hooked) widened() {
	if h.child {
		return
	}
	for _, dir := range h.b.Open.Added {
		h.tell(hooks.Moment{Event: hooks.DirectoryAdded, Match: "slash_command", Fields: map[string]any{"directory": dir, "source": "slash_command"}})
	}
}

// setUp tells the hooks that a person wants the place to be made ready.
func (h *hooked) setUp(ctx context.Context) {
	if why := h.b.Open.Setup; why != "" && !h.child && h.set.Has(hooks.Setup) {
		h.set.Fire(ctx, hooks.Moment{Event: hooks.Setup, Match: why, EnvFile: h.envFile(), Fields: map[string]any{"trigger": why}})
		h.readEnv()
	}
}

// veils reports whether hooks look at what the model says before people do.
func (h *hooked) veils() bool { return !h.child && h.set.Has(hooks.MessageDisplay) }

// showing asks the hooks what people are to see of an answer. They are told all of it at
// once.
func (h *hooked) showing(ctx context.Context, a agent.ModelAnswered) *string {
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
func (h *hooked) moved(ctx context.Context, from string) {
	if !h.set.Has(hooks.CwdChanged) {
		return
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.CwdChanged, EnvFile: h.envFile(), Fields: map[string]any{"old_cwd": from, "new_cwd": h.workdir}})
	h.readEnv()
	h.took(out)
}

// speaks reports whether hooks may say the first words of the session: where a program is
// alone with it.
func (h *hooked) speaks() bool {
	return !h.child && !h.b.Open.Approver && h.set.Has(hooks.SessionStart)
}

// begin starts what looks at the disk for hooks, once.
func (h *hooked) begin() {
	h.changes.start(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watch == nil && !h.closed && !h.child {
		h.watch = newWatch(h)
		h.watch.files(h.all)
	}
}

// took takes over what hooks say of the session.
func (h *hooked) took(out hooks.Outcome) {
	if title := oneLine(h.masked(out.Title), 200); title != "" && title != h.b.Stored.Title {
		if err := h.b.Record(agent.SettingsChanged{Title: title, By: by(out)}); err != nil {
			h.app.opts.Logger.Warn("naming a session for a hook", "session", h.b.ID, "error", err)
		}
	}
	if out.Reload && h.reread != nil {
		h.reread()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if out.Watch != nil && h.watch != nil {
		h.watch.also(out.Watch)
	}
}

// screens reports whether hooks look at input. Once they do, that stays so: what waits in
// the queue is let through by nobody else.
func (h *hooked) screens() bool {
	if h.set.Has(hooks.UserPromptSubmit) && !h.child {
		h.heard.Store(true)
	}
	return h.heard.Load()
}

// input asks the hooks about what a person says. They may drop it, or put another text in
// its place.
func (h *hooked) input(ctx context.Context, q agent.InputQueued) (string, *agent.InputDropped) {
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
func (h *hooked) step(ctx context.Context, number int, begins bool) {
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
		h.changes.look(ctx, h)
	}
	if h.set.Has(e) && ctx.Err() == nil {
		h.set.Fire(ctx, hooks.Moment{Event: e, Fields: map[string]any{"iteration": number}})
	}
}

// busy notes that a step begins or is over.
func (h *hooked) busy(begins bool) {
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
func (h *hooked) waits() {
	h.mu.Lock()
	rests := h.idle.steps == 0
	h.mu.Unlock()
	if rests {
		h.tell(notification("idle_prompt", text.For(h.app.cfg.Language).Say(text.HookIdle)))
	}
}

// stopping asks the hooks whether a turn that is done is to go on.
func (h *hooked) stopping(ctx context.Context, said string) (words, origin string) {
	h.mu.Lock()
	goes := h.goes
	h.mu.Unlock()
	m := hooks.Moment{Event: hooks.Stop}
	fields := map[string]any{"stop_hook_active": goes > 0, "last_assistant_message": said}
	if h.child {
		m.Event, m.Match = hooks.SubagentStop, h.kind
		fields["agent_id"], fields["agent_type"] = h.b.ID, h.kind
		if h.app.store != nil {
			fields["agent_transcript_path"] = h.app.store.LogPath(h.b.ID)
		}
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
	most := goOnCap(getenv(h.app.opts.Environ))
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
	if origin == hookOrigin {
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
func (h *hooked) isMate() bool { return h.child && h.b.Child.Mate != "" }

// asMate adds who such an agent is to what hooks are told.
func (h *hooked) asMate(fields map[string]any) map[string]any {
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
func (h *hooked) ended(ctx context.Context, end agent.TurnEnded) {
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

// notification is the moment at which people are told something.
func notification(kind, message string) hooks.Moment {
	return hooks.Moment{Event: hooks.Notification, Match: kind, Fields: map[string]any{
		"notification_type": kind, "message": message, "title": "dure",
	}}
}

// closing tells the hooks that the session ends. They have a short time together.
func (h *hooked) closing(ctx context.Context) {
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

// trigger is what hooks are told of the reason for a compaction.
func trigger(t string) string {
	if t == plug.TriggerManual {
		return "manual"
	}
	return "auto"
}

// compacting asks the hooks before the conversation is shortened.
func (h *hooked) compacting(ctx context.Context, t, focus string) (more string, err error) {
	fields := map[string]any{"trigger": trigger(t), "custom_instructions": nil}
	if t == plug.TriggerManual {
		fields["custom_instructions"] = focus
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.PreCompact, Match: trigger(t), Fields: fields})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if out.Block || out.Stop {
		return "", errors.New(by(out) + " forbids it: " + reason(out))
	}
	return "", nil
}

// compacted tells the hooks what came of it.
func (h *hooked) compacted(ctx context.Context, done agent.ContextCompacted) {
	var head []string
	for _, m := range done.Head {
		head = append(head, m.Text())
	}
	h.set.Fire(ctx, hooks.Moment{Event: hooks.PostCompact, Match: trigger(done.Trigger), Fields: map[string]any{
		"trigger": trigger(done.Trigger), "compact_summary": strings.Join(head, "\n"),
	}})
}

// switchFields is what hooks are told of a change of the model.
func switchFields(from, to string) map[string]any {
	return map[string]any{"from_model": from, "to_model": to, "requested_model": to, "source": "command"}
}

// switching asks the hooks before another model is used. One that wants a person to be
// asked forbids it: whoever changes the model is that person, and is told why.
func (h *hooked) switching(ctx context.Context, from, to string) error {
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.PreModelSwitch, Match: to, Fields: switchFields(from, to)})
	switch {
	case ctx.Err() != nil: // nobody has answered
		return context.Cause(ctx)
	case !out.Block && !out.Stop && out.Verdict != agent.Deny && out.Verdict != agent.AskUser:
		return nil
	}
	return hookProblem(out)
}

// hookProblem is something that a hook forbids.
func hookProblem(out hooks.Outcome) error {
	return &agent.Problem{
		Code: agent.ProblemHook, Message: by(out) + " forbids it: " + reason(out), Fix: "see the hooks with: dure hooks list",
		Args: map[string]string{"hook": strings.TrimPrefix(by(out), hookOrigin), "reason": reason(out)},
	}
}

func (h *hooked) switched(ctx context.Context, from, to string) {
	h.set.Fire(ctx, hooks.Moment{Event: hooks.PostModelSwitch, Match: to, Fields: switchFields(from, to)})
}

// aware notes what a person has said last. Hooks add nothing to the conversation here.
func (h *hooked) aware(_ context.Context, at plug.Moment) []agent.ContextAdded {
	for _, in := range slices.Backward(at.Fresh) {
		if in.Origin == "" && in.Input != "" {
			h.spoke(in.Input)
			break
		}
	}
	return nil
}

// added tells the hooks of instruction files that have entered the conversation.
func (h *hooked) added(all []agent.ContextAdded) {
	if h.set.Has(hooks.InstructionsLoaded) || h.set.Has(hooks.ConfigChange) {
		h.instructed(all)
	}
}

// instructed tells the hooks of instruction files that they have not been told of, and of
// those that say something else now.
func (h *hooked) instructed(all []agent.ContextAdded) {
	for _, c := range all {
		why := map[string]string{instruct.FromMemory: "session_start", instruct.FromRules: "path_glob_match"}[c.Source]
		if why == "" || c.Text == "" {
			continue
		}
		for _, path := range c.From {
			look := lookAt(path)
			h.mu.Lock()
			was, known := h.told[path]
			h.told[path] = look
			h.mu.Unlock()
			whose := h.memoryType(path)
			switch {
			case !known:
				h.tell(hooks.Moment{Event: hooks.InstructionsLoaded, Match: why, Fields: map[string]any{
					"file_path": path, "memory_type": whose, "load_reason": why,
				}})
			case was != look: // it is read already: a hook may act on that, and not forbid it
				source := map[string]string{"Managed": "policy_settings", "User": "user_settings", "Local": "local_settings"}[whose]
				if source == "" {
					source = "project_settings"
				}
				h.tell(hooks.Moment{Event: hooks.ConfigChange, Match: source, Fields: map[string]any{"source": source, "file_path": path}})
			}
		}
	}
}

// memoryType says whose an instruction file is.
func (h *hooked) memoryType(path string) string {
	below := func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return dir != "" && err == nil && filepath.IsLocal(rel)
	}
	switch home := h.app.opts.UserHome; {
	case below(h.app.cfg.Memory.Managed):
		return "Managed"
	case below(h.workdir):
		if strings.Contains(filepath.Base(path), ".local.") {
			return "Local"
		}
		return "Project"
	case below(h.app.cfg.Home), home != "" && below(filepath.Join(home, ".claude")):
		return "User"
	}
	return "Project"
}

// beforeSkill asks the hooks before a skill takes effect; an error says why it must not.
func (h *hooked) BeforeSkill(ctx context.Context, skill, arguments, how string) error {
	if h == nil || !h.set.Has(hooks.PreSkillExecute) {
		return nil
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.PreSkillExecute, Match: skill, Fields: map[string]any{
		"skill_name": skill, "skill_arguments": arguments, "source": how,
	}})
	return forbidden(ctx, out)
}

// afterSkill tells the hooks how a skill came out.
func (h *hooked) AfterSkill(ctx context.Context, skill string, ok bool, failure string) {
	if h == nil || !h.set.Has(hooks.PostSkillExecute) {
		return
	}
	h.set.Fire(ctx, hooks.Moment{Event: hooks.PostSkillExecute, Match: skill, Fields: map[string]any{
		"skill_name": skill, "success": ok, "error": failure,
	}})
}

// expanding asks the hooks before a slash command becomes a prompt; an error says why it
// must not.
func (h *hooked) expanding(ctx context.Context, kind, command, arguments, source, prompt string) error {
	if h == nil || !h.set.Has(hooks.UserPromptExpansion) {
		return nil
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.UserPromptExpansion, Match: command, Fields: map[string]any{
		"expansion_type": kind, "command_name": command, "command_args": arguments, "command_source": source, "prompt": prompt,
	}})
	return forbidden(ctx, out)
}

// forbidden says why something must not happen that hooks were asked about: they forbid
// it, or nobody has waited for their answer.
func forbidden(ctx context.Context, out hooks.Outcome) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case out.Block, out.Stop:
		return hookProblem(out)
	}
	return nil
}

// sorted returns the keys of a map in their order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

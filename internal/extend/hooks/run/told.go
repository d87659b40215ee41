package run

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// trigger is what hooks are told of the reason for a compaction.
func trigger(t string) string {
	if t == plug.TriggerManual {
		return "manual"
	}
	return "auto"
}

// compacting asks the hooks before the conversation is shortened.
func (h *Session) compacting(ctx context.Context, t, focus string) (more string, err error) {
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
func (h *Session) compacted(ctx context.Context, done agent.ContextCompacted) {
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
func (h *Session) switching(ctx context.Context, from, to string) error {
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.PreModelSwitch, Match: to, Fields: switchFields(from, to)})
	switch {
	case ctx.Err() != nil: // nobody has answered
		return context.Cause(ctx)
	case !out.Block && !out.Stop && out.Verdict != agent.Deny && out.Verdict != agent.AskUser:
		return nil
	}
	return forbids(out)
}

// forbids is something that a hook forbids.
func forbids(out hooks.Outcome) error {
	return &agent.Problem{
		Code: agent.ProblemHook, Message: by(out) + " forbids it: " + reason(out), Fix: "see the hooks with: dure hooks list",
		Args: map[string]string{"hook": strings.TrimPrefix(by(out), originOfHooks), "reason": reason(out)},
	}
}

func (h *Session) switched(ctx context.Context, from, to string) {
	h.set.Fire(ctx, hooks.Moment{Event: hooks.PostModelSwitch, Match: to, Fields: switchFields(from, to)})
}

// aware notes what a person has said last. Hooks add nothing to the conversation here.
func (h *Session) aware(_ context.Context, at plug.Moment) []agent.ContextAdded {
	for _, in := range slices.Backward(at.Fresh) {
		if in.Origin == "" && in.Input != "" {
			h.spoke(in.Input)
			break
		}
	}
	return nil
}

// added tells the hooks of instruction files that have entered the conversation.
func (h *Session) added(all []agent.ContextAdded) {
	if h.set.Has(hooks.InstructionsLoaded) || h.set.Has(hooks.ConfigChange) {
		h.instructed(all)
	}
}

// instructed tells the hooks of instruction files that they have not been told of, and of
// those that say something else now.
func (h *Session) instructed(all []agent.ContextAdded) {
	for _, c := range all {
		why := h.c.Loads[c.Source]
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
				h.tell(configChange(settingsOf(strings.ToLower(whose)), path))
			}
		}
	}
}

// memoryType says whose an instruction file is.
func (h *Session) memoryType(path string) string {
	below := func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return dir != "" && err == nil && filepath.IsLocal(rel)
	}
	switch home := h.c.UserHome; {
	case below(h.c.Managed):
		return "Managed"
	case below(h.b.Workdir):
		if strings.Contains(filepath.Base(path), ".local.") {
			return "Local"
		}
		return "Project"
	case below(h.c.Home), home != "" && below(filepath.Join(home, ".claude")):
		return "User"
	}
	return "Project"
}

// BeforeSkill asks the hooks before a skill takes effect; an error says why it must not.
func (h *Session) BeforeSkill(ctx context.Context, skill, arguments, how string) error {
	if h == nil || !h.set.Has(hooks.PreSkillExecute) {
		return nil
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.PreSkillExecute, Match: skill, Fields: map[string]any{
		"skill_name": skill, "skill_arguments": arguments, "source": how,
	}})
	return forbidden(ctx, out)
}

// AfterSkill tells the hooks how a skill came out.
func (h *Session) AfterSkill(ctx context.Context, skill string, ok bool, failure string) {
	if h == nil || !h.set.Has(hooks.PostSkillExecute) {
		return
	}
	h.set.Fire(ctx, hooks.Moment{Event: hooks.PostSkillExecute, Match: skill, Fields: map[string]any{
		"skill_name": skill, "success": ok, "error": failure,
	}})
}

// Expanding asks the hooks before a slash command becomes a prompt; an error says why it
// must not.
func (h *Session) Expanding(ctx context.Context, kind, command, arguments, source, prompt string) error {
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
		return forbids(out)
	}
	return nil
}

// MakeTree has hooks make a folder for an agent, if there are any for it.
func (h *Session) MakeTree(ctx context.Context, name string) (path string, used bool, err error) {
	if h == nil || !h.set.Has(hooks.WorktreeCreate) {
		return "", false, nil
	}
	out := h.set.Fire(ctx, hooks.Moment{Event: hooks.WorktreeCreate, Fields: map[string]any{"name": name}})
	switch {
	case out.Block || out.Stop:
		return "", true, errors.New(reason(out))
	case out.Path == "":
		return "", true, errors.New("no hook has said where it is")
	}
	return out.Path, true, nil
}

// TreeGone tells hooks of a work tree that was removed.
func (h *Session) TreeGone(ctx context.Context, path string) {
	if h != nil && h.set.Has(hooks.WorktreeRemove) {
		h.set.Fire(ctx, hooks.Moment{Event: hooks.WorktreeRemove, Fields: map[string]any{"worktree_path": path}})
	}
}

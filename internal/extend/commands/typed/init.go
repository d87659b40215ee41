package typed

import (
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/commands"
)

// begins is the prompt of /init: what a survey has found, and what the model is to write.
// A file that is there is kept from being replaced unasked, as long as the turn goes on.
func (t *Session) begins(ctx context.Context, focus string) (string, error) {
	path, exists, err := t.Instructions()
	if err != nil {
		return "", err
	}
	found, err := t.Survey(ctx)
	if err != nil {
		return "", err
	}
	if t.x.cfg.Top(t.workdir) != "" {
		const newest = "-10"
		if log, err := t.git(ctx, commandOrigin+"init", "log", "--oneline", newest); err == nil {
			found += "Newest commits:\n" + indented(log)
		}
	}
	if exists {
		t.mu.Lock()
		t.kept = path
		t.mu.Unlock()
	}
	return commands.Init(path, exists, focus, found), nil
}

// indented is a text of somebody else, whose lines cannot be taken for ours.
func indented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("  " + clip(line, 200) + "\n")
	}
	return b.String()
}

// keeps asks about calls that would change the instructions which were there when /init
// was typed.
func (t *Session) keeps(p agent.Proposal) (agent.Decision, bool) {
	t.mu.Lock()
	kept := t.kept
	t.mu.Unlock()
	if kept == "" || p.Origin != "" {
		return agent.Decision{}, false
	}
	same := func(path string) bool {
		_, resolved, err := t.Workspace.Resolve(path)
		_, own, oerr := t.Workspace.Resolve(kept)
		return err == nil && oerr == nil && t.Workspace.Key(resolved) == t.Workspace.Key(own)
	}
	if !slices.ContainsFunc(p.Effects.Writes, same) {
		return agent.Decision{}, false
	}
	return agent.Decision{Verdict: agent.AskUser, By: commandOrigin + "init", Reason: "/init changes instructions that were there before only when you agree"}, true
}

// over forgets what the turn of /init has kept.
func (t *Session) over() {
	t.mu.Lock()
	t.kept = ""
	t.mu.Unlock()
}

// clip is a text as one line of at most n bytes.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}

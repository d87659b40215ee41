// Package typed makes prompts of the commands that are typed in sessions, and says what can be
// typed. It starts no goroutines.
package typed

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/commands"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
	"dure/internal/safety/workspace"
)

// The tool by which the texts of commands run theirs, and how long each may take.
const (
	shellTool  = "bash__exec"
	inlineTime = 120_000 // milliseconds
)

// commandOrigin begins the origin of the calls that commands from files make.
const commandOrigin = "command:"

// Services is what the commands of one session need of others. All functions are required.
type Services struct {
	Workspace *workspace.Workspace
	Find      func(program string) string // of programs that are started without asking

	// Decide decides about a call as the policy of the session does, and Allowing returns what
	// decides by the rules of a command alone; nil = they do not count.
	Decide   func(agent.Proposal) agent.Decision
	Allowing func(rules []string) (func(agent.Proposal) agent.Decision, error)

	// Expanding asks hooks whether a command may become a prompt.
	Expanding func(ctx context.Context, kind, command, arguments, source, typed string) error

	// Command puts in force what a command asks for beside its text, and returns what the model
	// is to read; Skill is what it would read of a skill; Note warns people.
	Command func(ctx context.Context, c commands.Command, text, arguments, input string) (string, error)
	Skill   func(ctx context.Context, name, arguments string) (string, error)
	Note    func(text string)

	// Prompted reports whether an input may name a prompt of a server, and Prompt makes a prompt
	// of it; not ok = it names none.
	Prompted func(text string) bool
	Prompt   func(ctx context.Context, q agent.InputQueued) (text string, drop *agent.InputDropped, ok bool)

	// Instructions is the file that /init writes, and Survey what kind of project this is.
	Instructions func() (path string, exists bool, err error)
	Survey       func(context.Context) (string, error)
}

// Session makes prompts of the commands that are typed in one session. It is safe for
// concurrent use.
type Session struct {
	Services
	x       *Extension
	b       plug.Session
	workdir string

	mu       sync.Mutex
	allowed  map[string]allowance // what the commands that are made ready allow, by origin; guarded by mu
	verbatim string               // the newest input whose text names nothing that is to be read; guarded by mu
	draft    *draft               // of a commit, as it was shown last; guarded by mu
	kept     string               // the instructions that /init may change only when somebody agrees; guarded by mu
}

// allowance is what a command allows the commands in its text.
type allowance struct {
	decide func(agent.Proposal) agent.Decision // nil = nothing
	trust.Lender
}

// Session returns the commands of a session in a folder.
func (x *Extension) Session(b plug.Session, workdir string, s Services) *Session {
	return &Session{Services: s, x: x, b: b, workdir: workdir, allowed: map[string]allowance{}}
}

// Points are what typed commands add to a session: behind the hooks, which see what was typed.
func (t *Session) Points() plug.Points {
	if t.b.Child != nil || t.b.Open.Edit {
		return plug.Points{} // what a model writes to a child is text
	}
	t.x.mu.Lock()
	t.x.open[t.b.ID] = t
	t.x.mu.Unlock()
	return plug.Points{
		Gate: plug.Gate{
			Commands: []plug.Stage{{Name: "command.allowed", Decide: t.allows}},
			Last:     []plug.Stage{{Name: "command.unasked", Decide: unasked}},
		},
		Hooks: plug.Hooks{
			Heard:   t.heard,
			Screens: func() bool { return false },
			Takes: func(q agent.InputQueued) bool {
				_, ok := t.prompts(q.Text)
				return q.Origin == "" && (ok || len(t.stack(q.Text)) > 0 || t.Prompted(q.Text))
			},
			Over: func(agent.TurnEnded, string) { t.over() },
		},
		Close: func() {
			t.x.mu.Lock()
			defer t.x.mu.Unlock()
			delete(t.x.open, t.b.ID)
		},
	}
}

// stack returns the commands of files that an input names.
func (t *Session) stack(text string) []commands.Command {
	if !strings.HasPrefix(text, "/") {
		return nil
	}
	stack, _ := commands.Stack(text, t.command())
	return stack
}

// command returns what finds the commands of files by name. Of two of a name the skill
// counts.
func (t *Session) command() func(name string) (commands.Command, bool) {
	find, taken := commands.Lookup(t.x.Files(t.workdir)), t.x.cfg.Skills(t.workdir)
	return func(name string) (commands.Command, bool) {
		c, ok := find(name)
		if ok && slices.ContainsFunc(taken, func(s query.CommandInfo) bool { return strings.EqualFold(s.Name, c.Name) }) {
			return commands.Command{}, false
		}
		return c, ok
	}
}

// heard makes a prompt of an input that names commands of files.
func (t *Session) heard(ctx context.Context, q agent.InputQueued) (string, *agent.InputDropped) {
	if q.Origin != "" || !strings.HasPrefix(q.Text, "/") {
		return q.Text, nil
	}
	if name, ok := t.prompts(q.Text); ok {
		_, arguments, _ := commands.Split(q.Text)
		text, err := map[string]func(context.Context, string) (string, error){"review": t.review, "init": t.begins}[name](ctx, arguments)
		if err != nil {
			return "", &agent.InputDropped{Reason: "/" + name + ": " + err.Error(), By: commandOrigin + name}
		}
		t.aloud(q.Input)
		return q.Text + "\n\n" + text, nil
	}
	stack, arguments := commands.Stack(q.Text, t.command())
	if len(stack) == 0 {
		if text, drop, ok := t.Prompt(ctx, q); ok {
			if drop == nil {
				t.aloud(q.Input) // what a server says names nothing that is to be read
			}
			return text, drop
		}
		return q.Text, nil
	}
	for _, c := range stack { // nothing of any of them runs before all may
		if off := c.Info().Off; off != "" {
			return "", commands.Without(c, errors.New(off))
		}
		if err := t.Expanding(ctx, "slash_command", c.Name, arguments, string(c.Place.Scope), q.Text); err != nil {
			return "", commands.Without(c, err)
		}
	}
	var texts []string
	for _, c := range stack {
		text, err := t.prepare(ctx, c, arguments)
		if err != nil {
			return "", commands.Without(c, err)
		}
		if c.Powerless {
			t.Note("the command " + c.Name + ": " + c.Warnings[0].Message + "; " + c.Warnings[0].Fix)
		}
		if text, err = t.Command(ctx, c, text, arguments, q.Input); err != nil {
			return "", commands.Without(c, err)
		}
		if c.Fork { // what a model has answered names nothing that is to be read
			t.aloud(q.Input)
		}
		texts = append(texts, text)
	}
	return commands.Joined(q.Text, stack, texts), nil
}

// aloud has an input read as it is: what it names is not read.
func (t *Session) aloud(input string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.verbatim = input
}

// prompts returns the built-in command of which an input makes a prompt.
func (t *Session) prompts(text string) (string, bool) {
	name, _, ok := commands.Split(text)
	if !ok {
		return "", false
	}
	b, ok := commands.Find(name)
	return b.Name, ok && b.Prompt
}

// prepare makes the text of one command ready.
func (t *Session) prepare(ctx context.Context, c commands.Command, arguments string) (string, error) {
	var decide func(agent.Proposal) agent.Decision
	if len(c.Allowed) > 0 {
		var err error
		if decide, err = t.Allowing(c.Allowed); err != nil {
			return "", errors.New("allowed-tools: " + err.Error())
		}
	}
	from, _ := t.x.cfg.Lender(t.workdir, c.Name, c.Path)
	t.allow(c.Source(), allowance{decide, from})
	defer t.allow(c.Source(), allowance{})
	vars := map[string]string{"CLAUDE_SESSION_ID": t.b.ID, "CLAUDE_PROJECT_DIR": t.workdir, "DURE_SESSION_ID": t.b.ID, "DURE_PROJECT_DIR": t.workdir}
	return c.Prepare(ctx, commands.Preparing{Arguments: arguments, Vars: vars, Run: func(ctx context.Context, line string) (string, error) {
		if c.Powerless {
			return "", errors.New("the file of the command came or changed after its folder was trusted; look at it, then: dure trust")
		}
		input, err := json.Marshal(map[string]any{"command": line, "timeout": inlineTime})
		if err != nil {
			return "", err
		}
		res, err := t.b.Reach.Invoke(ctx, agent.Invocation{Origin: c.Source(), Tool: shellTool, Input: input})
		switch {
		case err != nil:
			return "", err
		case res.Failed() && res.Error != nil:
			return "", errors.New(res.Error.Message)
		case res.Failed():
			return "", errors.New(clip(res.Unfenced(), 400))
		case exited(res) != 0:
			return "", errors.New(clip(res.Unfenced(), 400))
		}
		return res.Unfenced(), nil
	}})
}

// exited is the code that a command ended with; 0 = with success, or it is not known.
func exited(r agent.Result) int {
	var out struct {
		Code int `json:"exitCode"`
	}
	if len(r.Output) == 0 || json.Unmarshal(r.Output, &out) != nil {
		return 0
	}
	return out.Code
}

func (t *Session) allow(origin string, a allowance) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.decide == nil {
		delete(t.allowed, origin)
		return
	}
	t.allowed[origin] = a
}

// allows is the word of a command's own rules on the calls of its text. It stands before
// the last word of the policy, whose rules that ask or deny are stronger.
func (t *Session) allows(_ context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
	if d, ok := t.keeps(p); ok && soFar.Verdict != agent.Deny {
		return d, nil
	}
	if strings.HasPrefix(p.Origin, confirmed) && soFar.Verdict == agent.Pass {
		return agent.Decision{Verdict: agent.Allow, By: "user", Reason: "the user has seen it and agreed"}, nil
	}
	if !strings.HasPrefix(p.Origin, commandOrigin) || soFar.Verdict != agent.Pass {
		return agent.Decision{}, nil
	}
	t.mu.Lock()
	a := t.allowed[p.Origin]
	t.mu.Unlock()
	if a.decide == nil || t.Decide(p).Verdict == agent.Allow {
		return agent.Decision{}, nil
	}
	if d := a.decide(p); d.Verdict == agent.Allow {
		if file := a.Unproven(p, t.workdir); file != "" {
			return trust.Asks(trust.ChangedWhy(a.Name, file)), nil
		}
		const why = "allowed-tools of the command"
		said := []agent.Opinion{{Stage: p.Origin, Verdict: agent.Allow, Reason: why, Rule: d.Rule}} // who decides again needs it
		return agent.Decision{Verdict: agent.Allow, By: p.Origin, Reason: why, Rule: d.Rule, Trace: said}, nil
	}
	return agent.Decision{}, nil
}

// unasked denies what a command's text would have to ask a person about: they have
// typed a name, and do not expect a question about what stands behind it.
func unasked(_ context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
	if !strings.HasPrefix(p.Origin, commandOrigin) || soFar.Verdict == agent.Allow {
		return agent.Decision{}, nil
	}
	why := soFar.Reason
	if why == "" {
		why = "no rule allows it"
	}
	return agent.Decision{
		Verdict: agent.Deny, By: p.Origin,
		Reason: why + "; a command in a text runs only where that needs no question: allow it by a rule, or in allowed-tools",
	}, nil
}

package use

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills"
	"dure/internal/kernel/plug"
)

const (
	forkSteps  = 10 // requests of a skill that runs in a session of its own
	skillShell = "bash__exec"
	notCalled  = "[not run: the skill was not called, it is for a file that was touched]"
)

// use carries out a skill that the model has called.
func (k *Skills) use(ctx context.Context, tc agent.ToolContext, s skills.Skill, arguments string) (agent.Result, error) {
	done, err := k.start(ctx, s, starting{arguments: arguments, by: agent.SkillByModel, call: tc.ToolCallID, key: agent.CallEnvOf(ctx).Key})
	if err != nil {
		return agent.Result{}, err
	}
	text := done.Text
	if s.Fork {
		done.Text = "" // the result has it
	}
	if err := k.completed(done); err != nil {
		return agent.Result{}, err
	}
	output, _ := json.Marshal(map[string]any{"success": done.OK, "commandName": s.Name, "allowedTools": s.Allowed, "model": s.Model}) // plain values
	switch {
	case !done.OK:
		return agent.Result{}, &agent.ToolError{Code: agent.ErrTool, Message: "The skill " + s.Name + " did not come to its end: " + done.Error, Suggestion: "Go on without it, or tell the user."}
	case done.Same != "":
		text = "The skill " + s.Name + " was read before. Its text stands above and holds."
	case !s.Fork:
		text = "The instructions of the skill " + s.Name + " follow."
	}
	return agent.Result{Status: agent.StatusOK, Text: text, Output: output}, nil
}

// starting says how a skill is started.
type starting struct {
	arguments, by, call string
	key                 string // of the session that it may run in
}

// start carries a skill out, and returns what is to be recorded as its end. What goes
// wrong with it is in there; the error is about the log.
func (k *Skills) start(ctx context.Context, s skills.Skill, how starting) (done agent.SkillCompleted, err error) {
	begun := time.Now()
	done = agent.SkillCompleted{Run: "sk_" + rand.Text()[:16], Skill: s.Name}
	if k.Hooks != nil {
		if err := k.Hooks.BeforeSkill(ctx, s.Name, how.arguments, how.by); err != nil {
			done.Error = err.Error()
			return done, nil
		}
		defer func() {
			if !done.Background { // else it is over later
				k.Hooks.AfterSkill(ctx, s.Name, done.OK, done.Error)
			}
		}()
	}
	if s.Powerless {
		k.Note("the skill " + s.Name + ": " + s.Warnings()[0])
	}
	activated := k.activated(done.Run, s, how)
	if err := k.b.Record(activated); err != nil {
		return done, err
	}
	if err := k.inForce(activated, s); err != nil {
		done.Error = err.Error()
		return done, nil
	}
	text, err := k.prepare(ctx, s, how.arguments, k.runner(s), "")
	switch {
	case ctx.Err() != nil:
		return done, context.Cause(ctx)
	case err != nil:
		done.Error = err.Error()
	case s.Fork:
		k.apart(ctx, s, text, how, activated.Tools, &done)
	default:
		done.OK = true
		k.read(&done, s, text)
	}
	if !done.OK {
		k.withdraw(done.Run)
	}
	done.Millis = time.Since(begun).Milliseconds()
	return done, nil
}

func (k *Skills) activated(run string, s skills.Skill, how starting) agent.SkillActivated {
	return agent.SkillActivated{
		Run: run, Skill: s.Name, Source: sourceOf(s), By: how.by, Call: how.call, Arguments: how.arguments,
		Model: k.modelOf(s), Effort: s.Effort, Tools: s.Rules(k.vars()), Without: s.Without, Fork: s.Fork,
	}
}

func sourceOf(s skills.Skill) string {
	if s.Dir == "" {
		return ""
	}
	return s.File
}

// inForce puts what a skill allows in force for what is done in its name from now on.
func (k *Skills) inForce(a agent.SkillActivated, s skills.Skill) error {
	if s.Fork {
		return nil // it has a session of its own
	}
	k.mu.Lock()
	active := append(slices.Clone(k.active), agent.TurnSkill{SkillActivated: a})
	k.active = active
	k.uses[s.Name]++
	k.mu.Unlock()
	k.hook(a.Run, s)
	return k.lend(active)
}

// withdraw takes back what a skill allows that came to nothing.
func (k *Skills) withdraw(run string) {
	k.mu.Lock()
	k.active = slices.DeleteFunc(slices.Clone(k.active), func(t agent.TurnSkill) bool { return t.Run == run })
	active := k.active
	k.mu.Unlock()
	k.lending(active)
}

// modelOf is the model that a skill asks for; "" when it asks for none, there is no such
// model, or what a project or a plugin brings would have somebody else read the
// conversation. The user's own files name whom they like.
func (k *Skills) modelOf(s skills.Skill) string {
	if s.Model == "" {
		return ""
	}
	m, err := k.model(s.Model)
	if theirs := s.Place.Scope == frontmatter.Project || s.Place.Scope == frontmatter.Plugin; err == nil && theirs {
		err = k.cfg.MayAsk(&k.b, m.Info().ID)
	}
	if err != nil {
		k.Note("the skill " + s.Name + " asks for a model that cannot be asked, and runs with that of the session: " + err.Error())
		return ""
	}
	return m.Info().ID
}

// vars are the values of ${NAME} in the texts of skills.
func (k *Skills) vars() map[string]string {
	return map[string]string{
		"CLAUDE_SESSION_ID": k.b.ID, "DURE_SESSION_ID": k.b.ID,
		"CLAUDE_PROJECT_DIR": k.root, "DURE_PROJECT_DIR": k.root, "CLAUDE_EFFORT": cmp.Or(k.cfg.Effort, "medium"),
	}
}

// prepare makes of a skill what a model reads.
func (k *Skills) prepare(ctx context.Context, s skills.Skill, arguments string, run func(context.Context, skills.Command) (skills.Output, error), notRun string) (string, error) {
	text, err := k.Set.Prepare(ctx, s, skills.Request{Arguments: arguments, Vars: k.vars(), Run: run, NotRun: notRun, Windows: runtime.GOOS == "windows"})
	if err != nil {
		return "", err
	}
	if k.Named != nil {
		if body, err := k.Set.Text(s); err == nil {
			text += k.Named(ctx, body)
		}
	}
	return k.cfg.Redact(text), nil
}

// Typed is what a model would read of a skill that a person has typed, by its name.
func (k *Skills) Typed(ctx context.Context, name, arguments string) (string, error) {
	s, _ := k.x.folder(k.b.Workdir).Find(name)
	if s.Name == "" || s.NoUser || s.Off != "" {
		return "", fmt.Errorf("there is no command or skill %q", name)
	}
	text, err := k.prepare(ctx, s, arguments, k.runner(s), "")
	if err == nil && s.Dir != "" {
		text = "Its files are in " + s.Dir + "\n\n" + text
	}
	return strings.TrimSpace(text), err
}

// runner runs the commands in the text of a skill: through the gate, without asking
// anybody, in the box that all commands have. It is nil where settings forbid them.
func (k *Skills) runner(s skills.Skill) func(context.Context, skills.Command) (skills.Output, error) {
	own := s.Place.Scope == frontmatter.BuiltIn || s.Place.Scope == frontmatter.Managed
	if k.cfg.NoShell && !own {
		return nil
	}
	return func(ctx context.Context, c skills.Command) (skills.Output, error) {
		if c.Shell == "powershell" && runtime.GOOS != "windows" {
			return skills.Output{Denied: "it is for PowerShell, and commands run in bash here"}, nil
		}
		input, err := json.Marshal(map[string]any{"command": c.Line, "timeout": c.Limit.Milliseconds()})
		if err != nil {
			return skills.Output{}, err
		}
		r, err := k.b.Reach.Invoke(ctx, agent.Invocation{Origin: "skill:" + s.Name, Tool: skillShell, Input: input, Alone: true})
		if err != nil {
			return skills.Output{}, err
		}
		return outputOf(r), nil
	}
}

// outputOf is what came of a command.
func outputOf(r agent.Result) skills.Output {
	var answer struct {
		ExitCode int `json:"exitCode"`
	}
	out := skills.Output{Text: r.Text}
	if json.Unmarshal(r.Output, &answer) == nil {
		out.Code = answer.ExitCode
	}
	if r.Error == nil {
		return out
	}
	switch r.Error.Code {
	case agent.ErrTimeout:
		out.TimedOut = true
	case agent.ErrDenied, agent.ErrBlockedByHook, agent.ErrApprovalTimeout:
		out.Denied = strings.TrimSpace(r.Error.Message)
	default:
		if out.Code == 0 {
			out.Code = 1
		}
	}
	return out
}

// read is what the model is to read of a skill: its text, or that it has it.
func (k *Skills) read(done *agent.SkillCompleted, s skills.Skill, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was, ok := k.texts[s.Name]; ok && was.text == text && slices.Contains(k.present, was.run) {
		done.Same = was.run
		return
	}
	k.texts[s.Name] = called{done.Run, text}
	done.Text = "<skill name=" + quoteName(s.Name) + ">\n"
	if s.Dir != "" {
		done.Text += "Its files are in " + s.Dir + "\n\n"
	}
	done.Text += text + "\n</skill>"
}

func quoteName(s string) string {
	return `"` + strings.NewReplacer(`"`, "'", "\n", " ").Replace(s) + `"`
}

// apart runs a skill in a session of its own. Where a person is there to hear of its end,
// and its file does not say otherwise, nobody waits for it: what came of it wakes the
// session. It begins once it is recorded that it goes on.
func (k *Skills) apart(ctx context.Context, s skills.Skill, text string, how starting, rules []string, done *agent.SkillCompleted) {
	if !s.Background || !k.b.Open.Approver {
		k.fork(ctx, s, text, how, rules, done)
		return
	}
	done.OK, done.Background = true, true
	done.Text = s.Name + " works in the background now. What comes of it will be said when it ends: do not wait for it, and do not do its work."
	run, name := done.Run, s.Name
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting[run] = func() {
		later := agent.SkillCompleted{Run: run, Skill: name}
		k.fork(k.life, s, text, how, rules, &later)
		if k.Hooks != nil && how.by != agent.SkillByCommand {
			k.Hooks.AfterSkill(k.life, name, later.OK, later.Error)
		}
		said := later.Text
		later.Text = "" // the input has it
		if !later.OK {
			said = "[Fork skill result] " + name + "\nIt did not come to its end: " + later.Error
		}
		if k.life.Err() != nil {
			return // whoever opens the session again is told so
		}
		if err := k.b.Send(k.life, plug.Wake{Text: said, By: how.origin(name), Facts: []agent.Body{later}}); err != nil && k.life.Err() == nil {
			k.cfg.Logger.Warn("telling what became of a skill", "session", k.b.ID, "skill", name, "error", err)
		}
	}
}

// completed records how a skill came out, and lets one begin that goes on in the background.
func (k *Skills) completed(done agent.SkillCompleted) error {
	if err := k.b.Record(done); err != nil {
		return err
	}
	k.mu.Lock()
	later := k.waiting[done.Run]
	delete(k.waiting, done.Run)
	k.mu.Unlock()
	if later != nil {
		k.wg.Go(later)
	}
	return nil
}

// origin names what was started.
func (s starting) origin(name string) string {
	if s.by == agent.SkillByCommand {
		return "command:" + name
	}
	return "skill:" + name
}

// title is what a session is called that it runs in.
func (s starting) title(name string) string {
	if s.by == agent.SkillByCommand {
		return "/" + name
	}
	return "skill " + name
}

// CommandText puts in force what a command of a file asks for beside its text, like a skill:
// until the turn ends, or for a session of its own. Body is its text as it is written, and
// text that made ready. It returns what the model is to read.
func (k *Skills) CommandText(ctx context.Context, s skills.Skill, body, text, arguments, input string) (string, error) {
	if !s.Fork && s.Hooks == nil && len(s.Allowed)+len(s.Without) == 0 && s.Model == "" && s.Effort == "" {
		return text, nil
	}
	how := starting{arguments: arguments, by: agent.SkillByCommand, call: input, key: "command:" + input + ":" + s.Name}
	done := agent.SkillCompleted{Run: "sk_" + rand.Text()[:16], Skill: s.Name, OK: !s.Fork}
	a := k.activated(done.Run, s, how)
	if err := k.b.Record(a); err != nil {
		return "", err
	}
	failed := k.inForce(a, s)
	if s.Fork {
		if k.Named != nil {
			text += k.Named(ctx, body)
		}
		k.apart(ctx, s, k.cfg.Redact(text), how, a.Tools, &done)
		text, done.Text = done.Text, "" // the input has it
	}
	if failed != nil {
		done.OK, done.Error = false, failed.Error()
	}
	if !done.OK {
		k.withdraw(done.Run)
		failed = errors.New(done.Error)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return text, errors.Join(failed, k.completed(done))
}

// fork runs a skill in a session of its own, with the tools that it allows.
func (k *Skills) fork(ctx context.Context, s skills.Skill, text string, how starting, rules []string, done *agent.SkillCompleted) {
	var tools []string
	for _, rule := range s.Allowed {
		name, _, _ := strings.Cut(rule, "(")
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	var child agent.Child
	if s.Agent != "" {
		var err error
		if child, err = k.ChildOf(s.Agent); err != nil {
			done.Error = err.Error()
			return
		}
	}
	child.Agent, child.Title, child.Prompt, child.Rules, child.Key = s.Agent, how.title(s.Name), text, rules, cmp.Or(how.key, done.Run)
	child.Model, child.Effort = cmp.Or(k.modelOf(s), child.Model), cmp.Or(s.Effort, child.Effort)
	child.MaxSteps = cmp.Or(child.MaxSteps, forkSteps)
	if len(tools) > 0 && child.Tools == nil { // those of a type are its bounds
		child.Tools = tools
	}
	child.Without = slices.Concat(child.Without, s.Without, k.Without, []string{skills.ToolName})
	child.HooksFrom = s.File
	if why := k.hookless(s.Name, s.File); why == "" {
		child.Hooks = s.Hooks
	} else if s.Hooks != nil {
		k.Note("a hook of " + s.Name + " does not count: " + why)
	}
	out, err := k.b.Reach.Spawn(ctx, child)
	done.Session, done.Steps = out.Session, out.Steps
	switch {
	case err != nil:
		done.Error = err.Error()
	case out.Reason == agent.EndDone, out.Reason == agent.EndLimit && out.Text != "":
		done.OK = true
		done.Text = "[Fork skill result] " + s.Name + "\n" + out.Text
	default:
		done.Error = cmp.Or(out.Error, "it ended: "+string(out.Reason))
	}
}

// errFor is why a skill cannot be started by whom.
func (k *Skills) errFor(s skills.Skill) error {
	switch {
	case s.Off != "":
		return errors.New(s.Off)
	case s.NoUser:
		return errors.New("it is for the model alone")
	}
	return nil
}

package skills

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dure/internal/base/frontmatter"
)

// The bounds of what a text becomes. Longer output is cut, and more commands are refused.
const (
	MaxPrepared = 400 << 10 // bytes
	maxCommands = 20
	maxOutput   = 48 << 10         // bytes of one command
	ownLimit    = 10 * time.Second // for one command
	theirLimit  = 2 * time.Minute  // ... in folders of .claude
)

// A Command is one in a text that is to be run.
type Command struct {
	Line  string
	Shell string // bash or powershell; "" = bash
	Limit time.Duration
}

// An Output is what came of a command.
type Output struct {
	Text     string
	Code     int
	TimedOut bool
	Denied   string // why it was not run
}

// Request is what a text is prepared with.
type Request struct {
	Arguments string
	Vars      map[string]string // of ${NAME}, beside those of the skill itself

	// Run runs a command, if that is allowed without asking anybody. nil = none is run,
	// and NotRun stands in its place.
	Run    func(context.Context, Command) (Output, error)
	NotRun string

	Windows bool // values in commands are for PowerShell
}

// Disabled stands in the place of commands that somebody's settings forbid.
const Disabled = "[shell command execution disabled by policy]"

// A Refusal is a skill that was taken back because of one of its commands.
type Refusal struct {
	Command string
	Why     string
}

func (r *Refusal) Error() string { return fmt.Sprintf("its command %q %s", cut(r.Command, 200), r.Why) }

// Prepare makes of a skill's text what a model reads. Values are put in the place of
// variables once, and what they say is never read again; the commands are those of the
// text as it was written. An argument that the text does not ask for is added behind it.
func (s *Set) Prepare(ctx context.Context, k Skill, r Request) (string, error) {
	body, armed, err := k.text(s.c.BuiltIn)
	if err != nil {
		return "", err
	}
	if r.Run != nil && !armed {
		r.Run = func(context.Context, Command) (Output, error) {
			return Output{Denied: "the file of the skill came or changed after its folder was trusted; look at it, then: dure trust"}, nil
		}
	}
	p := preparing{Skill: k, Request: r, values: frontmatter.Values{Line: r.Arguments, Names: k.Arguments, Vars: k.vars(r.Vars)}}
	at := 0
	for _, in := range frontmatter.Inlines(body) {
		p.text(body[at:in.From])
		if err := p.run(ctx, in.Command); err != nil {
			return "", err
		}
		at = in.To
	}
	p.text(body[at:])
	text := strings.TrimSpace(p.b.String())
	if !p.used && strings.TrimSpace(r.Arguments) != "" {
		text += "\n\nARGUMENTS: " + r.Arguments
	}
	if len(text) > MaxPrepared {
		return "", fmt.Errorf("with its arguments and the output of its commands it has %d bytes; %d are the most", len(text), MaxPrepared)
	}
	return text, nil
}

// vars are the values of ${NAME}.
func (s Skill) vars(more map[string]string) map[string]string {
	vars := map[string]string{"CLAUDE_SKILL_DIR": s.Dir, "DURE_SKILL_DIR": s.Dir}
	for name, value := range more {
		vars[name] = value
	}
	if p := s.Place; p.Scope == frontmatter.Plugin {
		vars["CLAUDE_PLUGIN_ROOT"], vars["CLAUDE_PLUGIN_DATA"] = p.Root, p.Data
		vars["DURE_PLUGIN_ROOT"], vars["DURE_PLUGIN_DATA"] = p.Root, p.Data
		for name, value := range p.Options {
			vars["user_config."+name] = value
		}
	}
	return vars
}

// Rules are the rules that hold for a turn with the skill, its folders put into them.
func (s Skill) Rules(more map[string]string) []string {
	v := frontmatter.Values{Vars: s.vars(more)}
	var list []string
	for _, rule := range s.Allowed {
		text, _ := v.Expand(rule)
		list = append(list, text)
	}
	return list
}

// preparing is a text on its way.
type preparing struct {
	Skill
	Request
	values frontmatter.Values
	b      strings.Builder
	used   bool // an argument was asked for
	ran    int
}

func (p *preparing) text(s string) {
	text, used := p.values.Expand(s)
	p.b.WriteString(text)
	p.used = p.used || used
}

// run puts the output of a command in its place.
func (p *preparing) run(ctx context.Context, command string) error {
	line, used, err := bind(command, p.values, p.Windows || p.Shell == "powershell")
	p.used = p.used || used
	switch {
	case p.Request.Run == nil:
		p.b.WriteString(p.NotRun)
		return nil
	case err != nil:
		return &Refusal{command, "is not run: " + err.Error()}
	}
	if p.ran++; p.ran > maxCommands {
		return &Refusal{command, fmt.Sprintf("is one too many: %d are the most", maxCommands)}
	}
	limit := ownLimit
	if p.Strict {
		limit = theirLimit
	}
	out, err := p.Request.Run(ctx, Command{Line: line, Shell: p.Shell, Limit: limit})
	if err != nil {
		return fmt.Errorf("running a command of skill %s: %w", p.Name, err)
	}
	text, why := p.outcome(command, out)
	if why != "" {
		return &Refusal{command, why}
	}
	p.b.WriteString(text)
	return nil
}

// outcome is what stands in the place of a command, or why the skill is taken back.
func (p *preparing) outcome(command string, out Output) (text, refused string) {
	text = strings.TrimSpace(out.Text)
	if len(text) > maxOutput {
		text = strings.ToValidUTF8(text[:maxOutput], "") + "\n[the rest was left out]"
	}
	switch {
	case out.Denied != "":
		return "", "was not allowed: " + out.Denied
	case out.TimedOut && p.Strict:
		return "", "took too long"
	case out.TimedOut:
		return "[timeout]", ""
	case out.Code == 0, out.Code == 1 && compares(command):
		return text, ""
	case p.Strict:
		return "", fmt.Sprintf("ended with code %d: %s", out.Code, cut(text, 400))
	}
	return fmt.Sprintf("[error: exit code %d: %s]", out.Code, cut(text, 2000)), ""
}

// compares reports whether a program says with the code 1 that it found nothing, or a
// difference.
func compares(command string) bool {
	words := strings.Fields(command)
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "grep", "egrep", "fgrep", "rg", "diff", "cmp", "find", "test", "[":
		return true
	case "git":
		return len(words) > 1 && (words[1] == "diff" || words[1] == "grep")
	}
	return false
}

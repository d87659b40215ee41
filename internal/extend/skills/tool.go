package skills

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/base/frontmatter"
)

// ToolName is the name of the tool by which a model calls skills.
const ToolName = "skill__use"

const (
	toolText   = `Load a skill's instructions, or run one that works on its own. skill "" lists those about the words in args; there are some for commits, reviews, tests, data, documents and more.`
	toolSchema = `{"type":"object","properties":{"skill":{"type":"string"},"args":{"type":"string"}},"required":["skill"],"additionalProperties":false}`
	maxShown   = 20 // skills that a search shows
)

// A Tool is how a model calls skills. Set and Use are required to run it.
type Tool struct {
	Set *Set

	// Use carries a skill out for a call, and returns what the model reads of it.
	Use func(ctx context.Context, tc agent.ToolContext, k Skill, arguments string) (agent.Result, error)
}

var _ agent.Tool = Tool{}

// Spec describes the tool.
func (t Tool) Spec() agent.Spec {
	return agent.Spec{
		Name: ToolName, Description: toolText, Input: json.RawMessage(toolSchema),
		Class: agent.Unsafe, Group: "skills", Risk: agent.RiskLow,
		Aliases: map[string]string{"name": "skill", "skill_name": "skill", "command": "skill", "arguments": "args"},
	}
}

type toolInput struct {
	Skill string `json:"skill"`
	Args  string `json:"args"`
}

// Plan says that a skill touches nothing by itself: what it makes happen is decided on
// when it happens. One of a project or plugin that allows more than there was before, or
// has hooks, is put to the user.
func (t Tool) Plan(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Effects, error) {
	in, k, err := t.read(c)
	switch {
	case err != nil:
		return agent.Effects{}, err
	case in.Skill == "":
		return agent.Effects{Class: agent.Read}, nil
	case (k.Place.Scope == frontmatter.Project || k.Place.Scope == frontmatter.Plugin) && (len(k.Allowed) > 0 || k.Hooks != nil):
		return agent.Effects{}, nil
	}
	return agent.Effects{Class: agent.Idempotent}, nil
}

// Run finds skills, or carries one out.
func (t Tool) Run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, k, err := t.read(c)
	if err != nil {
		return agent.Result{}, err
	}
	if in.Skill == "" {
		return agent.Result{Status: agent.StatusOK, Text: found(Search(t.Set.List(), in.Args, maxShown))}, nil
	}
	return t.Use(ctx, tc, k, in.Args)
}

func found(list []Skill) string {
	if len(list) == 0 {
		return "No skill is about that."
	}
	var b strings.Builder
	for _, k := range list {
		fmt.Fprintf(&b, "- %s: %s\n", strings.TrimSpace(k.Name+" "+k.Hint), cut(k.Described(), 300))
	}
	return strings.TrimRight(b.String(), "\n")
}

func (t Tool) read(c agent.Call) (in toolInput, k Skill, err error) {
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return in, k, &agent.ToolError{Code: agent.ErrInput, Message: "the input is not as the schema has it: " + err.Error()}
	}
	in.Skill = strings.TrimPrefix(strings.TrimSpace(in.Skill), "/")
	if in.Skill == "" {
		return in, k, nil
	}
	k, like := t.Set.Find(in.Skill)
	switch {
	case len(like) > 0:
		err = &agent.ToolError{Code: agent.ErrInput, Message: fmt.Sprintf("%q may be one of several skills: %s", in.Skill, strings.Join(like, ", ")), Suggestion: "Name one of them."}
	case k.Name == "":
		err = &agent.ToolError{Code: agent.ErrInput, Message: fmt.Sprintf("There is no skill %q.", in.Skill), Suggestion: `Use a name of the list, or find one with skill "".`}
	case k.Off != "":
		err = &agent.ToolError{Code: agent.ErrInput, Message: fmt.Sprintf("The skill %s cannot be used: %s", k.Name, k.Off), Suggestion: "Go on without it."}
	case k.NoModel:
		err = &agent.ToolError{Code: agent.ErrInput, Message: fmt.Sprintf("The skill %s is started by the user alone.", k.Name), Suggestion: "Go on without it, or tell the user that /" + k.Name + " may help."}
	}
	return in, k, err
}

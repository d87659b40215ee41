package swarm

import (
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/base/frontmatter"
)

// known are the fields of a file, for the guess at what a misspelt one means.
var known = []string{
	"name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills", "mcpServers", "hooks",
	"memory", "background", "effort", "isolation", "color", "initialPrompt", "omitClaudeMd", "prompt",
}

// aside are fields that others know and that mean nothing here.
var aside = []string{"experimental", "autoCompactWindow", "observer", "observerMessage", "criticalSystemReminder_EXPERIMENTAL", "version", "author", "license", "metadata", "tags"}

// modes maps what files call a mode.
var modes = map[string]agent.Mode{
	"default": agent.ModeDefault, "acceptedits": agent.ModeAcceptEdits, "plan": agent.ModePlan,
	"dontask": agent.ModeDontAsk, "bypasspermissions": agent.ModeBypass,
}

// efforts maps what files call an effort.
var efforts = map[string]string{"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}

// colors are those that front-ends show.
var colors = []string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"}

// take reads one field.
func (d *Definition) take(f frontmatter.Field) (err error) {
	if f.Empty() {
		return nil
	}
	switch frontmatter.Plain(f.Key) {
	case "name", "description":
	case "prompt":
		d.Prompt, err = f.Text()
	case "tools", "allowedtools":
		return d.takeTools(f)
	case "disallowedtools":
		d.Without, err = list(f, frontmatter.Words)
	case "skills":
		d.Skills, err = list(f, frontmatter.Words)
	case "model":
		if d.Model, err = f.Text(); strings.EqualFold(d.Model, "inherit") {
			d.Model = ""
		}
	case "permissionmode":
		return d.takeMode(f)
	case "effort":
		var word string
		if word, err = f.Text(); err == nil {
			if d.Effort = efforts[strings.ToLower(word)]; d.Effort == "" {
				d.warn(f.Fault("write low, medium or high", "is %q, which is no effort that is known here; that of the session is taken", word))
			}
		}
	case "maxturns":
		if d.Steps, err = f.Int(); err == nil && (d.Steps < 1 || d.Steps > maxSteps) {
			return f.Fault("write a number from 1 to 1000", "is %d, which is no number of steps", d.Steps)
		}
	case "memory":
		return d.choice(f, &d.Memory, "user", "project", "local")
	case "isolation":
		return d.choice(f, &d.Isolation, "none", inTree, inProcess)
	case "background":
		d.Background, err = f.Bool()
	case "omitclaudemd":
		d.Bare, err = f.Bool()
	case "initialprompt":
		d.Initial, err = f.Text()
	case "color":
		if d.Color, err = f.Text(); err == nil && !slices.Contains(colors, strings.ToLower(d.Color)) {
			d.warn(f.Fault("write one of: "+strings.Join(colors, ", "), "is no color that is shown"))
			d.Color = ""
		}
	case "hooks":
		d.Hooks, err = f.JSON()
	case "mcpservers":
		d.Servers, err = f.JSON()
	default:
		d.unknown(f)
	}
	return err
}

// list reads a list of at most maxList texts.
func list(f frontmatter.Field, split func(string) []string) ([]string, error) {
	all, err := f.List(split)
	if err == nil && len(all) > maxList {
		err = f.Fault("name fewer", "has %d entries; %d are the most", len(all), maxList)
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" }), err
}

// takeTools reads tools. Agent(a, b) names the types that the agent may hand work to; of
// other tools it has only what stands in the brackets, which is written as in rules.
func (d *Definition) takeTools(f frontmatter.Field) error {
	all, err := list(f, frontmatter.Words)
	if err != nil {
		return err
	}
	if slices.Contains(all, "*") {
		return nil
	}
	d.Tools = []string{}
	for _, entry := range all {
		name, in, has := strings.Cut(entry, "(")
		in = strings.TrimSuffix(in, ")")
		if has && (strings.EqualFold(name, "Agent") || strings.EqualFold(name, "Task")) {
			d.Types = append(d.Types, strings.FieldsFunc(in, func(r rune) bool { return r == ',' || r == ' ' })...)
			entry = name
		}
		d.Tools = append(d.Tools, entry)
	}
	return nil
}

func (d *Definition) takeMode(f frontmatter.Field) error {
	word, err := f.Text()
	if err != nil {
		return err
	}
	mode, ok := modes[frontmatter.Plain(word)]
	if !ok {
		d.warn(f.Fault("write one of: default, acceptEdits, plan, dontAsk, bypassPermissions", "is %q, which is no mode that is known here; that of the session is taken", word))
	}
	d.Mode = mode
	return nil
}

// choice reads one of some words.
func (d *Definition) choice(f frontmatter.Field, to *string, words ...string) error {
	word, err := f.Text()
	if err != nil {
		return err
	}
	if !slices.Contains(words, strings.ToLower(word)) {
		return f.Fault("write one of: "+strings.Join(words, ", "), "is %q, which is none of them", word)
	}
	*to = strings.ToLower(word)
	return nil
}

// unknown guesses what a field was meant to be.
func (d *Definition) unknown(f frontmatter.Field) {
	plain := frontmatter.Plain(f.Key)
	if slices.ContainsFunc(aside, func(s string) bool { return frontmatter.Plain(s) == plain }) {
		return
	}
	w := frontmatter.Fault{Line: f.Value.Line, Column: 1, Key: f.Key, Message: "the field " + f.Key + " is not known", Fix: "remove it"}
	if meant := nearest(f.Key, known); meant != "" {
		w.Fix = "write it as " + meant
	}
	d.Warnings = append(d.Warnings, w)
}

package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// Agents writes what types of agents there are. With a name it writes those of that
// name, with their prompts.
func (c *CLI) Agents(ctx context.Context, name string, asJSON bool) error {
	list, err := client.Query[[]query.AgentInfo](ctx, c.Client, query.ListAgents{Name: name})
	switch {
	case err != nil:
		return err
	case name != "" && len(list) == 0:
		return &agent.Problem{Code: agent.ProblemUsage, Message: c.Text.Say(text.AgentsUnknown, "name", text.OneLine(name)), Fix: c.Text.Say(text.AgentNamesWhich)}
	case asJSON:
		return c.encode(list)
	}
	return c.text(func(w *bufio.Writer) {
		for _, a := range list {
			c.agent(w, a, name != "")
		}
	})
}

// agent writes one type, with what is wrong with its file.
func (c *CLI) agent(w io.Writer, a query.AgentInfo, whole bool) {
	fmt.Fprintf(w, "%s  (%s", text.OneLine(a.Name), text.OneLine(a.Source))
	if a.State != "active" {
		fmt.Fprintf(w, ", %s", c.agentState(a))
	}
	fmt.Fprintln(w, ")")
	if a.Description != "" {
		fmt.Fprintf(w, "  %s\n", text.OneLine(bounded(a.Description)))
	}
	if whole {
		tools := c.Text.Say(text.AgentAllTools)
		if a.Tools != nil {
			tools = strings.Join(a.Tools, ", ")
		}
		fmt.Fprintf(w, "  %s\n", text.OneLine(c.Text.Say(text.AgentTools, "list", tools)))
		steps := ""
		if a.Steps > 0 {
			steps = strconv.Itoa(a.Steps)
		}
		for _, field := range []struct{ name, value string }{
			{"disallowedTools", strings.Join(a.Without, ", ")},
			{"model", a.Model},
			{"permissionMode", string(a.Mode)},
			{"effort", a.Effort},
			{"maxTurns", steps},
			{"memory", a.Memory},
		} {
			if field.value != "" {
				fmt.Fprintf(w, "  %s: %s\n", field.name, text.OneLine(field.value))
			}
		}
	}
	if a.Path != "" && (whole || len(a.Faults)+len(a.Warnings) > 0) {
		fmt.Fprintf(w, "  %s\n", text.OneLine(a.Path))
	}
	c.faults(w, a)
	if whole && a.Prompt != "" {
		fmt.Fprintf(w, "\n%s\n", text.Clean(a.Prompt))
	}
}

// faults writes what is wrong with a file.
func (c *CLI) faults(w io.Writer, a query.AgentInfo) {
	for _, f := range a.Faults {
		fmt.Fprintf(w, "    %s\n", text.OneLine(c.Text.Say(text.AgentFault, "what", c.faultLine(f))))
	}
	for _, f := range a.Warnings {
		fmt.Fprintf(w, "    %s\n", text.OneLine(c.Text.Say(text.AgentWarning, "what", c.faultLine(f))))
	}
}

// faultLine is a fault on one line: LINE:COLUMN: what; what to do.
func (c *CLI) faultLine(f query.FileFault) string {
	s := c.Text.Phrase(f.Message)
	if f.Line > 0 {
		s = fmt.Sprintf("%d:%d: %s", f.Line, cmp.Or(f.Column, 1), s)
	}
	if f.Fix != "" {
		s += "; " + c.Text.Phrase(f.Fix)
	}
	return s
}

func (c *CLI) agentState(a query.AgentInfo) string {
	switch a.State {
	case "invalid":
		return c.Text.Say(text.AgentInvalid)
	case "hidden":
		return c.Text.Say(text.AgentHidden, "path", text.OneLine(a.Hidden))
	case "untrusted":
		return c.Text.Say(text.AgentUntrusted)
	}
	return c.Text.Say(text.AgentActive)
}

// CheckedAgents writes what is wrong with agents, and reports whether nothing is that
// keeps one from being used.
func (c *CLI) CheckedAgents(list []query.AgentInfo, asJSON bool) (sound bool, err error) {
	sound, noted := true, false
	for _, a := range list {
		sound = sound && a.Valid
		noted = noted || len(a.Warnings) > 0
	}
	if asJSON {
		return sound, c.encode(list)
	}
	if sound && !noted {
		return true, c.say(text.AgentsSound, "n", len(list))
	}
	return sound, c.text(func(w *bufio.Writer) {
		for _, a := range list {
			if len(a.Faults)+len(a.Warnings) > 0 {
				fmt.Fprintln(w, text.OneLine(cmp.Or(a.Path, a.Name)))
				c.faults(w, a)
			}
		}
	})
}

// slashAgents lists the types of agents, or shows one.
func (ch *chat) slashAgents(ctx context.Context, name string) {
	list, ok := asked[[]query.AgentInfo](ctx, ch, query.ListAgents{Name: name, Workdir: ch.v.Workdir})
	if !ok {
		return
	}
	if name != "" && len(list) == 0 {
		ch.v.note(yellow, ch.Text.Say(text.AgentsUnknown, "name", text.OneLine(bounded(name))))
		return
	}
	var b strings.Builder
	for _, a := range list {
		ch.agent(&b, a, name != "")
	}
	for l := range strings.Lines(b.String()) {
		ch.v.note(plain, strings.TrimRight(l, "\n"))
	}
}

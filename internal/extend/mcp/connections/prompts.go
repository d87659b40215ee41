package connections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
)

// awaitPrompts is how long servers that are being connected are waited for when a prompt of
// theirs is typed.
const awaitPrompts = 5 * time.Second

// Prompts are the prompts of the servers, as commands.
func (c *Servers) Prompts() (all []query.CommandInfo) {
	if c == nil {
		return nil
	}
	for _, p := range c.set.Prompts() {
		info := query.CommandInfo{Name: p.Command, Description: p.Description, Hint: promptHint(p), Kind: query.CommandPrompt, Scope: p.Server}
		if info.Description == "" {
			info.Description = p.Title
		}
		all = append(all, info)
	}
	return all
}

// promptHint shows the arguments of a prompt.
func promptHint(p mcp.Prompt) string {
	var words []string
	for _, arg := range p.Arguments {
		name := strings.ToUpper(arg.Name)
		if !arg.Required {
			name = "[" + name + "]"
		}
		words = append(words, name)
	}
	return strings.Join(words, " ")
}

// IsPrompt reports whether an input may name a prompt of a server.
func IsPrompt(text string) bool { return strings.HasPrefix(text, "/"+Prefix) }

// Ready waits a little for servers that are being connected, when somebody has typed
// what may be a prompt of theirs.
func (c *Servers) Ready(ctx context.Context, text string) {
	if c == nil || !IsPrompt(text) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitPrompts)
	defer cancel()
	_ = c.set.Wait(ctx) // who comes later is not there
}

// Prompt returns the prompt of a name.
func (c *Servers) Prompt(name string) (mcp.Prompt, bool) {
	var found []mcp.Prompt
	for _, p := range c.set.Prompts() {
		switch {
		case p.Command == name:
			return p, true
		case strings.EqualFold(p.Command, name):
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return mcp.Prompt{}, false
	}
	return found[0], true
}

// PromptLater reports whether an input may name a prompt of a server that the next session in a
// folder connects.
func (x *Extension) PromptLater(workdir, text string) bool {
	if !IsPrompt(text) {
		return false
	}
	known, _ := x.Known(workdir)
	return slices.ContainsFunc(known, func(k servers.Known) bool { return k.State == servers.Ready && k.Agent == "" })
}

// maxTyped limits a line whose end is completed.
const maxTyped = 4096

// complete asks a server how the last argument of a prompt may go on.
func (c *Servers) complete(ctx context.Context, text string) query.PromptValues {
	none := query.PromptValues{Values: []string{}}
	name, line, ok := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	if c == nil || !ok || !IsPrompt(text) || len(text) > maxTyped {
		return none
	}
	p, found := c.Prompt(name)
	if !found {
		return none
	}
	w, typed, ok := wantedOf(p, line)
	if !ok {
		return none
	}
	list, err := c.set.Complete(ctx, p.Server, w)
	if err != nil {
		c.x.Logger.Info("completing an argument", "server", p.Server, "error", err)
	}
	return query.PromptValues{Argument: w.Argument, Typed: typed, Value: w.Value, Values: append([]string{}, list...)}
}

// wantedOf is the argument of a prompt that a line ends in, and the end of the line that it
// stands in.
func wantedOf(p mcp.Prompt, line string) (w mcp.Wanted, typed string, ok bool) {
	const mark = "\x00" // ends a word that may be empty
	words := frontmatter.Arguments(line + mark)
	last := len(words) - 1
	if last < 0 || len(p.Arguments) == 0 || strings.Contains(line, mark) || !strings.HasSuffix(words[last], mark) {
		return w, "", false
	}
	words[last] = strings.TrimSuffix(words[last], mark)
	i := min(last, len(p.Arguments)-1)
	w = mcp.Wanted{Prompt: p.Name, Argument: p.Arguments[i].Name, Value: strings.Join(words[i:], " "), Others: map[string]string{}}
	for n := range i {
		w.Others[p.Arguments[n].Name] = words[n]
	}
	for at := len(line); at >= 0; at-- { // where a word begins, before it is closed in quotes
		if at > 0 && !strings.ContainsRune(" \t", rune(line[at-1])) {
			continue
		}
		if before := frontmatter.Arguments(line[:at] + mark); len(before) == i+1 && before[i] == mark {
			return w, line[at:], true
		}
	}
	return w, "", false
}

// Arguments gives the words of a line to the arguments of a prompt, in their order;
// the last one gets all that is left.
func Arguments(p mcp.Prompt, line string) (map[string]string, error) {
	words := frontmatter.Arguments(line)
	if n := len(p.Arguments); n > 0 && len(words) > n {
		words = append(words[:n-1:n-1], strings.Join(words[n-1:], " "))
	}
	args := map[string]string{}
	for i, arg := range p.Arguments {
		switch {
		case i < len(words):
			args[arg.Name] = words[i]
		case arg.Required:
			return nil, fmt.Errorf("it needs %s; write /%s %s", arg.Name, p.Command, promptHint(p))
		}
	}
	return args, nil
}

// Fill has a server fill in a prompt, and returns what it says: texts, and what it shows
// besides.
func (c *Servers) Fill(ctx context.Context, p mcp.Prompt, args map[string]string) (agent.Result, error) {
	list, err := c.set.Prompt(ctx, p.Server, p.Name, args)
	if err != nil {
		return agent.Result{}, err
	}
	var texts []string
	var blocks []agent.Block
	for _, m := range list {
		text := m.Text()
		if m.Role == agent.Assistant && len(list) > 1 && text != "" {
			text = "[the assistant says:]\n" + text
		}
		if text != "" {
			texts = append(texts, text)
		}
		for _, b := range m.Blocks {
			if b.Type != agent.TextBlock {
				blocks = append(blocks, b)
			}
		}
	}
	if len(texts) == 0 && len(blocks) == 0 {
		return agent.Result{}, errors.New("the server has said nothing")
	}
	r := agent.OK(strings.Join(texts, "\n\n"))
	r.Blocks = blocks
	return r, nil
}

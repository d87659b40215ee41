package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/commands"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/guard"
)

const (
	serverPrefix = "mcp__"         // begins the names of what servers have
	awaitPrompts = 5 * time.Second // for servers that are being connected, when a prompt of theirs is typed
	fromPrompts  = "mention"       // the source of the pictures of prompts, which are read with their input
)

// served makes prompts of inputs that name a prompt of a server. It is safe for
// concurrent use.
type served struct {
	grd *guard.Guard

	mu       sync.Mutex
	pictures map[string]agent.ContextAdded // by input; guarded by mu
}

// prompts are the prompts of the servers, as commands.
func (c *connected) prompts() (all []query.CommandInfo) {
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

// isPrompt reports whether an input may name a prompt of a server.
func isPrompt(text string) bool { return strings.HasPrefix(text, "/"+serverPrefix) }

// ready waits a little for servers that are being connected, when somebody has typed
// what may be a prompt of theirs.
func (c *connected) ready(ctx context.Context, text string) {
	if c == nil || !isPrompt(text) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitPrompts)
	defer cancel()
	_ = c.set.Wait(ctx) // who comes later is not there
}

// prompt returns the prompt that an input names.
func (c *connected) prompt(name string) (mcp.Prompt, bool) {
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

// promptLater reports whether an input may name a prompt of a server that no session has
// connected yet.
func (a *App) promptLater(session, workdir, text string) bool {
	if session != "" || !isPrompt(text) {
		return false
	}
	known, _ := a.serversIn(workdir)
	for _, k := range known {
		if k.State == servers.Ready && k.Agent == "" {
			return true
		}
	}
	return false
}

// maxTyped bounds a line whose end is completed.
const maxTyped = 4096

// completePrompt asks a server how the last argument of a prompt may go on.
func (c *connected) completePrompt(ctx context.Context, text string) query.PromptValues {
	none := query.PromptValues{Values: []string{}}
	name, line, ok := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	if c == nil || !ok || !isPrompt(text) || len(text) > maxTyped {
		return none
	}
	p, found := c.prompt(name)
	if !found {
		return none
	}
	w, typed, ok := wantedOf(p, line)
	if !ok {
		return none
	}
	list, err := c.set.Complete(ctx, p.Server, w)
	if err != nil {
		c.app.opts.Logger.Info("completing an argument", "server", p.Server, "error", err)
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

// serverPrompt makes a prompt of an input that names one of a server; not ok = it names
// none.
func (t *typed) serverPrompt(ctx context.Context, q agent.InputQueued) (text string, drop *agent.InputDropped, ok bool) {
	c := t.app.serversOf(t.b.ID)
	if c == nil || !isPrompt(q.Text) {
		return "", nil, false
	}
	c.ready(ctx, q.Text)
	name, line, _ := commands.Split(q.Text)
	p, found := c.prompt(name)
	as := commands.Command{Name: p.Command}
	if !found {
		as.Name = name
		return "", commands.Without(as, errors.New("no server of this session has a prompt of this name; /mcp says how it stands with them")), true
	}
	args, err := promptArguments(p, line)
	if err == nil {
		err = t.app.hooks.Of(t.b.ID).Expanding(ctx, "mcp_prompt", p.Command, line, "mcp", q.Text)
	}
	var said string
	if err == nil {
		said, err = t.askServer(ctx, c, p, args, q.Input)
	}
	if err != nil {
		return "", commands.Without(as, err), true
	}
	t.aloud(q.Input) // what a server says names nothing that is to be read
	return commands.Joined(q.Text, []commands.Command{as}, []string{said}), nil, true
}

// promptArguments gives the words of a line to the arguments of a prompt, in their order;
// the last one gets all that is left.
func promptArguments(p mcp.Prompt, line string) (map[string]string, error) {
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

// askServer has a server fill in a prompt, and returns what the guard leaves of it. What it
// shows besides texts is kept for the request.
func (t *typed) askServer(ctx context.Context, c *connected, p mcp.Prompt, args map[string]string, input string) (string, error) {
	list, err := c.set.Prompt(ctx, p.Server, p.Name, args)
	if err != nil {
		return "", err
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
	r := agent.OK(strings.Join(texts, "\n\n"))
	r.Blocks = blocks
	r, err = t.served.grd.Check(ctx, agent.Spec{Name: p.Command, Group: "mcp", Budget: 2 * mention.MaxTotal}, agent.Call{ID: input, Tool: p.Command}, r)
	if err != nil {
		return "", err
	}
	if len(texts) == 0 && len(blocks) == 0 {
		return "", errors.New("the server has said nothing")
	}
	if len(r.Blocks) > 0 {
		t.served.show(input, agent.ContextAdded{Source: fromPrompts, Key: input + " shown", Title: p.Command, Text: "What " + p.Command + " shows:\n", Blocks: r.Blocks})
	}
	return strings.TrimSpace(r.Unfenced()), nil
}

// show keeps what is read with an input.
func (s *served) show(input string, c agent.ContextAdded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pictures == nil {
		s.pictures = map[string]agent.ContextAdded{}
	}
	s.pictures[input] = c
}

// extra returns what is read with the input that no request has had yet.
func (s *served) extra(_ context.Context, at plug.Moment) (all []agent.ContextAdded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[string]agent.ContextAdded{}
	for _, in := range at.Fresh {
		if c, ok := s.pictures[in.Input]; ok {
			kept[in.Input] = c
			all = append(all, c)
		}
	}
	if len(at.Fresh) > 0 {
		s.pictures = kept
	}
	return all
}

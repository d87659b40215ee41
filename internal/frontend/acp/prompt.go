package acp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// maxBlocks is how many pieces of content a prompt has at most.
const maxBlocks = 1000

// Why a turn is over, as clients are told.
const (
	stopEnd       = "end_turn"
	stopLength    = "max_tokens"
	stopSteps     = "max_turn_requests"
	stopRefusal   = "refusal"
	stopCancelled = "cancelled"
)

// prompt is an input that waits for the end of its turn.
type prompt struct {
	id        string
	done      chan struct{}
	once      sync.Once
	stop      string
	err       error
	sent      bool // guarded by mu of the session
	cancelled bool // likewise
	added     bool // it is part of the turn that runs; likewise
}

// over ends a prompt.
func (p *prompt) over(stop string, err error) {
	p.once.Do(func() {
		p.stop, p.err = stop, err
		close(p.done)
	})
}

func randomID() string { return rand.Text() }

// promptOf enters a prompt, before whatever the client says next, and returns what is to be
// done with it.
func (s *Server) promptOf(params json.RawMessage) func(*Server, context.Context, json.RawMessage) (answer, error) {
	refuse := func(err error) func(*Server, context.Context, json.RawMessage) (answer, error) {
		return func(*Server, context.Context, json.RawMessage) (answer, error) { return answer{}, err }
	}
	var in promptIn
	if err := decode(params, &in); err != nil {
		return refuse(err)
	}
	x, err := s.need(in.Session)
	if err != nil {
		return refuse(err)
	}
	said, err := x.said(in.Prompt)
	if err != nil {
		return refuse(err)
	}
	p := &prompt{id: "acp-" + randomID(), done: make(chan struct{})}
	said.ID = p.id
	x.mu.Lock()
	many, over := len(x.prompts) >= maxPrompts, x.over
	if !many && !over {
		x.prompts = append(x.prompts, p)
	}
	x.mu.Unlock()
	switch {
	case over:
		return refuse(missing(in.Session))
	case many:
		return refuse(&wireError{Code: codeRequest, Message: fmt.Sprintf("%d prompts of the session wait already", maxPrompts)})
	}
	return func(_ *Server, ctx context.Context, _ json.RawMessage) (answer, error) {
		defer x.dropPrompt(p)
		stop, err := x.run(ctx, p, said)
		return answer{result: promptOut{Stop: stop}}, err
	}
}

func (x *session) dropPrompt(p *prompt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, q := range x.prompts {
		if q == p {
			x.prompts = append(x.prompts[:i:i], x.prompts[i+1:]...)
			return
		}
	}
}

// run says something in the session, and waits for the end of the turn.
func (x *session) run(ctx context.Context, p *prompt, said agent.Prompt) (string, error) {
	if strings.HasPrefix(said.Text, "/") && len(said.Blocks) == 0 {
		if stop, done, err := x.slash(ctx, p, said.Text); done || err != nil {
			return stop, err
		}
	}
	x.mu.Lock()
	cancelled := p.cancelled
	x.mu.Unlock()
	if cancelled {
		return stopCancelled, nil
	}
	if err := x.sess.Send(ctx, said); err != nil {
		return "", err
	}
	return x.wait(ctx, p)
}

// wait waits for the end of a turn that was begun.
func (x *session) wait(ctx context.Context, p *prompt) (string, error) {
	x.mu.Lock()
	p.sent = true
	cancelled := p.cancelled
	x.mu.Unlock()
	if cancelled {
		x.interrupt()
	}
	select {
	case <-p.done:
		return p.stop, p.err
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errCancelled) { // the work, too, and not only the wait for it
			x.cancel()
			<-p.done
		}
		return "", context.Cause(ctx)
	}
}

// cancel stops what runs in the session.
func (x *session) cancel() {
	x.mu.Lock()
	sent := len(x.prompts) == 0
	for _, p := range x.prompts {
		p.cancelled = true
		sent = sent || p.sent
	}
	x.mu.Unlock()
	if sent {
		x.interrupt()
	}
}

// interrupt has the turn that runs stopped.
func (x *session) interrupt() {
	select {
	case x.halt <- struct{}{}:
	default: // it will be
	}
}

// interrupts stops turns, without holding up whoever wants that.
func (x *session) interrupts(ctx context.Context) {
	for {
		select {
		case <-x.halt:
			if err := x.sess.Send(ctx, agent.Interrupt{}); err != nil {
				x.s.c.Logger.Debug("interrupting a turn", "session", x.id, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// said is the input that pieces of content make. What a client has embedded goes along as
// it is; what it links to is read as a mention is, through the gate.
func (x *session) said(list []block) (agent.Prompt, error) {
	if len(list) == 0 || len(list) > maxBlocks {
		return agent.Prompt{}, badParams("prompt: 1 to %d pieces of content are taken", maxBlocks)
	}
	var p agent.Prompt
	var b strings.Builder
	for i, c := range list {
		wrong := func(format string, args ...any) (agent.Prompt, error) {
			return agent.Prompt{}, badParams("prompt[%d]: %s", i, fmt.Sprintf(format, args...))
		}
		switch c.Type {
		case "text":
			if c.Text == nil {
				return wrong("text is missing")
			}
			b.WriteString(*c.Text)
		case "image":
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil || len(data) == 0 {
				return wrong("data is no base64 of an image")
			}
			if !strings.HasPrefix(c.MIME, "image/") {
				return wrong("mimeType %q is no image", text.Cut(text.OneLine(c.MIME), 80))
			}
			p.Blocks = append(p.Blocks, agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: c.MIME, Name: named(c.URI), Data: data}})
		case "audio":
			return wrong("audio is not taken; say it in words")
		case "resource_link":
			if c.URI == "" {
				return wrong("uri is missing")
			}
			apart(&b, x.link(c.URI, c.Name))
		case "resource":
			media, err := embedded(c.Resource)
			if err != nil {
				return wrong("%v", err)
			}
			p.Blocks = append(p.Blocks, media)
			apart(&b, "["+named(c.Resource.URI)+"]")
		default:
			return wrong("type %q is not known", text.Cut(text.OneLine(c.Type), 40))
		}
	}
	p.Text = b.String()
	if strings.TrimSpace(p.Text) == "" && len(p.Blocks) == 0 {
		return p, badParams("prompt: it says nothing")
	}
	return p, nil
}

// apart writes a word so that it does not grow together with what stands before it.
func apart(b *strings.Builder, word string) {
	if s := b.String(); s != "" && !strings.ContainsAny(s[len(s)-1:], " \n\t([{\"'") {
		b.WriteByte(' ')
	}
	b.WriteString(word)
}

// named is an address as a name of what is there.
func named(uri string) string { return text.Cut(text.OneLine(uri), 300) }

// embedded is what a client has embedded.
func embedded(r *resource) (agent.Block, error) {
	switch {
	case r == nil || r.URI == "":
		return agent.Block{}, errors.New("resource has no uri")
	case r.Text != nil:
		if strings.TrimSpace(*r.Text) == "" { // providers refuse documents that say nothing
			empty := "(" + named(r.URI) + " is empty)"
			r.Text = &empty
		}
		return agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: "text/plain", Name: named(r.URI), Data: []byte(*r.Text)}}, nil
	case r.Blob != "":
		data, err := base64.StdEncoding.DecodeString(r.Blob)
		if err != nil {
			return agent.Block{}, errors.New("blob is no base64")
		}
		kind := agent.DocumentBlock
		if strings.HasPrefix(r.MIME, "image/") {
			kind = agent.ImageBlock
		}
		if kind == agent.DocumentBlock && r.MIME != "application/pdf" {
			return agent.Block{}, fmt.Errorf("a blob of type %q is not taken: images and PDF are", text.Cut(text.OneLine(r.MIME), 80))
		}
		return agent.Block{Type: kind, Media: &agent.Media{Type: r.MIME, Name: named(r.URI), Data: data}}, nil
	}
	return agent.Block{}, errors.New("resource has neither text nor blob")
}

// link is what a person would write to name what is at an address: a file as a mention.
func (x *session) link(uri, name string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" && u.Scheme != "http" && u.Scheme != "https" {
		if filepath.IsAbs(uri) {
			return x.mention(uri, "")
		}
		return "[" + named(name) + "](" + named(uri) + ")"
	}
	if u.Scheme != "file" {
		return "@" + named(uri)
	}
	path := u.Path
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // a drive
		path = path[1:]
	}
	return x.mention(filepath.FromSlash(path), u.Fragment)
}

// mention names a file, with the lines that a fragment names.
func (x *session) mention(path, fragment string) string {
	path = text.OneLine(path)
	if rel, err := filepath.Rel(x.dir, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	if strings.Contains(path, `"`) {
		return path
	}
	m := `@"` + path + `"`
	if lines, ok := strings.CutPrefix(fragment, "L"); ok && strings.Trim(lines, "0123456789L:-") == "" {
		m += "#L" + strings.NewReplacer(":", "-", "L", "").Replace(lines)
	}
	return m
}

// slash does what an input asks for that begins with a slash. done says that nothing is to
// be sent to the model.
func (x *session) slash(ctx context.Context, p *prompt, typed string) (stop string, done bool, err error) {
	r, err := client.Query[query.CommandRead](ctx, x.place.Client, query.ReadCommand{Session: x.id, Text: typed})
	if err != nil {
		return "", true, err
	}
	t, shown := x.s.c.Text, "/"+text.Cut(text.OneLine(r.Name), 80)
	words := ""
	switch {
	case r.Is == query.ReadSend:
		return "", false, nil
	case r.Is == query.ReadRun && builtIn[r.Name] != nil:
		words, stop, err = builtIn[r.Name](x, ctx, p, r.Arguments)
	case r.Is == query.ReadRun, r.Is == query.ReadRefuse && r.Kind == query.CommandBuiltIn:
		words = t.Say(text.CommandNotHere, "name", shown)
	case r.Is == query.ReadRefuse:
		words = t.Say(text.CommandOff, "name", shown, "why", text.Cut(text.OneLine(r.Why), 400))
	default:
		words = t.Say(text.SlashUnknown, "name", shown)
		if len(r.Near) > 0 {
			words += " " + t.Say(text.CommandNear, "list", "/"+text.OneLine(strings.Join(r.Near, ", /")))
		}
	}
	if err != nil {
		return "", true, err
	}
	if words != "" {
		x.update(chunk{Kind: "agent_message_chunk", Content: textBlock(words), Message: p.id})
	}
	if stop == "" {
		stop = stopEnd
	}
	return stop, true, nil
}

// builtIn are the commands that are carried out here.
var builtIn = map[string]func(*session, context.Context, *prompt, string) (words, stop string, err error){
	"compact": func(x *session, ctx context.Context, _ *prompt, arg string) (string, string, error) {
		return "", "", x.sess.Send(ctx, agent.Compact{Focus: arg})
	},
	"uncompact": func(x *session, ctx context.Context, _ *prompt, _ string) (string, string, error) {
		return "", "", x.sess.Send(ctx, agent.Restore{})
	},
	"continue": func(x *session, ctx context.Context, p *prompt, _ string) (string, string, error) {
		x.mu.Lock()
		p.added = true // the turn that goes on is its own
		x.mu.Unlock()
		if err := x.sess.Send(ctx, agent.Continue{}); err != nil {
			return "", "", err
		}
		stop, err := x.wait(ctx, p)
		return "", stop, err
	},
	"model": func(x *session, ctx context.Context, _ *prompt, arg string) (string, string, error) {
		return x.choose(ctx, optionModel, arg)
	},
	"mode": func(x *session, ctx context.Context, _ *prompt, arg string) (string, string, error) {
		return x.choose(ctx, optionMode, arg)
	},
}

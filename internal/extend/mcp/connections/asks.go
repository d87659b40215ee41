package connections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/extend/mcp"
	"dure/internal/kernel/plug"
	"dure/internal/tools/kit"
)

// Bounds of what servers ask.
const (
	maxSampled  = 100 // questions of one server to the model in a session
	maxAskAgain = 3   // times that a form is put whose answers do not fit
	askedAtOnce = 4   // questions that the tool for them takes
	askedValues = 4   // values that it offers for one
	shownTalk   = 400 // characters of a question to the model that a person is shown
)

// sampling is the name by which rules know the questions of a server to the model. No tool
// of a server can be called so: names of tools have no slash.
const sampling = "sampling/createMessage"

// origin is what the origins of questions begin with that servers ask. Clients of our
// own server, which call tools themselves, have another. Hooks know it too.
const origin = "server:"

// userQuestion is a question as the tool for them takes it.
type userQuestion struct {
	Question string       `json:"question"`
	Header   string       `json:"header,omitempty"`
	Options  []userOption `json:"options"`
	Multi    bool         `json:"multiSelect"`
}

type userOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

func options(labels ...string) (all []userOption) {
	for _, l := range labels {
		all = append(all, userOption{Label: l})
	}
	return all
}

// opened waits until the session may be reached: servers are connected while it opens.
func (c *Servers) opened(ctx context.Context) error {
	select {
	case <-c.begun:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask puts questions to the person, in the name of a server; nil = nobody answers them.
func (c *Servers) ask(ctx context.Context, server string, list []userQuestion) (map[string]string, error) {
	for i := range list {
		list[i].Header = kit.Clip(server)
	}
	input, err := json.Marshal(map[string]any{"questions": list})
	if err != nil {
		return nil, fmt.Errorf("writing the questions of a server: %w", err)
	}
	r, err := c.Person.Reach.Invoke(ctx, agent.Invocation{Origin: origin + server, Tool: "user__ask", Input: input})
	if err != nil || r.Failed() {
		return nil, err
	}
	var out struct {
		Answers map[string]string `json:"answers"`
	}
	if err := json.Unmarshal(r.Output, &out); err != nil {
		return nil, fmt.Errorf("reading the answers to a server: %w", err)
	}
	return out.Answers, nil
}

// choose puts one question to the person, and returns which of the labels they have chosen;
// -1 = none of them.
func (c *Servers) choose(ctx context.Context, server, question string, labels ...string) (int, error) {
	got, err := c.ask(ctx, server, []userQuestion{{Question: question, Options: options(labels...)}})
	if err != nil {
		return -1, err
	}
	return slices.Index(labels, got[question]), nil
}

// elicit puts a question of a server to the hooks, and what they leave to whoever embeds this
// program, or to the person.
func (c *Servers) elicit(ctx context.Context, q mcp.Elicitation) (r plug.ElicitReply, err error) {
	if err := c.opened(ctx); err != nil {
		return r, err
	}
	server := q.Server
	q.Server = c.prefix + server // another one may have its name
	about := map[string]any{"mcp_server_name": q.Server, "mode": "form"}
	asked, kind := map[string]any{"message": q.Message, "requested_schema": q.Schema}, "elicitation_dialog"
	if q.URL != "" {
		about["mode"], kind = "url", "elicitation_url_dialog"
		asked = map[string]any{"message": q.Message, "url": q.URL}
	}
	if q.ID != "" {
		about["elicitation_id"] = q.ID
	}
	maps.Copy(asked, about)
	h, host := c.x.Hooks(c.b.ID), c.x.Host
	if r, err := h.Eliciting(ctx, q.Server, asked); r.Action != "" || err != nil {
		return r, err
	}
	embeds := host != nil && host.Elicit != nil
	if !embeds && !c.Person.Open.Approver || !c.mayPut(server) {
		return plug.ElicitReply{Action: mcp.Decline}, nil
	}
	h.Notify(kind, c.x.Say(HookElicits, "server", q.Server))
	if embeds {
		r.Action, r.Content, err = host.Elicit(ctx, q)
	} else {
		r, err = c.answered(ctx, q)
	}
	c.wasPut(server, err == nil && r.Action == mcp.Accept)
	if err != nil {
		return r, err
	}
	if about["action"] = r.Action; r.Content != nil {
		about["content"] = r.Content
	}
	other, err := h.Answering(ctx, q.Server, about)
	if err != nil {
		return r, err
	}
	if other.Action == mcp.Accept && other.Content == nil {
		other.Content = r.Content
	}
	if other.Action != "" {
		r = other
	}
	h.Notify("elicitation_response", c.x.Say(HookElicited, "server", q.Server, "action", r.Action))
	return r, nil
}

// answered puts a question of a server to the person: first whether they want to answer it
// at all.
func (c *Servers) answered(ctx context.Context, q mcp.Elicitation) (plug.ElicitReply, error) {
	say := c.x.Say
	question, yes := "", say(AskedAnswer)
	switch {
	case q.URL != "":
		question, yes = say(AskedURL, "server", q.Server, "host", q.Host, "url", q.URL, "message", q.Message), say(AskedOpen)
	case len(q.Fields) == 0:
		question, yes = say(AskedPlain, "server", q.Server, "message", q.Message), say(AskedAgree)
	default:
		var names []string
		for _, f := range q.Fields {
			names = append(names, titleOf(f))
		}
		question = say(AskedForm, "server", q.Server, "fields", strings.Join(names, ", "), "message", q.Message)
		if slices.ContainsFunc(q.Fields, wantsSecret) {
			question += "\n" + say(AskedSecret)
		}
	}
	n, err := c.choose(ctx, q.Server, question, yes, say(AskedDecline), say(AskedCancel))
	switch {
	case err != nil:
		return plug.ElicitReply{}, err
	case n == 2:
		return plug.ElicitReply{Action: mcp.Cancel}, nil
	case n != 0:
		return plug.ElicitReply{Action: mcp.Decline}, nil
	case q.URL != "":
		return plug.ElicitReply{Action: mcp.Accept}, nil
	}
	return c.fill(ctx, q)
}

// fill has the person fill in a form. What does not fit is asked for again.
func (c *Servers) fill(ctx context.Context, q mcp.Elicitation) (plug.ElicitReply, error) {
	say, content, wrong := c.x.Say, map[string]any{}, map[string]string{}
	open := q.Fields
	for range maxAskAgain {
		for part := range slices.Chunk(open, askedAtOnce) {
			var list []userQuestion
			for _, f := range part {
				list = append(list, asField(say, f, wrong[f.Name]))
			}
			got, err := c.ask(ctx, q.Server, list)
			if err != nil || got == nil {
				return plug.ElicitReply{Action: mcp.Decline}, err
			}
			for i, f := range part {
				said, ok := got[list[i].Question]
				if !ok {
					return plug.ElicitReply{Action: mcp.Cancel}, nil
				}
				if said == say(AskedDecline) && !isValue(f, said) {
					return plug.ElicitReply{Action: mcp.Decline}, nil
				}
				delete(wrong, f.Name)
				delete(content, f.Name)
				v, given, err := valueOf(say, f, said)
				switch {
				case err != nil:
					wrong[f.Name] = err.Error()
				case given:
					content[f.Name] = v
				}
			}
		}
		if len(wrong) == 0 && (q.Fits == nil || q.Fits(content) == nil) {
			return plug.ElicitReply{Action: mcp.Accept, Content: content}, nil
		}
		if open = q.Fields; len(wrong) > 0 {
			open = slices.DeleteFunc(slices.Clone(q.Fields), func(f mcp.Field) bool { return wrong[f.Name] == "" })
			continue
		}
		for _, f := range open {
			wrong[f.Name] = say(AskedMisfit)
		}
	}
	return plug.ElicitReply{Action: mcp.Cancel}, nil
}

// sample puts a question of a server to the model, if it may be.
func (c *Servers) sample(ctx context.Context, server string, q agent.Question) (agent.Answer, error) {
	if err := c.opened(ctx); err != nil {
		return agent.Answer{}, err
	}
	if err := c.maySample(ctx, server, q); err != nil {
		return agent.Answer{}, err
	}
	c.mu.Lock()
	n := c.sampled[server]
	c.sampled[server] = n + 1
	c.mu.Unlock()
	if n >= maxSampled {
		return agent.Answer{}, fmt.Errorf("the server has asked the model %d times in this session", maxSampled)
	}
	return c.b.Reach.Ask(ctx, q)
}

// finished tells the hooks that what a person does at an address of a server is finished.
func (c *Servers) finished(server string) {
	c.x.Hooks(c.b.ID).Notify("elicitation_complete", c.x.Say(HookElicitDone, "server", c.prefix+server))
}

// maySample decides on a question to the model as on a call of a tool of the server. What a
// mode allows counts only for servers that a person has added.
func (c *Servers) maySample(ctx context.Context, server string, q agent.Question) error {
	input, err := json.Marshal(map[string]any{"maxTokens": q.MaxTokens})
	if err != nil {
		return fmt.Errorf("writing a question of a server: %w", err)
	}
	d := c.Policy.Decide(agent.Proposal{Call: agent.Call{Tool: c.set.ToolName(server, sampling), Input: input}, Class: agent.Unsafe})
	c.mu.Lock()
	granted := c.granted[server]
	c.mu.Unlock()
	switch {
	case d.Verdict == agent.Deny:
		return fmt.Errorf("it is denied: %s", d.Reason)
	case d.Verdict == agent.Allow && (d.By == "rule" || c.ownServer(server)), granted:
		return nil
	case !c.Person.Open.Approver:
		return errors.New("no rule allows it, and nobody is there to be asked")
	case !c.mayPut(server):
		return errors.New("the person has been asked too often")
	}
	say, words := c.x.Say, []string{q.System}
	for _, m := range q.Messages {
		words = append(words, m.Text())
	}
	begins := []rune(strings.TrimSpace(strings.Join(words, "\n")))
	begins = begins[:min(len(begins), shownTalk)]
	shown := c.prefix + server
	question := say(AskedModel, "server", shown, "n", strconv.Itoa(len(q.Messages)), "tokens", strconv.Itoa(q.MaxTokens), "text", c.x.Clean(string(begins)))
	n, err := c.choose(ctx, shown, question, say(AskedOnce), say(AskedSession), say(AskedDecline))
	c.wasPut(server, n == 0 || n == 1)
	switch {
	case err != nil:
		return err
	case n == 1:
		c.mu.Lock()
		c.granted[server] = true
		c.mu.Unlock()
	case n != 0:
		return errors.New("the person has declined")
	}
	return nil
}

// ownServer reports whether a person, and no project or plugin, has added a server.
func (c *Servers) ownServer(server string) bool {
	st, ok := c.status(server)
	return ok && ownServer(st.Server)
}

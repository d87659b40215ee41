package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/frontend/text"
	"dure/internal/kernel/loop"
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

// serverOrigin is what the origins of questions begin with that servers ask. Clients of our
// own server, which call tools themselves, have another.
const serverOrigin = "server:"

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
func (c *connected) opened(ctx context.Context) error {
	select {
	case <-c.begun:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask puts questions to the person, in the name of a server; nil = nobody answers them.
func (c *connected) ask(ctx context.Context, server string, list []userQuestion) (map[string]string, error) {
	for i := range list {
		list[i].Header = servers.Clip(server)
	}
	input, err := json.Marshal(map[string]any{"questions": list})
	if err != nil {
		return nil, fmt.Errorf("writing the questions of a server: %w", err)
	}
	r, err := c.person.Invoke(ctx, agent.Invocation{Origin: serverOrigin + server, Tool: "user__ask", Input: input})
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
func (c *connected) choose(ctx context.Context, server, question string, labels ...string) (int, error) {
	got, err := c.ask(ctx, server, []userQuestion{{Question: question, Options: options(labels...)}})
	if err != nil {
		return -1, err
	}
	return slices.Index(labels, got[question]), nil
}

// elicit puts a question of a server to the hooks, and what they leave to the person.
func (c *connected) elicit(ctx context.Context, q mcp.Elicitation) (mcp.Reply, error) {
	if err := c.opened(ctx); err != nil {
		return mcp.Reply{}, err
	}
	server := q.Server
	q.Server = c.prefix + server // another one may have its name
	fields := map[string]any{"mcp_server_name": q.Server, "message": q.Message, "mode": "form"}
	if q.URL != "" {
		fields["url"], fields["mode"] = q.URL, "url"
	} else {
		fields["requested_schema"] = q.Schema
	}
	if q.ID != "" {
		fields["elicitation_id"] = q.ID
	}
	if r, err := c.app.hooks.Of(c.session).Eliciting(ctx, q.Server, fields); r.Action != "" || err != nil {
		return mcp.Reply(r), err
	}
	if r, put, err := c.toHost(ctx, q, server); put || err != nil {
		return r, err
	}
	if !c.asks || !c.mayPut(server) {
		return mcp.Reply{Action: mcp.Decline}, nil
	}
	c.puts(q)
	r, err := c.answered(ctx, q)
	c.wasPut(server, err == nil && r.Action == mcp.Accept)
	if err != nil {
		return r, err
	}
	return c.elicited(ctx, q, r)
}

// puts tells the hooks that a question of a server waits for the person.
func (c *connected) puts(q mcp.Elicitation) {
	kind := "elicitation_dialog"
	if q.URL != "" {
		kind = "elicitation_url_dialog"
	}
	c.app.hooks.Of(c.session).Notify(kind, text.For(c.app.cfg.Language).Say(text.HookElicits, "server", q.Server))
}

// elicited tells the hooks what the person has answered, before the server is. They may put
// another answer in its place, or decline.
func (c *connected) elicited(ctx context.Context, q mcp.Elicitation, r mcp.Reply) (mcp.Reply, error) {
	h, fields := c.app.hooks.Of(c.session), map[string]any{"mcp_server_name": q.Server, "action": r.Action, "mode": "form"}
	if q.URL != "" {
		fields["mode"] = "url"
	}
	if r.Content != nil {
		fields["content"] = r.Content
	}
	if q.ID != "" {
		fields["elicitation_id"] = q.ID
	}
	other, err := h.Answering(ctx, q.Server, fields)
	if err != nil {
		return r, err
	}
	if other.Action == mcp.Accept && other.Content == nil {
		other.Content = r.Content
	}
	if other.Action != "" {
		r = mcp.Reply(other)
	}
	h.Notify("elicitation_response", text.For(c.app.cfg.Language).Say(text.HookElicited, "server", q.Server, "action", r.Action))
	return r, nil
}

// toHost puts a question of a server to the embedding program, if that takes such.
func (c *connected) toHost(ctx context.Context, q mcp.Elicitation, server string) (mcp.Reply, bool, error) {
	host := c.app.opts.Host
	if host == nil || host.Elicit == nil {
		return mcp.Reply{}, false, nil
	}
	if !c.mayPut(server) {
		return mcp.Reply{Action: mcp.Decline}, true, nil
	}
	c.puts(q)
	r, _, err := host.elicits(ctx, q)
	c.wasPut(server, err == nil && r.Action == mcp.Accept)
	if err != nil {
		return r, true, err
	}
	r, err = c.elicited(ctx, q, r)
	return r, true, err
}

// answered puts a question of a server to the person: first whether they want to answer it
// at all.
func (c *connected) answered(ctx context.Context, q mcp.Elicitation) (mcp.Reply, error) {
	say := text.For(c.app.cfg.Language)
	question, yes := "", say.Say(text.AskedAnswer)
	switch {
	case q.URL != "":
		question, yes = say.Say(text.AskedURL, "server", q.Server, "host", q.Host, "url", q.URL, "message", q.Message), say.Say(text.AskedOpen)
	case len(q.Fields) == 0:
		question, yes = say.Say(text.AskedPlain, "server", q.Server, "message", q.Message), say.Say(text.AskedAgree)
	default:
		var names []string
		for _, f := range q.Fields {
			names = append(names, titleOf(f))
		}
		question = say.Say(text.AskedForm, "server", q.Server, "fields", strings.Join(names, ", "), "message", q.Message)
		if slices.ContainsFunc(q.Fields, wantsSecret) {
			question += "\n" + say.Say(text.AskedSecret)
		}
	}
	n, err := c.choose(ctx, q.Server, question, yes, say.Say(text.AskedDecline), say.Say(text.AskedCancel))
	switch {
	case err != nil:
		return mcp.Reply{}, err
	case n == 2:
		return mcp.Reply{Action: mcp.Cancel}, nil
	case n != 0:
		return mcp.Reply{Action: mcp.Decline}, nil
	case q.URL != "":
		return mcp.Reply{Action: mcp.Accept}, nil
	}
	return c.fill(ctx, q)
}

// fill has the person fill in a form. What does not fit is asked for again.
func (c *connected) fill(ctx context.Context, q mcp.Elicitation) (mcp.Reply, error) {
	say, content, wrong := text.For(c.app.cfg.Language), map[string]any{}, map[string]string{}
	open := q.Fields
	for range maxAskAgain {
		for part := range slices.Chunk(open, askedAtOnce) {
			var list []userQuestion
			for _, f := range part {
				list = append(list, asField(say, f, wrong[f.Name]))
			}
			got, err := c.ask(ctx, q.Server, list)
			if err != nil || got == nil {
				return mcp.Reply{Action: mcp.Decline}, err
			}
			for i, f := range part {
				said, ok := got[list[i].Question]
				if !ok {
					return mcp.Reply{Action: mcp.Cancel}, nil
				}
				if said == say.Say(text.AskedDecline) && !isValue(f, said) {
					return mcp.Reply{Action: mcp.Decline}, nil
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
			return mcp.Reply{Action: mcp.Accept, Content: content}, nil
		}
		if open = q.Fields; len(wrong) > 0 {
			open = slices.DeleteFunc(slices.Clone(q.Fields), func(f mcp.Field) bool { return wrong[f.Name] == "" })
			continue
		}
		for _, f := range open {
			wrong[f.Name] = say.Say(text.AskedMisfit)
		}
	}
	return mcp.Reply{Action: mcp.Cancel}, nil
}

// secretWords are parts of what secrets are called; a field may be called so for other
// reasons, and the person decides.
var secretWords = []string{"password", "passwd", "passphrase", "passcode", "secret", "accesstoken", "authtoken", "apitoken", "apikey", "privatekey", "credential", "cvv", "onetimecode", "비밀번호", "암호", "인증번호"}

// wantsSecret reports whether a value of a form looks as if it were a secret.
func wantsSecret(f mcp.Field) bool {
	said := strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(f.Name + "\n" + f.Title + "\n" + f.About))
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(said, w) })
}

// titleOf is what a value of a form is called: always by its own name too.
func titleOf(f mcp.Field) string {
	if f.Title == "" || f.Title == f.Name {
		return f.Name
	}
	return f.Title + " (" + f.Name + ")"
}

// asField is the question for one value of a form.
func asField(say text.Catalog, f mcp.Field, wrong string) userQuestion {
	q, lines := userQuestion{Multi: f.Many}, []string{titleOf(f)}
	if f.About != "" {
		lines[0] += ": " + f.About
	}
	if wrong != "" {
		lines = append(lines, wrong)
	}
	kind := f.Type
	if f.Format != "" {
		kind += " " + f.Format
	}
	need := text.AskedOptional
	if f.Required {
		need = text.AskedRequired
	}
	lines = append(lines, say.Say(need, "type", kind))
	switch labels := labelsOf(f); {
	case f.Type == "boolean":
		q.Options = options(say.Say(text.AskedYes), say.Say(text.AskedNo))
	case len(labels) > askedValues-1:
		lines = append(lines, say.Say(text.AskedValues, "values", strings.Join(labels, ", ")))
		q.Options = options(labels[:askedValues-1]...)
	default:
		q.Options = options(labels...)
	}
	if label := usualOf(f); label != "" {
		lines = append(lines, say.Say(text.AskedUsual, "value", label))
	}
	if !f.Required || len(f.Default) > 0 {
		q.Options = append(q.Options, userOption{Label: say.Say(text.AskedLeave)})
	}
	if len(q.Options) < askedValues {
		q.Options = append(q.Options, userOption{Label: say.Say(text.AskedDecline)})
	}
	if len(q.Options) < 2 {
		q.Options = append(q.Options, userOption{Label: say.Say(text.AskedCancel)})
	}
	seen := map[string]bool{}
	q.Options = slices.DeleteFunc(q.Options, func(o userOption) bool { was := seen[o.Label]; seen[o.Label] = true; return was })
	q.Question = strings.Join(lines, "\n")
	return q
}

// labelsOf is how the values are called out of which a person chooses: no two the same.
func labelsOf(f mcp.Field) []string {
	times := map[string]int{}
	for _, o := range f.Options {
		times[o.Title]++
	}
	var all []string
	for _, o := range f.Options {
		if o.Title == "" || times[o.Title] > 1 {
			all = append(all, o.Value)
		} else {
			all = append(all, o.Title)
		}
	}
	return all
}

// isValue reports whether a value of a form is called so.
func isValue(f mcp.Field, said string) bool { return slices.Contains(labelsOf(f), said) }

// usualOf is what holds where a person leaves a value empty.
func usualOf(f mcp.Field) string {
	var s string
	if json.Unmarshal(f.Default, &s) == nil {
		return s
	}
	return string(f.Default)
}

// valueOf is the value that an answer stands for; given is false for one that is left empty.
func valueOf(say text.Catalog, f mcp.Field, said string) (v any, given bool, err error) {
	if said = strings.TrimSpace(said); said == "" || said == say.Say(text.AskedLeave) && !isValue(f, said) {
		return nil, false, nil
	}
	misfit := errors.New(say.Say(text.AskedMisfit))
	switch {
	case f.Many:
		list := []any{}
		for word := range strings.SplitSeq(said, ", ") {
			value, ok := optionOf(f, word)
			if !ok {
				return nil, false, misfit
			}
			list = append(list, value)
		}
		return list, true, nil
	case len(f.Options) > 0:
		value, ok := optionOf(f, said)
		if !ok {
			return nil, false, misfit
		}
		return value, true, nil
	case f.Type == "boolean":
		switch strings.ToLower(said) {
		case strings.ToLower(say.Say(text.AskedYes)), "yes", "y", "true":
			return true, true, nil
		case strings.ToLower(say.Say(text.AskedNo)), "no", "n", "false":
			return false, true, nil
		}
		return nil, false, misfit
	case f.Type == "integer":
		n, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			return nil, false, misfit
		}
		return n, true, nil
	case f.Type == "number":
		if !json.Valid([]byte(said)) {
			return nil, false, misfit
		}
		n, err := strconv.ParseFloat(said, 64)
		if err != nil {
			return nil, false, misfit
		}
		return n, true, nil
	}
	return said, true, nil
}

// optionOf is the value that somebody means, by its name or as the server has it.
func optionOf(f mcp.Field, said string) (string, bool) {
	if i := slices.Index(labelsOf(f), said); i >= 0 {
		return f.Options[i].Value, true
	}
	i := slices.IndexFunc(f.Options, func(o mcp.Option) bool { return strings.EqualFold(o.Value, said) })
	if i < 0 {
		return "", false
	}
	return f.Options[i].Value, true
}

// sample puts a question of a server to the model, if it may be.
func (c *connected) sample(ctx context.Context, server string, q agent.Question) (agent.Answer, error) {
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
	return c.reach.Ask(ctx, q)
}

// sampler returns what puts questions of servers to the model; nil = there is none.
func (c *connected) sampler() func(context.Context, string, agent.Question) (agent.Answer, error) {
	if c.app.cfg.NoAI {
		return nil
	}
	return c.sample
}

// finished tells the hooks that what a person does at an address of a server is finished.
func (c *connected) finished(server string) {
	c.app.hooks.Of(c.session).Notify("elicitation_complete", text.For(c.app.cfg.Language).Say(text.HookElicitDone, "server", c.prefix+server))
}

// maySample decides on a question to the model as on a call of a tool of the server. What a
// mode allows counts only for servers that a person has added.
func (c *connected) maySample(ctx context.Context, server string, q agent.Question) error {
	input, err := json.Marshal(map[string]any{"maxTokens": q.MaxTokens})
	if err != nil {
		return fmt.Errorf("writing a question of a server: %w", err)
	}
	d := c.pol.Decide(loop.Propose(agent.Call{Tool: c.set.ToolName(server, sampling), Input: input}, agent.Spec{Class: agent.Unsafe}, agent.Effects{}))
	c.mu.Lock()
	granted := c.granted[server]
	c.mu.Unlock()
	switch {
	case d.Verdict == agent.Deny:
		return fmt.Errorf("it is denied: %s", d.Reason)
	case d.Verdict == agent.Allow && (d.By == "rule" || c.trusts(server)), granted:
		return nil
	case !c.asks:
		return errors.New("no rule allows it, and nobody is there to be asked")
	case !c.mayPut(server):
		return errors.New("the person has been asked too often")
	}
	say, words := text.For(c.app.cfg.Language), []string{q.System}
	for _, m := range q.Messages {
		words = append(words, m.Text())
	}
	begins := []rune(strings.TrimSpace(strings.Join(words, "\n")))
	begins = begins[:min(len(begins), shownTalk)]
	shown := c.prefix + server
	question := say.Say(text.AskedModel, "server", shown, "n", strconv.Itoa(len(q.Messages)), "tokens", strconv.Itoa(q.MaxTokens), "text", c.app.patterns.Redact(string(begins)))
	n, err := c.choose(ctx, shown, question, say.Say(text.AskedOnce), say.Say(text.AskedSession), say.Say(text.AskedDecline))
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

// trusts reports whether a person, and no project or plugin, has added a server.
func (c *connected) trusts(server string) bool {
	return slices.ContainsFunc(c.set.Status(), func(s mcp.Status) bool { return s.Server.Name == server && ownServer(s.Server) })
}

// ownServer reports whether a person has added a server himself.
func ownServer(s servers.Server) bool {
	return s.Scope != servers.Project && s.Scope != servers.Plugin
}

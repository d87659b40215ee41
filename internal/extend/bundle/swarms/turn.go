package swarms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/kernel/plug"
)

// What extensions are shown of a conversation.
const (
	newestShown  = 40   // messages
	longestShown = 8000 // bytes of the text of one
)

// fromExtensions is the source of what extensions add to a conversation.
const fromExtensions = "extensions"

// standing is where the turn of a session is, for its extensions.
type standing struct {
	build plug.Session
	about json.RawMessage // of the agent: what it is made of

	at      sync.Mutex
	turn    string // guarded by at, as all below is
	step    int    // from 1
	listed  []exthost.CatalogItem
	wanted  []exthost.CatalogItem // the catalog as those around a step have it; nil = as it is
	said    []agent.ContextAdded  // what is added before the next request
	kept    map[string]string     // what the log has of what extensions keep
	catalog func() plug.Catalog
	deaf    func() // ends what tells extensions of the log; nil = nothing does
}

// knows takes what an agent is made of.
func (r *Session) knows(e *bundle.Effective) {
	about := struct {
		Agent      string   `json:"agentName"`
		Model      string   `json:"model,omitempty"`
		Tools      []string `json:"tools"`
		Extensions []string `json:"extensions"`
	}{Agent: r.agent, Tools: []string{}, Extensions: []string{}}
	if e.Model != nil {
		about.Model = e.Model.Name
	}
	for _, t := range e.Tools {
		about.Tools = append(about.Tools, t.Name)
	}
	for _, x := range r.ext.cfg.Code.left(e) {
		about.Extensions = append(about.Extensions, x.Name)
	}
	r.about, _ = json.Marshal(about) // names
	r.kept = map[string]string{}
	for name, state := range r.build.Kept {
		r.kept[name] = string(state)
	}
}

// note tells people what is wrong with extensions.
func (r *Session) note(text string) {
	if err := r.build.Record(agent.Note{Level: "warn", Code: "extensions", Text: r.ext.cfg.Redact(text)}); err != nil {
		r.ext.cfg.Logger.Warn("a note of extensions", "note", text, "error", err)
	}
}

// moment is where the turn is.
func (r *Session) moment() exthost.Moment {
	r.at.Lock()
	defer r.at.Unlock()
	return exthost.Moment{
		Agent: r.agent, Instance: r.instance, Config: r.about,
		Turn: &exthost.Turn{ID: r.turn, Instance: r.instance, Agent: r.agent},
		Step: &exthost.Step{ID: fmt.Sprintf("%s-%d", r.turn, r.step), Index: r.step - 1, Turn: r.turn},
	}
}

// talking is a moment with the conversation.
func (r *Session) talking() exthost.Moment {
	m := r.moment()
	m.Turn.Messages = r.messages()
	return m
}

// aroundTurn has extensions around a turn.
func (r *Session) aroundTurn(ctx context.Context, run func(context.Context) error) error {
	m := r.talking()
	m.Step = nil
	to, err := r.set.Mutate(ctx, exthost.TurnPre, m)
	if err != nil {
		return err
	}
	r.adds("", m, to)
	ran, failed := false, error(nil)
	_, err = r.set.Wrap(ctx, exthost.AtTurn, to, func(ctx context.Context, _ exthost.Moment) (json.RawMessage, error) {
		ran, failed = true, errCut
		failed = run(ctx)
		return r.outcome(map[string]any{"turn": map[string]string{"id": m.Turn.ID}}, failed)
	})
	if !ran {
		return err
	}
	if !errors.Is(failed, agent.ErrParked) && !errors.Is(failed, agent.ErrDeferred) { // it goes on another time
		r.afterwards(ctx, exthost.TurnPost, nil, failed)
		r.keep()
	}
	return failed
}

// aroundStep has extensions around a step. Tools that they have by now belong to it.
func (r *Session) aroundStep(ctx context.Context, number int, run func(context.Context) (plug.Stepped, error)) error {
	r.at.Lock()
	r.step, r.wanted = number, nil
	r.at.Unlock()
	if err := r.bring(ctx); err != nil {
		return err
	}
	r.listen()
	m := r.talking()
	to, err := r.set.Mutate(ctx, exthost.StepPre, m)
	if err != nil {
		return err
	}
	r.adds(m.Step.ID, m, to)
	to.ToolCatalog = r.items(r.catalog().Specs)
	all := to.ToolCatalog
	ran, failed, done := false, error(nil), plug.Stepped{}
	_, err = r.set.Wrap(ctx, exthost.AtStep, to, func(ctx context.Context, m exthost.Moment) (json.RawMessage, error) {
		if !equalJSON(all, m.ToolCatalog) {
			r.at.Lock()
			r.wanted = slices.Clip(m.ToolCatalog)
			r.at.Unlock()
		}
		ran, failed = true, errCut
		done, failed = run(ctx)
		return r.outcome(map[string]any{"llmResult": r.answer(done.Answer), "shouldContinue": done.More}, failed)
	})
	if !ran {
		return err
	}
	r.at.Lock()
	r.said, r.wanted = nil, nil
	r.at.Unlock()
	r.afterwards(ctx, exthost.StepPost, r.answer(done.Answer), failed)
	return failed
}

// outcome is what those around a turn or a step are told of it.
func (r *Session) outcome(about map[string]any, failed error) (json.RawMessage, error) {
	if failed != nil {
		return nil, errors.New(r.ext.cfg.Redact(failed.Error()))
	}
	return json.Marshal(about)
}

// afterwards shows extensions what has happened. Nothing of it can be changed any more.
func (r *Session) afterwards(ctx context.Context, p exthost.Point, answer *exthost.LLMResult, failed error) {
	m := r.talking()
	if p == exthost.TurnPost {
		m.Step = nil
	} else if m.Step.Result = answer; answer != nil {
		m.Step.Calls = answer.Message.Calls
	}
	if failed != nil {
		m.Error = r.ext.cfg.Redact(failed.Error())
	}
	if _, err := r.set.Mutate(context.WithoutCancel(ctx), p, m); err != nil {
		r.note(err.Error())
	}
}

// adds has what extensions have added to a conversation before the model at its next
// request. The log has it then, by the step that it belongs to.
func (r *Session) adds(step string, was, is exthost.Moment) {
	r.at.Lock()
	defer r.at.Unlock()
	for i, m := range is.Turn.Messages[len(was.Turn.Messages):] {
		r.said = append(r.said, agent.ContextAdded{
			Source: fromExtensions, Key: fmt.Sprint(was.Turn.ID, " ", step, " ", i), Title: m.Source,
			Text: r.ext.cfg.Reminder("the extension "+m.Source+":", r.ext.cfg.Redact(m.Content)),
		})
	}
}

// wants is the catalog as those around the step have it; nil = as it is.
func (r *Session) wants() []exthost.CatalogItem {
	r.at.Lock()
	defer r.at.Unlock()
	return slices.Clone(r.wanted)
}

// offer takes which tools a step has.
func (r *Session) offer(items []exthost.CatalogItem) {
	listed := make([]exthost.CatalogItem, len(items))
	for i, t := range items {
		listed[i] = exthost.CatalogItem{Name: t.Name, Description: t.Description, Source: t.Source}
	}
	r.at.Lock()
	defer r.at.Unlock()
	r.listed = listed
}

// offered are the tools of the step that runs, without their parameters.
func (r *Session) offered() []exthost.CatalogItem {
	r.at.Lock()
	defer r.at.Unlock()
	return r.listed
}

// keep puts into the log what extensions have kept since it was there last.
func (r *Session) keep() {
	for name, state := range r.set.States() {
		clean := r.ext.cfg.Redact(string(state))
		r.at.Lock()
		same := r.kept[name] == clean
		r.at.Unlock()
		if same {
			continue
		}
		if !json.Valid([]byte(clean)) {
			r.note("what the extension " + name + " keeps is not kept: it has something that looks like a secret")
			continue
		}
		if err := r.build.Record(agent.ExtensionKept{Extension: name, State: json.RawMessage(clean)}); err != nil {
			r.ext.cfg.Logger.Warn("keeping the state of an extension", "extension", name, "error", err)
			return
		}
		r.at.Lock()
		r.kept[name] = clean
		r.at.Unlock()
	}
}

// messages are the newest ones of the conversation, as extensions see them: texts without
// secrets.
func (r *Session) messages() []exthost.Message {
	all := r.build.Conversation()
	all = all[max(0, len(all)-newestShown):]
	list := make([]exthost.Message, 0, len(all))
	for _, m := range all {
		if one := r.message(m); one.Content != "" || len(one.Calls) > 0 {
			list = append(list, one)
		}
		for _, b := range m.Blocks {
			if b.Type == agent.ResultBlock && b.Result != nil {
				list = append(list, exthost.Message{Role: "tool", Content: r.shorter(b.Result.Text), Call: b.Result.ID})
			}
		}
	}
	return list
}

func (r *Session) message(m agent.Message) exthost.Message {
	one := exthost.Message{Role: string(m.Role), Content: r.shorter(m.Text()), Calls: asCalls(m.Calls())}
	for i, c := range one.Calls {
		if clean := r.ext.cfg.Redact(string(c.Arguments)); json.Valid([]byte(clean)) {
			one.Calls[i].Arguments = json.RawMessage(clean)
		} else {
			one.Calls[i].Arguments = json.RawMessage("{}")
		}
	}
	return one
}

// shorter is the beginning of a text, without secrets.
func (r *Session) shorter(text string) string {
	text = r.ext.cfg.Redact(text)
	if len(text) > longestShown {
		text = text[:longestShown] + "…"
	}
	return string([]rune(text)) // whole characters
}

// answer is what a model has said.
func (r *Session) answer(a agent.ModelAnswered) *exthost.LLMResult {
	if a.Message.Role == "" {
		return nil
	}
	return &exthost.LLMResult{Message: r.message(a.Message), Reason: string(a.Stop)}
}

func asCalls(calls []agent.Call) []exthost.ToolCall {
	list := make([]exthost.ToolCall, len(calls))
	for i, c := range calls {
		list[i] = exthost.ToolCall{ID: c.ID, Name: c.Tool, Arguments: c.Input}
	}
	return list
}

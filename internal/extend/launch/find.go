package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
)

// How long a search for a person may take with all that belongs to it, the model's
// summary included, and how many tokens that has.
const (
	findPatience = 2 * time.Minute
	findTokens   = 800
	findClosing  = 5 * time.Second
)

const searchTool = "web__search"

// find searches for a person, in a session that is made for it: its log says what
// was sent where, its gate decides, and its budget bounds the summary.
func (x *Extension) find(ctx context.Context, q query.SearchWeb) (w query.WebAnswer, err error) {
	if !x.cfg.Search {
		return w, &agent.Problem{
			Code: agent.ProblemUsage, Message: "no search engine is configured",
			Fix: `name one as "search" in your settings; a task for the model is put in quotes: dure 'find …'`,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	info, noModel, err := x.open(ctx, q)
	if err != nil {
		return w, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findClosing)
		defer cancel()
		err = errors.Join(err, x.cfg.Close(ctx, info.ID))
	}()
	reach := x.cfg.Reach(info.ID)
	w = query.WebAnswer{Session: info.ID, Query: q.Text, Results: []query.WebHit{}}
	if err := search(ctx, reach, q, &w); err != nil || q.Plain || len(w.Results) == 0 {
		return w, err
	}
	if noModel == nil {
		noModel = x.sumUp(ctx, reach, info.Model, &w)
	}
	if noModel != nil {
		w.Failed = noModel.Error()
	}
	return w, nil
}

// open opens the session. Without a model there is no summary, and noModel says
// why; the search works all the same.
func (x *Extension) open(ctx context.Context, q query.SearchWeb) (info agent.SessionInfo, noModel, err error) {
	const most = 60 // bytes of the title
	title := "find: " + strings.ToValidUTF8(q.Text[:min(len(q.Text), most)], "")
	o := agent.Open{Title: title, Workdir: x.cfg.Workdir, Edit: q.Plain || x.cfg.NoAI, Mode: x.cfg.Mode}
	if x.cfg.NoAI {
		noModel = errors.New("no model is asked")
	}
	info, err = x.cfg.Open(ctx, o)
	if err != nil && !o.Edit {
		noModel = err
		o.Edit = true
		info, err = x.cfg.Open(ctx, o)
	}
	return info, noModel, err
}

// search makes the call.
func search(ctx context.Context, reach agent.Reach, q query.SearchWeb, w *query.WebAnswer) error {
	in := map[string]any{"query": q.Text}
	if q.Count > 0 {
		in["count"] = q.Count
	}
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := reach.Invoke(ctx, agent.Invocation{Origin: "command:find", Tool: searchTool, Input: data})
	if err != nil {
		return err
	}
	if r.Status != agent.StatusOK {
		why := r.Text
		if r.Error != nil {
			why = cmp.Or(r.Error.Message, why)
		}
		return &agent.Problem{Code: agent.ProblemNetwork, Message: "nothing was searched for: " + why, Fix: "dure audit shows what decided it"}
	}
	var out struct {
		Results []query.WebHit `json:"results"`
	}
	if err := json.Unmarshal(r.Output, &out); err != nil {
		return err
	}
	w.Results = append(w.Results, out.Results...)
	return nil
}

// sumUp asks a small model what the results say.
func (x *Extension) sumUp(ctx context.Context, reach agent.Reach, model string, w *query.WebAnswer) error {
	language := map[string]string{"ko": "Korean"}[x.cfg.Language]
	answer, err := reach.Ask(ctx, agent.Question{
		Purpose: "find", Model: x.cfg.Small(model), System: AboutResults, MaxTokens: findTokens,
		Messages: []agent.Message{agent.UserText(Results(w.Query, cmp.Or(language, "that of the question"), w.Results))},
	})
	if err != nil {
		return err
	}
	w.Summary = strings.TrimSpace(answer.Message.Text())
	return nil
}

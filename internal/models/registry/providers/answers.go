package providers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/hosts"
	"dure/internal/base/keys"
	"dure/internal/kernel/plug"
)

// The question that a model is tried with.
const (
	checkLimit  = 30 * time.Second
	checkTokens = 64 // enough for a model that thinks a little first
)

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.models), plug.Storeless(x.list), plug.Storeless(x.check), plug.Storeless(x.changeKey)}
}

func (x *Extension) models(ctx context.Context, q query.ListModels) ([]agent.ModelInfo, error) {
	list := x.Models.All()
	if q.Local {
		list = append(list, x.localModels(ctx)...)
	}
	return list, nil
}

// list returns the providers and where their keys come from.
func (x *Extension) list(_ context.Context, q query.ListProviders) (list []query.ProviderInfo, err error) {
	for _, p := range x.All() {
		from := ""
		if !q.NoKeys {
			if _, from, err = x.key(p); err != nil {
				return nil, err
			}
			if from == "" && x.bearer(p) != "" {
				from = x.Origin("authToken").Where
			}
		}
		list = append(list, query.ProviderInfo{Name: p.Name, Title: p.Title, Type: p.Type, URL: hosts.Shown(p.URL), Key: from, Local: p.Local, Model: x.first(p)})
	}
	return list, nil
}

// check asks a model for one word, if it is to be asked.
func (x *Extension) check(ctx context.Context, q query.CheckModel) (query.ModelCheck, error) {
	m, err := x.For(x.Profile)(q.Model)
	if err != nil {
		return query.ModelCheck{}, err
	}
	info := m.Info()
	c := query.ModelCheck{Model: info.ID, Provider: info.Provider}
	if p, ok := x.Find(info.Provider); ok {
		c.URL = hosts.Shown(p.URL)
	}
	if q.Unasked {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	begun := time.Now()
	request := agent.Request{Model: info.ID, Messages: []agent.Message{agent.UserText("Answer with the word ok.")}, MaxTokens: checkTokens}
	for d, err := range m.Stream(ctx, request) {
		if err != nil {
			c.Class, c.Error = agent.ClassOf(err), err.Error()
			break
		}
		if c.First == 0 {
			c.First = max(time.Since(begun).Milliseconds(), 1)
		}
		if d.Final != nil {
			c.OK, c.Usage, c.Cost = true, d.Final.Usage, info.Price.Cost(d.Final.Usage)
		}
	}
	c.Millis = time.Since(begun).Milliseconds()
	return c, nil
}

// changeKey keeps the key of a provider, in the keychain unless the file is asked for or
// nothing else is there; or it forgets the key.
func (x *Extension) changeKey(_ context.Context, q query.ChangeKey) (r query.KeyChange, err error) {
	var names []string
	for _, p := range x.All() {
		if p.Name == q.Provider {
			names = nil
			break
		}
		names = append(names, p.Name)
	}
	if names != nil {
		return r, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("there is no provider %q", q.Provider), Fix: "take one of: " + fmt.Sprint(names),
		}
	}
	store := x.Keys
	if q.Key == "" {
		err = store.Delete(q.Provider)
		if r.Removed = err == nil; errors.Is(err, keys.ErrNone) {
			err = nil
		}
	} else {
		if q.File {
			store.Ring = nil
		}
		var place keys.Place
		place, err = store.Set(q.Provider, q.Key)
		r.Place = string(place)
	}
	if err != nil {
		return r, x.Keys.Problem(err)
	}
	return r, nil
}

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/hosts"
	"dure/internal/base/keys"
)

// listProviders returns the providers and where their keys come from.
func (a *App) listProviders() ([]query.ProviderInfo, error) {
	var list []query.ProviderInfo
	for _, p := range a.providers() {
		_, from, err := a.key(p)
		if err != nil {
			return nil, err
		}
		if from == "" && a.bearer(p) != "" {
			from = a.cfg.Origins["authToken"].String()
		}
		list = append(list, query.ProviderInfo{Name: p.Name, Title: p.Title, Type: p.Type, URL: hosts.Shown(p.URL), Key: from, Local: p.Local, Model: a.first(p)})
	}
	return list, nil
}

// Login keeps the key of a provider and returns where: the keychain, unless the
// file is asked for or nothing else is there.
func (a *App) Login(name, key string, file bool) (keys.Place, error) {
	p, err := a.named(name)
	if err != nil {
		return "", err
	}
	store := a.keys()
	if file {
		store.Ring = nil
	}
	place, err := store.Set(p.Name, key)
	if err != nil {
		return "", a.keysProblem(err)
	}
	return place, nil
}

// Logout forgets the key of a provider. It reports [keys.ErrNone] when none was
// kept.
func (a *App) Logout(name string) error {
	p, err := a.named(name)
	if err != nil {
		return err
	}
	return a.keys().Delete(p.Name)
}

// named returns the provider that a person names.
func (a *App) named(name string) (provider, error) {
	list := a.providers()
	if i := slices.IndexFunc(list, func(p provider) bool { return p.Name == name }); i >= 0 {
		return list[i], nil
	}
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
	}
	return provider{}, &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("there is no provider %q", name), Fix: "take one of: " + fmt.Sprint(names),
	}
}

func (a *App) keysProblem(err error) error {
	return &agent.Problem{
		Code: agent.ProblemKeys, Message: err.Error(), Err: err, Fix: "mend or remove " + a.keys().Path + ", then store the key again: dure login",
		Args: map[string]string{"path": a.keys().Path, "error": err.Error()},
	}
}

// The question that a model is tried with.
const (
	checkLimit  = 30 * time.Second
	checkTokens = 64 // enough for a model that thinks a little first
)

// checkModel asks a model for one word.
func (a *App) checkModel(ctx context.Context, name string) (query.ModelCheck, error) {
	if name == "" {
		var err error
		if name, err = a.usual(a.cfg.Profile); err != nil {
			return query.ModelCheck{}, err
		}
	}
	m, err := a.model(name)
	if err != nil {
		return query.ModelCheck{}, err
	}
	info := m.Info()
	c := query.ModelCheck{Model: info.ID, Provider: info.Provider}
	if p, ok := a.provider(info.Provider); ok {
		c.URL = hosts.Shown(p.URL)
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

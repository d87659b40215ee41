package app

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"dure/agent"
	"dure/internal/models/script"
)

// maxOut is the longest answer of a model of which nothing is known, in tokens.
const maxOut = 4096

// model returns the model that a name means.
func (a *App) model(name string) (agent.Model, error) {
	a.mu.Lock()
	m, ok := a.served[name]
	a.mu.Unlock()
	if ok {
		return m, nil
	}
	info, err := a.info(name)
	if err != nil {
		return nil, err
	}
	p, ok := a.provider(info.Provider)
	if !ok {
		return nil, &agent.Problem{
			Code:    agent.ProblemSettings,
			Message: fmt.Sprintf("the model %s is served by %q, which is no provider", info.ID, info.Provider),
			Fix:     "add it to \"providers\" in your settings, with its type and baseUrl",
			Args:    map[string]string{"path": "models", "error": "no provider " + info.Provider},
		}
	}
	if err := a.reachable(p); err != nil {
		return nil, err
	}
	m, err = a.adapter(p, info)
	if err != nil {
		return nil, err
	}
	if known, ok := a.models.Lookup(info.ID); (!ok || known.Provider != info.Provider) && (p.Name != "anthropic" || a.cfg.BaseURL == "") {
		info.ID = p.Name + "/" + info.ID
		m = elsewhere{m, info}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.served[name], a.served[info.ID] = m, m
	return m, nil
}

// elsewhere is a model whose ID means nothing, or another model, without the name
// of its provider: sessions know it by provider/ID.
type elsewhere struct {
	agent.Model
	info agent.ModelInfo
}

// Info returns the model's entry under its long name.
func (m elsewhere) Info() agent.ModelInfo { return m.info }

// Stream asks the model by the name that its provider knows.
func (m elsewhere) Stream(ctx context.Context, r agent.Request) iter.Seq2[agent.Delta, error] {
	r.Model = m.Model.Info().ID
	return m.Model.Stream(ctx, r)
}

// modelOf returns the models of a session that does one kind of work.
func (a *App) modelOf(profile string) func(name string) (agent.Model, error) {
	return func(name string) (agent.Model, error) {
		if name == "" {
			var err error
			if name, err = a.usual(profile); err != nil {
				return nil, err
			}
		}
		return a.model(name)
	}
}

// CheckModel says why a model cannot be asked, as opening a session with it would.
func (a *App) CheckModel(name string) error {
	_, err := a.model(name)
	return err
}

// usual is the model of a profile that is asked when nobody names one: that of
// the profile, that of the settings, else that of the first provider with a key,
// else the first one that is served on this machine.
func (a *App) usual(profile string) (string, error) {
	origin := a.cfg.Origins["model"]
	if w, _ := a.cfg.Work(profile); w.Model != "" && !origin.Explicit() {
		return w.Model, nil
	}
	if !origin.BuiltIn() || a.cfg.BaseURL != "" {
		return a.cfg.Model, nil
	}
	var first error
	var nameless *agent.Problem // a key whose provider has no model that is known
	for _, p := range a.providers() {
		if p.Local {
			continue
		}
		if _, err := a.keyed(p); err != nil {
			if first == nil || agent.ProblemOf(err).Code == agent.ProblemKeys {
				first = err
			}
			continue
		}
		switch m := a.first(p); {
		case m == "" && nameless == nil:
			nameless = &agent.Problem{
				Code: agent.ProblemUsage, Message: fmt.Sprintf("there is a key for %s, and no model of it to take by itself", p.Title),
				Fix: fmt.Sprintf("name one: --model %s/NAME, or providers.%s.model in your settings", p.Name, p.Name),
			}
		case m != "" && a.reachable(p) == nil:
			return m, nil
		}
	}
	if list := a.localModels(context.Background()); len(list) > 0 {
		return list[0].Provider + "/" + list[0].ID, nil
	}
	switch {
	case nameless != nil:
		return "", nameless
	case first == nil:
		return a.cfg.Model, nil
	}
	return "", first
}

// first is the model of a provider to take when none is named.
func (a *App) first(p provider) string {
	if p.Model != "" {
		return p.Name + "/" + strings.TrimPrefix(p.Model, p.Name+"/")
	}
	for _, m := range a.models.All() {
		if m.Provider == p.Name {
			return p.Name + "/" + m.ID
		}
	}
	return ""
}

// info finds the model that a name means: provider/model, or a name of the
// catalog, or one that is served on this machine. An endpoint of the user's own
// may serve models that the catalog does not have; their windows and prices are
// unknown.
func (a *App) info(name string) (agent.ModelInfo, error) {
	if info, ok := a.models.Lookup(name); ok {
		return info, nil
	}
	if prefix, rest, ok := strings.Cut(name, "/"); ok && rest != "" {
		if p, ok := a.provider(prefix); ok {
			return a.infoAt(p, rest), nil
		}
	}
	if a.cfg.BaseURL != "" {
		return agent.ModelInfo{ID: name, Provider: "anthropic", MaxOut: maxOut}, nil
	}
	for _, m := range a.localModels(context.Background()) {
		if strings.EqualFold(m.ID, name) {
			return m, nil
		}
	}
	p := &agent.Problem{
		Code:    agent.ProblemModel,
		Message: fmt.Sprintf("there is no model %q", name),
		Fix:     "see the list with: dure models; name the provider of one that is missing, as in openrouter/NAME, or add it to \"models\" in the settings",
		Args:    map[string]string{"model": name},
	}
	if near := a.models.Nearest(name); len(near) > 0 {
		p.Args["nearest"] = strings.Join(near, ", ")
		p.Message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return agent.ModelInfo{}, p
}

// infoAt is what is known of a model at a provider. What the catalog knows of the
// same model elsewhere holds for its window, not for its price.
func (a *App) infoAt(p provider, name string) agent.ModelInfo {
	info, ok := a.models.LookupAt(p.Name, name)
	if ok {
		return info
	}
	if p.Local {
		for _, m := range a.localModels(context.Background()) {
			if m.Provider == p.Name && strings.EqualFold(m.ID, name) {
				return m
			}
		}
	}
	if info, ok = a.models.Lookup(name); ok {
		if info.Provider != script.Provider {
			info.Price = nil
		}
		info.ID, info.Provider, info.Aliases = name, p.Name, nil
		return info
	}
	return agent.ModelInfo{ID: name, Provider: p.Name}
}

// small is the model for digests and the like: that of the settings, else the
// small one of the provider that a session's model is from, else that model.
func (a *App) small(model string) string {
	if a.cfg.SmallModel != "" {
		return a.cfg.SmallModel
	}
	info, err := a.info(model)
	if err != nil {
		return model
	}
	if p, ok := a.provider(info.Provider); ok && p.Small != "" && info.Provider == p.Name && a.cfg.BaseURL == "" {
		return p.Name + "/" + p.Small
	}
	return model
}

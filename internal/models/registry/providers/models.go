package providers

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// maxOut is the longest answer of a model of which nothing is known, in tokens.
const maxOut = 4096

// Model returns the model that a name means.
func (x *Extension) Model(name string) (agent.Model, error) {
	x.mu.Lock()
	m, ok := x.served[name]
	x.mu.Unlock()
	if ok {
		return m, nil
	}
	info, err := x.Info(name)
	if err != nil {
		return nil, err
	}
	p, err := x.of(info)
	if err == nil {
		err = x.reachable(p)
	}
	if err != nil {
		return nil, err
	}
	key, err := x.Key(p)
	if err != nil {
		return nil, err
	}
	dialect := x.Dialects[p.Type]
	if dialect == nil {
		dialect = x.Dialects["chat"]
	}
	m = dialect(Endpoint{Info: info, URL: p.URL, Key: key, AuthToken: x.bearer(p), Header: p.header})
	if known, ok := x.Models.Lookup(info.ID); (!ok || known.Provider != info.Provider) && (p.Name != first || x.BaseURL == "") {
		info.ID = p.Name + "/" + info.ID
		m = elsewhere{m, info}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.served[name], x.served[info.ID] = m, m
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

// For returns the models of a session that does one kind of work.
func (x *Extension) For(profile string) func(name string) (agent.Model, error) {
	return func(name string) (agent.Model, error) {
		if name == "" {
			var err error
			if name, err = x.Usual(profile); err != nil {
				return nil, err
			}
		}
		return x.Model(name)
	}
}

// Usual is the model of a profile that is asked when nobody names one: that of the profile,
// that of the settings, else that of the first provider with a key, else the first one that
// is served on this machine.
func (x *Extension) Usual(profile string) (string, error) {
	origin := x.Origin("model")
	if m := x.Work(profile); m != "" && !origin.Explicit {
		return m, nil
	}
	if !origin.BuiltIn || x.BaseURL != "" {
		return x.Config.Model, nil
	}
	var none error
	var nameless *agent.Problem // a key whose provider has no model that is known
	for _, p := range x.All() {
		if p.Local {
			continue
		}
		if _, err := x.Key(p); err != nil {
			if none == nil || agent.ProblemOf(err).Code == agent.ProblemKeys {
				none = err
			}
			continue
		}
		switch m := x.first(p); {
		case m == "" && nameless == nil:
			nameless = &agent.Problem{
				Code: agent.ProblemUsage, Message: fmt.Sprintf("there is a key for %s, and no model of it to take by itself", p.Title),
				Fix: fmt.Sprintf("name one: --model %s/NAME, or providers.%s.model in your settings", p.Name, p.Name),
			}
		case m != "" && x.reachable(p) == nil:
			return m, nil
		}
	}
	if list := x.localModels(context.Background()); len(list) > 0 {
		return list[0].Provider + "/" + list[0].ID, nil
	}
	switch {
	case nameless != nil:
		return "", nameless
	case none == nil:
		return x.Config.Model, nil
	}
	return "", none
}

// first is the model of a provider to take when none is named.
func (x *Extension) first(p Provider) string {
	if p.Model != "" {
		return p.Name + "/" + strings.TrimPrefix(p.Model, p.Name+"/")
	}
	for _, m := range x.Models.All() {
		if m.Provider == p.Name {
			return p.Name + "/" + m.ID
		}
	}
	return ""
}

// Info finds the model that a name means: provider/model, or a name of the catalog, or one
// that is served on this machine. An endpoint of the user's own may serve models that the
// catalog does not have; their windows and prices are unknown.
func (x *Extension) Info(name string) (agent.ModelInfo, error) {
	if info, ok := x.Models.Lookup(name); ok {
		return info, nil
	}
	if prefix, rest, ok := strings.Cut(name, "/"); ok && rest != "" {
		if p, ok := x.Find(prefix); ok {
			return x.infoAt(p, rest), nil
		}
	}
	if x.BaseURL != "" {
		return agent.ModelInfo{ID: name, Provider: first, MaxOut: maxOut}, nil
	}
	for _, m := range x.localModels(context.Background()) {
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
	if near := x.Models.Nearest(name); len(near) > 0 {
		p.Args["nearest"] = strings.Join(near, ", ")
		p.Message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return agent.ModelInfo{}, p
}

// infoAt is what is known of a model at a provider. What the catalog knows of the
// same model elsewhere holds for its window, not for its price.
func (x *Extension) infoAt(p Provider, name string) agent.ModelInfo {
	info, ok := x.Models.LookupAt(p.Name, name)
	if ok {
		return info
	}
	if p.Local {
		for _, m := range x.localModels(context.Background()) {
			if m.Provider == p.Name && strings.EqualFold(m.ID, name) {
				return m
			}
		}
	}
	if info, ok = x.Models.Lookup(name); ok {
		if info.Provider != script {
			info.Price = nil
		}
		info.ID, info.Provider, info.Aliases = name, p.Name, nil
		return info
	}
	return agent.ModelInfo{ID: name, Provider: p.Name}
}

// SmallFor is the model for digests and the like: that of the settings, else the small one
// of the provider that a session's model is from, else that model.
func (x *Extension) SmallFor(model string) string {
	if x.Small != "" {
		return x.Small
	}
	info, err := x.Info(model)
	if err != nil {
		return model
	}
	if p, ok := x.Find(info.Provider); ok && p.Small != "" && info.Provider == p.Name && x.BaseURL == "" {
		return p.Name + "/" + p.Small
	}
	return model
}

// Askable returns the ID of a model, which a session, if it is given, may have asked.
func (x *Extension) Askable(name string, of *plug.Session) (id string, err error) {
	m, err := x.Model(name)
	if err != nil {
		return "", err
	}
	id = m.Info().ID
	if of != nil {
		if err := x.MayAsk(of, id, name); err != nil {
			return "", err
		}
	}
	return id, nil
}

// MayAsk is an error unless a model, which somebody has named, is served by whom the session's
// own is, or by one that the settings name: what files and models say sends a conversation to
// nobody else.
func (x *Extension) MayAsk(of *plug.Session, id, name string) error {
	provider, names := x.ServedBy(id), slices.Concat([]string{x.Config.Model, x.Small}, x.Fallback, x.OfWork)
	if of.Model != nil {
		names = append(names, of.Model())
	}
	if !slices.ContainsFunc(names, func(n string) bool { return n != "" && x.ServedBy(n) == provider }) {
		return fmt.Errorf("the model %s is served by somebody that the settings do not name; name it there, or leave the model out", name)
	}
	return nil
}

// ServedBy returns the name of the provider whom a model is asked from; "" = it is looked
// for on this machine.
func (x *Extension) ServedBy(model string) string {
	if info, ok := x.Models.Lookup(model); ok {
		return info.Provider
	}
	if prefix, _, ok := strings.Cut(model, "/"); ok {
		if p, ok := x.Find(prefix); ok {
			return p.Name
		}
	}
	if x.BaseURL != "" {
		return first
	}
	return ""
}

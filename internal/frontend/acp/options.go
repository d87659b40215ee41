package acp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// The options of a session.
const (
	optionMode  = "mode"
	optionModel = "model"

	optionEffort = "effort"
)

// efforts are how much a model may think.
func efforts() []string { return []string{"low", "medium", "high"} }

// maxModels is how many models a client is offered.
const maxModels = 200

// greet tells a client what it may type, and what is wrong with the settings.
func (x *session) greet(ctx context.Context) {
	list, err := client.Query[[]query.CommandInfo](ctx, x.place.Client, query.ListCommands{Session: x.id, Language: x.s.c.Text.Language()})
	if err != nil {
		x.s.c.Logger.Warn("listing commands", "session", x.id, "error", err)
		return
	}
	out := commandsUpdate{Kind: "available_commands_update", Commands: []availableCommand{}}
	for _, c := range list {
		if c.Off != "" || c.Kind == query.CommandBuiltIn && builtIn[c.Name] == nil {
			continue
		}
		a := availableCommand{Name: c.Name, About: cmp.Or(text.OneLine(c.Description), c.Name)}
		if c.Hint != "" {
			a.Input = &commandInput{Hint: text.OneLine(c.Hint)}
		}
		out.Commands = append(out.Commands, a)
	}
	x.update(out)
	for _, n := range x.place.Notes {
		x.notice(n.Level, x.s.c.Text.Phrase(text.OneLine(n.Text)))
	}
}

// notice tells a client's person something that is no part of the conversation.
func (x *session) notice(level, words string) {
	if words == "" || x.s.can().Session.Notices == nil {
		return
	}
	switch level {
	case "warn":
		level = "warning"
	case "error":
	default:
		level = "info"
	}
	x.update(noticeUpdate{Kind: "notice", Severity: level, Title: text.Cut(words, 400)})
}

// modes are those that the session may have, and the one that it has.
func (x *session) modes() modeState {
	x.mu.Lock()
	now := cmp.Or(x.mode, agent.ModeDefault)
	x.mu.Unlock()
	out := modeState{Current: string(now)}
	for _, m := range x.place.Modes {
		out.All = append(out.All, x.s.mode(m))
	}
	if !slices.Contains(x.place.Modes, now) {
		out.All = append(out.All, x.s.mode(now))
	}
	return out
}

func (s *Server) mode(m agent.Mode) mode {
	keys := map[agent.Mode][2]text.Key{
		agent.ModeDefault:     {text.ACPDefault, text.ACPDefaultIs},
		agent.ModeAcceptEdits: {text.ACPAcceptEdits, text.ACPAcceptEditsIs},
		agent.ModePlan:        {text.ACPPlan, text.ACPPlanIs},
		agent.ModeDontAsk:     {text.ACPDontAsk, text.ACPDontAskIs},
		agent.ModeBypass:      {text.ACPBypass, text.ACPBypassIs},
	}
	k, ok := keys[m]
	if !ok {
		return mode{ID: string(m), Name: string(m)}
	}
	return mode{ID: string(m), Name: s.c.Text.Say(k[0]), Description: s.c.Text.Say(k[1])}
}

// options are what can be chosen for the session.
func (x *session) options(ctx context.Context) []configOption {
	t, modes := x.s.c.Text, x.modes()
	choice := configOption{Type: "select", ID: optionMode, Name: t.Say(text.ACPMode), Category: "mode", Current: modes.Current}
	for _, m := range modes.All {
		choice.Values = append(choice.Values, configValue{Value: m.ID, Name: m.Name, About: m.Description})
	}
	all := []configOption{choice}
	if m := x.modelOption(ctx); m.Current != "" {
		all = append(all, m)
	}
	x.mu.Lock()
	effort := cmp.Or(x.effort, x.place.Effort)
	x.mu.Unlock()
	if effort != "" {
		o := configOption{Type: "select", ID: optionEffort, Name: t.Say(text.ACPEffort), About: t.Say(text.ACPEffortIs), Category: "thought_level", Current: effort}
		for _, e := range efforts() {
			o.Values = append(o.Values, configValue{Value: e, Name: t.Word(e)})
		}
		all = append(all, o)
	}
	return all
}

// modelOption offers the models of the providers that can be asked.
func (x *session) modelOption(ctx context.Context) configOption {
	x.mu.Lock()
	now, list := x.model, x.models
	x.mu.Unlock()
	if list == nil {
		list = x.reachable(ctx)
		x.mu.Lock()
		x.models = list
		x.mu.Unlock()
	}
	out := configOption{Type: "select", ID: optionModel, Name: x.s.c.Text.Say(text.ACPModel), Category: "model", Current: now}
	for _, m := range list {
		if m.ID == now || slices.Contains(m.Aliases, now) {
			out.Current = m.ID
		}
		out.Values = append(out.Values, configValue{Value: m.ID, Name: cmp.Or(m.Name, m.ID), About: m.Provider})
	}
	if now != "" && !slices.ContainsFunc(out.Values, func(v configValue) bool { return v.Value == out.Current }) {
		out.Values = append([]configValue{{Value: now, Name: now}}, out.Values...)
	}
	return out
}

// reachable are the models whose providers have a key, or need none.
func (x *session) reachable(ctx context.Context) []agent.ModelInfo {
	models, err := client.Query[[]agent.ModelInfo](ctx, x.place.Client, query.ListModels{})
	if err != nil {
		x.s.c.Logger.Warn("listing models", "error", err)
		return nil
	}
	providers, err := client.Query[[]query.ProviderInfo](ctx, x.place.Client, query.ListProviders{})
	if err != nil {
		x.s.c.Logger.Warn("listing providers", "error", err)
		return nil
	}
	keyed := map[string]bool{}
	for _, p := range providers {
		keyed[p.Name] = p.Key != "" || p.Local
	}
	models = slices.DeleteFunc(slices.Clone(models), func(m agent.ModelInfo) bool { return !keyed[m.Provider] })
	return models[:min(len(models), maxModels)]
}

// setMode changes the mode of a session.
func (s *Server) setMode(ctx context.Context, in ofSession) (any, error) {
	x, err := s.need(in.Session)
	if err != nil {
		return nil, err
	}
	return struct{}{}, x.set(ctx, optionMode, in.Mode)
}

// setOption changes an option of a session.
func (s *Server) setOption(ctx context.Context, in ofSession) (any, error) {
	x, err := s.need(in.Session)
	if err != nil {
		return nil, err
	}
	value, ok := in.Value.(string)
	if !ok {
		return nil, badParams("value: a text is wanted")
	}
	if err := x.set(ctx, in.Option, value); err != nil {
		return nil, err
	}
	return configOut{Options: x.options(ctx)}, nil
}

// set changes an option. What the session says of it comes as an event, too.
func (x *session) set(ctx context.Context, option, value string) error {
	var c agent.Change
	switch option {
	case optionMode:
		i := slices.IndexFunc(x.place.Modes, func(m agent.Mode) bool { return strings.EqualFold(string(m), value) })
		if i < 0 {
			return badParams("there is no mode %q here", text.Cut(text.OneLine(value), 80))
		}
		c.Mode = x.place.Modes[i]
	case optionModel:
		if value == "" {
			return badParams("value: a model is wanted")
		}
		c.Model = value
	case optionEffort:
		if !slices.Contains(efforts(), value) {
			return badParams("there is no effort %q", text.Cut(text.OneLine(value), 80))
		}
		c.Effort = value
	default:
		return badParams("there is no option %q", text.Cut(text.OneLine(option), 80))
	}
	if err := x.sess.Send(ctx, c); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mode, x.model, x.effort = cmp.Or(c.Mode, x.mode), cmp.Or(c.Model, x.model), cmp.Or(c.Effort, x.effort)
	return nil
}

// choose carries out a command that names an option, or says what there is to choose from.
func (x *session) choose(ctx context.Context, option, value string) (words, stop string, err error) {
	if value != "" {
		if err := x.set(ctx, option, value); err != nil {
			return "", "", err
		}
		return "", "", nil
	}
	for _, o := range x.options(ctx) {
		if o.ID == option {
			lines := []string{o.Name + ": " + o.Current, ""}
			for _, v := range o.Values {
				lines = append(lines, "- "+v.Value)
			}
			return strings.Join(lines, "\n"), "", nil
		}
	}
	return "", "", nil
}

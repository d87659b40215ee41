package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/state/transcript"
)

var (
	errNotOpen = errors.New("the session is not open")
	errNoAPI   = errors.New("this program cannot do that")
)

// empty is the answer that has nothing to say.
type empty struct{}

// send has a command sent beside the loop, which others may have a word on.
func (h *Host) sends(c agent.Command) (any, error) {
	if h.sess == nil {
		return nil, errNotOpen
	}
	s := h.sess
	return slow(func(ctx context.Context) (any, error) { return empty{}, s.Send(ctx, c) }), nil
}

// setMode sets the permission mode. It holds for the call that is decided on next.
func (h *Host) setMode(in struct {
	Mode string `json:"mode"`
},
) (any, error) {
	mode := modeOf(in.Mode)
	modes := []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeBypass}
	if !slices.Contains(modes, mode) {
		return nil, fmt.Errorf("there is no permission mode %q; there are %s", in.Mode, joined(modes))
	}
	if err := h.mayBe(mode); err != nil {
		return nil, err
	}
	if err := h.sess.Send(h.ctx, agent.Change{Mode: mode}); err != nil {
		return nil, err
	}
	return map[string]string{"mode": string(mode)}, nil
}

// mayBe reports why a mode cannot be set: permissions are switched off where the host has
// said at the beginning that they may be.
func (h *Host) mayBe(mode agent.Mode) error {
	if mode == agent.ModeBypass && !h.prog.Bypass {
		return errors.New("bypassPermissions can be set where the program began with --allow-dangerously-skip-permissions")
	}
	return nil
}

func joined[S ~string](list []S) string {
	var words []string
	for _, s := range list {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// setModel has another model asked from the next request on; without one, that with which
// the session began.
func (h *Host) setModel(in struct {
	Model *string `json:"model"`
},
) (any, error) {
	name := h.sess.Info.Model
	if in.Model != nil && *in.Model != "" && *in.Model != "default" {
		name = *in.Model
	}
	return h.sends(agent.Change{Model: name})
}

// setThinking says how many tokens the model may think for.
func (h *Host) setThinking(in struct {
	Tokens *int `json:"max_thinking_tokens"`
},
) (any, error) {
	const most = 1_000_000
	if in.Tokens != nil && (*in.Tokens < 0 || *in.Tokens > most) {
		return nil, fmt.Errorf("max_thinking_tokens is %d: it has to be from 0 to %d", *in.Tokens, most)
	}
	return empty{}, h.prog.API.SetThinking(h.session, in.Tokens)
}

// efforts are how many tokens of thinking stand for an effort.
var efforts = map[string]int{"low": 2_048, "medium": 8_192, "high": 24_576}

// applySettings puts settings over those of the command line. Either all of them hold, or none:
// what the session has a word on, the model and the mode, is put to it when all else is found
// good, and the rest holds when it has agreed.
func (h *Host) applySettings(in struct {
	Settings map[string]json.RawMessage `json:"settings"`
},
) (any, error) {
	if in.Settings == nil {
		return nil, errors.New("settings has to be an object")
	}
	model, hasModel := in.Settings["model"]
	effort, hasEffort := in.Settings["effortLevel"]
	delete(in.Settings, "model")
	delete(in.Settings, "effortLevel")
	var tokens *int
	var err error
	if hasEffort {
		if tokens, err = effortIn(effort); err != nil {
			return nil, err
		}
	}
	var name *string
	if hasModel && json.Unmarshal(model, &name) != nil {
		return nil, errors.New("model has to be a text")
	}
	mode, err := modeIn(in.Settings)
	if err == nil {
		err = h.mayBe(mode)
	}
	if err != nil {
		return nil, err
	}
	change := agent.Change{Mode: mode}
	if hasModel {
		if change.Model = h.sess.Info.Model; name != nil && *name != "" {
			change.Model = *name
		}
	}
	var over json.RawMessage
	if len(in.Settings) > 0 {
		if over, err = json.Marshal(in.Settings); err == nil {
			err = h.prog.API.ApplySettings(over, true)
		}
		if err != nil {
			return nil, err
		}
	}
	s, p, id := h.sess, h.prog.API, h.session
	rest := func() (any, error) {
		if over != nil {
			if err := p.ApplySettings(over, false); err != nil {
				return nil, err
			}
		}
		if hasEffort {
			return empty{}, p.SetThinking(id, tokens)
		}
		return empty{}, nil
	}
	switch {
	case hasModel: // others may have a word on that
		return slow(func(ctx context.Context) (any, error) {
			if err := s.Send(ctx, change); err != nil {
				return nil, err
			}
			return rest()
		}), nil
	case mode != "":
		if err := s.Send(h.ctx, change); err != nil {
			return nil, err
		}
	}
	return rest()
}

// effortIn is how many tokens of thinking an effort stands for; nil = as without one.
func effortIn(effort json.RawMessage) (*int, error) {
	var name *string
	if err := json.Unmarshal(effort, &name); err != nil {
		return nil, errors.New("effortLevel has to be a text")
	}
	if name == nil {
		return nil, nil
	}
	n, ok := efforts[*name]
	if !ok {
		return nil, fmt.Errorf("there is no effort %q; there are low, medium and high", *name)
	}
	return &n, nil
}

// modeIn is the permission mode that settings name; "" = they name none.
func modeIn(settings map[string]json.RawMessage) (agent.Mode, error) {
	if settings["permissions"] == nil {
		return "", nil
	}
	var p struct {
		Mode string `json:"defaultMode"`
	}
	if err := json.Unmarshal(settings["permissions"], &p); err != nil {
		return "", fmt.Errorf("permissions: %w", err)
	}
	return modeOf(p.Mode), nil
}

// getSettings shows the settings that have a value, and what is in force of them.
func (h *Host) getSettings(struct{}) (any, error) {
	return slow(func(ctx context.Context) (any, error) {
		model, err := h.modelNow(ctx)
		if err != nil {
			return nil, err
		}
		list, err := client.Query[[]query.Setting](ctx, h.prog.Client, query.ListSettings{Masked: true})
		if err != nil {
			return nil, err
		}
		effective, layers := map[string]any{}, map[string]map[string]any{}
		for _, s := range list {
			place(effective, s.Key, s.Value)
			layer := s.Origin.Layer
			if layers[layer] == nil {
				layers[layer] = map[string]any{}
			}
			place(layers[layer], s.Key, s.Value)
		}
		type source struct {
			Source   string         `json:"source"`
			Settings map[string]any `json:"settings"`
		}
		sources := []source{}
		for _, layer := range []string{"user", "project", "local", "inline", "flags", "environment", "managed"} {
			if layers[layer] != nil {
				sources = append(sources, source{settingsSource(layer), layers[layer]})
			}
		}
		return map[string]any{"effective": effective, "sources": sources, "applied": map[string]any{"model": model}}, nil
	}), nil
}

// modelNow is the model that is asked next, by all that the session has stored when it is
// called: what was set before counts, also where the loop has not come to it. It runs beside
// that.
func (h *Host) modelNow(ctx context.Context) (string, error) {
	ctx, done := context.WithTimeout(ctx, closeTime)
	defer done()
	info, err := client.Query[agent.SessionInfo](ctx, h.prog.Client, agent.FindSession{Name: h.session})
	if err != nil {
		return "", err
	}
	return h.reached.wait(ctx, info.Head)
}

// reached is how far the loop is in the events of the session, for those that answer beside it.
type reached struct {
	mu    sync.Mutex
	seq   int64         // the newest event that the loop has taken in; guarded by mu
	model string        // after it; guarded by mu
	moved chan struct{} // closed when that changes; nil = nobody waits; guarded by mu
}

// at notes what the loop has taken in.
func (r *reached) at(seq int64, model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seq, r.model = seq, model; r.moved != nil {
		close(r.moved)
		r.moved = nil
	}
}

// wait waits until the loop has taken in an event, and returns the model after it.
func (r *reached) wait(ctx context.Context, seq int64) (string, error) {
	for {
		r.mu.Lock()
		if r.seq >= seq {
			defer r.mu.Unlock()
			return r.model, nil
		}
		if r.moved == nil {
			r.moved = make(chan struct{})
		}
		moved := r.moved
		r.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return "", errors.New("the session has not told of all that was changed in it")
		}
	}
}

// updateSettings writes settings of the user's and of the folder's. There is one style of output
// only, and it is the one that is in force.
func (h *Host) updateSettings(in struct {
	Source   string            `json:"source"`
	Settings map[string]string `json:"settings"`
},
) (any, error) {
	allowed := map[string]string{"localSettings": "outputStyle", "userSettings": "effortLevel"}[in.Source]
	if allowed == "" {
		return nil, fmt.Errorf("settings of %q are not written; those of localSettings and userSettings are", in.Source)
	}
	for key := range in.Settings {
		if key != allowed {
			return nil, fmt.Errorf("%s cannot be written into %s; %s can", key, in.Source, allowed)
		}
	}
	value, has := in.Settings[allowed]
	switch {
	case !has:
		return nil, errors.New("settings names nothing")
	case allowed == "outputStyle" && value != outputStyle:
		return nil, fmt.Errorf("there is no output style %q; there is %s", value, outputStyle)
	case allowed == "outputStyle":
		return empty{}, nil
	}
	if value == "xhigh" {
		value = "high"
	}
	if _, ok := efforts[value]; !ok {
		return nil, fmt.Errorf("there is no effort %q to be kept; there are low, medium and high", value)
	}
	c, q := h.prog.Client, query.ChangeSetting{Do: query.SettingSet, Scope: "user", Key: "effort", Value: value}
	return slow(func(ctx context.Context) (any, error) {
		_, err := client.Query[query.SettingChange](ctx, c, q)
		return empty{}, err
	}), nil
}

// registerRoot takes in that a folder below those of the session is one of its own: what is
// there counts as part of the workspace in any case, and what it says is read again.
func (h *Host) registerRoot(in struct {
	Directory string `json:"directory"`
	Skills    bool   `json:"reload_skills"`
	Plugins   bool   `json:"reload_plugins"`
},
) (any, error) {
	p, id := h.prog.API, h.session
	if in.Plugins {
		h.plugins = nil
	}
	return slow(func(context.Context) (any, error) {
		if err := p.Below(id, in.Directory); err != nil {
			return nil, err
		}
		return empty{}, p.Reload(id, in.Plugins, in.Skills || in.Plugins)
	}), nil
}

// settingsSource is a layer of settings as hosts name it.
func settingsSource(layer string) string {
	switch layer {
	case "user", "project", "local":
		return layer + "Settings"
	case "managed":
		return "policySettings"
	case "session", "granted":
		return "session"
	}
	return "flagSettings"
}

// place puts a value where its path leads: a.b becomes {"a": {"b": value}}.
func place(in map[string]any, path string, v any) {
	head, rest, more := strings.Cut(path, ".")
	if !more {
		in[head] = v
		return
	}
	below, ok := in[head].(map[string]any)
	if !ok {
		below = map[string]any{}
		in[head] = below
	}
	place(below, rest, v)
}

// rename gives the session a title.
func (h *Host) rename(in struct {
	Title   string `json:"title"`
	Session string `json:"session_id"`
},
) (any, error) {
	switch {
	case strings.TrimSpace(in.Title) == "":
		return nil, errors.New("title is empty")
	case in.Session != "" && in.Session != h.session:
		return nil, fmt.Errorf("the session %q is not the one that runs here", in.Session)
	}
	return h.sends(agent.Change{Title: strings.TrimSpace(in.Title)})
}

// colors are those that hosts give sessions; the last two take the color away.
var colors = []string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan", "default", "gray"}

// setColor keeps the color in which hosts show the session, as one of its tags.
func (h *Host) setColor(in struct {
	Color string `json:"color"`
},
) (any, error) {
	if !slices.Contains(colors, in.Color) {
		return nil, fmt.Errorf("there is no color %q; there are %s", in.Color, strings.Join(colors, ", "))
	}
	ctx, done := context.WithTimeout(h.ctx, closeTime)
	defer done()
	now, err := client.Query[agent.SessionInfo](ctx, h.prog.Client, agent.FindSession{Name: h.session}) // others give it tags too
	if err != nil {
		return nil, err
	}
	tags := slices.DeleteFunc(slices.Clone(now.Tags), func(t string) bool { return strings.HasPrefix(t, transcript.ColorTag) })
	if in.Color != "default" && in.Color != "gray" {
		tags = append(tags, transcript.ColorTag+in.Color)
	}
	if err := h.sess.Send(ctx, agent.Change{Tags: &tags}); err != nil {
		return nil, err
	}
	return map[string]string{"color": in.Color}, nil
}

// noted takes what changes nothing here.
func (h *Host) noted(struct{}) (any, error) { return empty{}, nil }

// cancelMessage takes back a message that no turn has begun with.
func (h *Host) cancelMessage(in struct {
	ID string `json:"message_uuid"`
},
) (any, error) {
	i := slices.IndexFunc(h.queue, func(m message) bool { return m.ID == in.ID })
	if i >= 0 {
		h.queue = slices.Delete(h.queue, i, i+1)
		delete(h.seen, in.ID) // it may come again, as it is then
	}
	return map[string]bool{"cancelled": i >= 0}, nil
}

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/internal/base/jsonc"
)

// Hooks are the hooks of all layers as their files have them, and what holds for all of
// them. What they mean is for others to say.
type Hooks struct {
	Sources []RawHooks // the administrator's first, then the weaker layers before the stronger

	Off         bool // no hooks but the administrator's run
	ManagedOff  bool // nor do those
	ManagedOnly bool // only the administrator's, and those of plugins that he has switched on

	// URLs are patterns of addresses that hooks may ask, and OwnURLs those of them that
	// no repository has named; nil = any.
	URLs, OwnURLs []string

	// Vars are variables of the environment that headers of hooks may have, as far as a
	// hook asks for them; nil = any.
	Vars []string

	// Leave are variables that hooks may leave behind for later commands although they
	// decide which programs run: PATH and the like.
	Leave []string
}

// RawHooks is the value of "hooks" in one source.
type RawHooks struct {
	Layer  Layer
	File   string // "" = it is in no file
	Theirs bool   // the file is one of a .claude folder
	JSON   json.RawMessage
}

// FileHooks are [Hooks] as a file writes them.
type FileHooks struct {
	Hooks           json.RawMessage `json:"hooks"`
	DisableHooks    *bool           `json:"disableAllHooks"`
	ManagedHooks    *bool           `json:"allowManagedHooksOnly"`
	HookURLs        []string        `json:"allowedHttpHookUrls"`
	HookHeaderVars  []string        `json:"httpHookAllowedEnvVars"`
	HookLeavingVars []string        `json:"hookEnvVars"`
}

// maxHookList bounds each list about hooks.
const maxHookList = 1000

// hooks adds those of a layer.
func (l *loader) hooks(ly layer, s Settings) error {
	h, to := s.FileHooks, &l.cfg.Hooks
	if len(h.Hooks) > 0 && string(h.Hooks) != "null" {
		to.Sources = append(to.Sources, RawHooks{Layer: ly.kind, File: ly.path, Theirs: ly.compat, JSON: slices.Clone(h.Hooks)})
	}
	if v := h.DisableHooks; v != nil {
		l.set(ly, "disableAllHooks", to.Off != *v)
		to.Off = *v
		if ly.kind == Managed {
			to.ManagedOff = *v
		}
	}
	if v := h.ManagedHooks; v != nil {
		if ly.kind != Managed {
			l.inert(ly, "allowManagedHooksOnly", ly.where("allowManagedHooksOnly"), Locked, "")
		} else {
			l.set(ly, "allowManagedHooksOnly", to.ManagedOnly != *v)
			to.ManagedOnly = *v
		}
	}
	for _, list := range []struct {
		key    string
		values []string
		to     []*[]string
	}{
		{"allowedHttpHookUrls", h.HookURLs, []*[]string{&to.URLs, &to.OwnURLs}},
		{"httpHookAllowedEnvVars", h.HookHeaderVars, []*[]string{&to.Vars}},
		{"hookEnvVars", h.HookLeavingVars, []*[]string{&to.Leave}},
	} {
		if list.values == nil {
			continue
		}
		l.set(ly, list.key, len(list.values) > 0)
		for i, v := range list.values {
			if v == "" || len(v) > maxRule || i >= maxHookList {
				return l.invalidItem(ly, list.key, i, v, fmt.Sprintf("a text, and one of at most %d", maxHookList))
			}
		}
		for i, list2 := range list.to {
			if i == 1 && !ly.own() {
				continue
			}
			if *list2 = union(*list2, list.values); *list2 == nil {
				*list2 = []string{}
			}
		}
	}
	return nil
}

// restrictHooks takes out what only a trusted folder may say about hooks, and what none
// may.
func (l *loader) restrictHooks(ly layer, s *Settings) {
	drop := func(key string, why Reason) {
		l.inert(ly, key, ly.where(key), why, "")
	}
	h := &s.FileHooks
	if h.HookLeavingVars != nil {
		drop("hookEnvVars", Foreign)
		h.HookLeavingVars = nil
	}
	if l.permits(ly) {
		return
	}
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"hooks", len(h.Hooks) > 0},
		{"disableAllHooks", h.DisableHooks != nil},
		{"allowedHttpHookUrls", h.HookURLs != nil},
		{"httpHookAllowedEnvVars", h.HookHeaderVars != nil},
	} {
		if f.given {
			drop(f.key, Untrusted)
		}
	}
	*h = FileHooks{ManagedHooks: h.ManagedHooks}
}

// finishHooks puts the administrator's hooks before all others.
func (l *loader) finishHooks() {
	slices.SortStableFunc(l.cfg.Hooks.Sources, func(a, b RawHooks) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[a.Layer == Managed] - rank[b.Layer == Managed]
	})
}

// PlaceOf names where a JSON pointer leads in a file of settings, as file:line:column, as
// far as it leads; the file alone when it cannot be read.
func PlaceOf(path, pointer string) string {
	data, err := ReadFile(path)
	if err != nil {
		return path
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	text, err := jsonc.Plain(data)
	if err != nil {
		return path
	}
	v, err := jsonc.Parse(text)
	if err != nil {
		return path
	}
	at := v.Start
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		i, err := strconv.Atoi(part)
		switch m := slices.IndexFunc(v.Members, func(m jsonc.Member) bool { return loose(m.Key) == loose(part) }); {
		case m >= 0:
			at, v = v.Members[m].Start, v.Members[m].Value
		case err == nil && i >= 0 && i < len(v.Items):
			at, v = v.Items[i].Start, v.Items[i]
		default:
			v = jsonc.Value{}
		}
	}
	ly := layer{path: path, data: data, lines: starts(data)}
	return ly.place(int64(at) + 1)
}

// loose is the form in which keys are compared that may be spelled in several ways.
func loose(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

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

// maxHookList bounds each list about hooks.
const maxHookList = 1000

// hooks adds those of a layer.
func (l *loader) hooks(e entry) error {
	if raw := e.said.raw; string(raw) != "null" && !e.refused() {
		l.cfg.Hooks.Sources = append(l.cfg.Hooks.Sources, RawHooks{Layer: e.ly.kind, File: e.ly.path, Theirs: e.ly.compat, JSON: slices.Clone(raw)})
	}
	return nil
}

// managedHooksOff keeps that the administrator has switched off hooks, his own too.
func (l *loader) managedHooksOff(e entry, _ bool) {
	if e.ly.kind == Managed {
		l.cfg.Hooks.ManagedOff = l.cfg.Hooks.Off
	}
}

// hookList takes a list about hooks. What no repository has said is in own, too; nil = it is
// not kept.
func (l *loader) hookList(to, own *[]string) func(entry) error {
	return func(e entry) error {
		var values []string
		if said, err := e.decode(&values); err != nil || !said || e.refused() {
			return err
		}
		e.set(len(values) > 0)
		for i, v := range values {
			if v == "" || len(v) > maxRule || i >= maxHookList {
				return e.invalidItem(i, v, fmt.Sprintf("a text, and one of at most %d", maxHookList))
			}
		}
		for _, list := range []*[]string{to, own} {
			if list == nil || list == own && !e.ly.own() {
				continue
			}
			if *list = union(*list, values); *list == nil {
				*list = []string{}
			}
		}
		return nil
	}
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

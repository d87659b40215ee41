package config

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/internal/base/jsonc"
	"dure/internal/extend/hooks"
)

// maxHookList bounds each list about hooks.
const maxHookList = 1000

// hooks adds those of a layer.
func (l *loader) hooks(e entry) error {
	raw, name := e.said.raw, string(e.ly.kind)
	switch e.ly.kind {
	case Inline, Flags, Environment:
		name = "flags" // as hooks know them
	}
	if !e.refused() {
		l.cfg.Hooks.Sources = append(l.cfg.Hooks.Sources, hooks.Defined{
			Source: hooks.Source{Layer: name, File: e.ly.path, Theirs: e.ly.compat}, JSON: slices.Clone(raw), Managed: e.ly.kind == Managed,
		})
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
		if err := e.decode(&values); err != nil || e.refused() {
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
	slices.SortStableFunc(l.cfg.Hooks.Sources, func(a, b hooks.Defined) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[a.Managed] - rank[b.Managed]
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

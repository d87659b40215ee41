package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/internal/base/keys/secret"
)

// statement is what one layer says about a key.
type statement struct {
	query.SettingLayer
	file string
	full json.RawMessage // with secrets
}

// Overridden is the reason why a value does not count that a stronger layer has set.
const Overridden = "overridden"

// Explain says what each layer says about a key, the weakest first, the built-in value
// included, and what holds in the end: of lists all that counts together, of objects their
// members, of anything else the strongest layer's; of a group nothing as a whole. path is one that [Find] returns; its
// value is null when nobody says anything. Settings that cannot be read are the error of
// [Load].
func Explain(src Sources, path string) (query.ExplainedSetting, error) {
	all, c, err := listen(src)
	if err != nil {
		return query.ExplainedSetting{}, err
	}
	k, _, _ := Find(path)
	list := judge(about(k, path, all), c)
	e := query.ExplainedSetting{Key: path, Value: json.RawMessage("null"), Layers: []query.SettingLayer{}}
	for _, s := range list {
		e.Layers = append(e.Layers, s.SettingLayer)
	}
	if k.Type != Group {
		e.Value = sum(k, list)
	}
	return e, nil
}

// All returns the keys that have a value, sorted; also those that nobody has chosen
// when builtIn is set.
func All(src Sources, builtIn bool) ([]query.Setting, error) {
	said, c, err := listen(src)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, s := range said {
		paths = append(paths, s.Key)
	}
	for _, k := range Keys() {
		if builtIn && k.Default != "" {
			paths = append(paths, k.Path)
		}
	}
	slices.Sort(paths)
	list := []query.Setting{}
	for _, path := range slices.Compact(paths) {
		k, _, _ := Find(path)
		layers := judge(about(k, path, said), c)
		i := len(layers) - 1
		for i >= 0 && !layers[i].Counts {
			i--
		}
		if i >= 0 && (builtIn || layers[i].Origin.Layer != string(BuiltIn)) {
			list = append(list, query.Setting{Key: path, Value: sum(k, layers), Origin: layers[i].Origin})
		}
	}
	return list, nil
}

// listen loads the settings and keeps what each layer says.
func listen(src Sources) ([]statement, Config, error) {
	var all []statement
	src.said = &all
	c, err := load(src)
	if err == nil && src.Trusted && c.Trust == TrustNever {
		src.Trusted, all = false, nil
		c, err = load(src)
	}
	return all, c, err
}

// record keeps what a layer says.
func (l *loader) record(ly layer) {
	if l.src.said != nil {
		l.recordTree(ly, ly.said, "")
	}
}

// recordTree keeps it by keys.
func (l *loader) recordTree(ly layer, w *written, path string) {
	if w.raw == nil {
		for _, k := range w.kids {
			l.recordTree(ly, k, strings.TrimPrefix(path+"."+k.word, "."))
		}
		return
	}
	if ly.kind == Flags || ly.kind == Environment {
		o := l.origin(ly, path)
		*l.src.said = append(*l.src.said, said(path, o, w.raw, o.Where))
		return
	}
	at := ly.where(path)
	if ly.compat && len(ly.items[path]) == 1 {
		at = ly.items[path][0]
	}
	all := *l.src.said
	if n := len(all) - 1; ly.compat && n >= 0 && all[n].Key == path && all[n].file == ly.path { // one more entry of a list
		if have, more := bytes.TrimSuffix(all[n].full, []byte("]")), bytes.TrimPrefix(w.raw, []byte("[")); len(have) > 1 && len(more) < len(w.raw) {
			all[n].full = slices.Concat(have, []byte(", "), more)
			return
		}
	}
	*l.src.said = append(all, said(path, Origin{ly.kind, ly.place(at)}, w.raw, ly.place(0)))
}

func said(key string, o Origin, value json.RawMessage, file string) statement {
	return statement{query.SettingLayer{Key: key, Origin: o.shown()}, file, value}
}

// about picks what is said about a key, and what is built in. Of a member of an object
// that is one key, it is that member.
func about(k Key, path string, all []statement) []statement {
	var list []statement
	if k.Default != "" && path == k.Path {
		list = append(list, said(path, Origin{Layer: BuiltIn}, json.RawMessage(k.Default), ""))
	}
	for _, s := range all {
		switch {
		case s.Key == path || strings.HasPrefix(s.Key, path+"."):
			list = append(list, s)
		case strings.HasPrefix(path, s.Key+"."):
			var members map[string]json.RawMessage
			_ = json.Unmarshal(s.full, &members) // no object: it has no members
			if raw := members[path[len(s.Key)+1:]]; raw != nil {
				s.Key, s.full = path, raw
				list = append(list, s)
			}
		}
	}
	for i := range list {
		list[i].Value = list[i].full
		if kk, _, _ := Find(list[i].Key); kk.Secret {
			list[i].Value = json.RawMessage(`"` + secret.Hidden + `"`)
		}
	}
	return list
}

// judge says which of what is said about a key counts.
func judge(list []statement, c Config) []statement {
	for i := range list {
		s := &list[i]
		s.Counts = true
		for _, in := range c.Inert {
			if string(in.Origin.Layer) != s.Origin.Layer || !strings.HasPrefix(in.Origin.Where, s.file) || !related(in.Key, s.Key) {
				continue
			}
			if s.Why != string(Untrusted) { // which is what the user can mend
				s.Why = string(in.Why)
			}
			if in.What == "" {
				s.Counts = false
			} else if !slices.Contains(s.Left, in.What) {
				s.Left = append(s.Left, in.What)
			}
		}
		if s.Counts && len(s.Left) > 0 && len(s.Left) >= entries(s.full) {
			s.Counts = false
		}
		if of, _, _ := Find(s.Key); of.Who == AdminOnly && s.Origin.Layer != string(Managed) && s.Origin.Layer != string(BuiltIn) {
			s.Counts, s.Why = false, string(Locked)
		}
	}
	for i := range list {
		list[i] = within(list, i)
	}
	return list
}

// within says whether a stronger layer has set the same key.
func within(list []statement, i int) statement {
	s := list[i]
	if k, _, _ := Find(s.Key); many(k) || !s.Counts {
		return s
	}
	for _, later := range list[i+1:] {
		if later.Key == s.Key && later.Counts {
			s.Counts, s.Why, s.By = false, Overridden, &later.Origin
		}
	}
	return s
}

// related reports whether one key is the other, or in it.
func related(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// entries counts what is in a list or an object.
func entries(raw json.RawMessage) int {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return len(list)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		return len(members)
	}
	return 1
}

// many reports whether the values of all layers count together.
func many(k Key) bool {
	switch k.Type {
	case Texts, RuleSet, List, Object, Strings, Switches:
		return true
	}
	return false
}

// sum is what holds of all that is said.
func sum(k Key, layers []statement) json.RawMessage {
	var value json.RawMessage
	var list []json.RawMessage
	members := map[string]json.RawMessage{}
	for _, s := range layers {
		if !s.Counts {
			continue
		}
		value = s.Value
		var items []json.RawMessage
		if json.Unmarshal(s.Value, &items) == nil {
			for _, item := range items {
				if !slices.ContainsFunc(list, func(have json.RawMessage) bool { return bytes.Equal(have, item) }) && !left(s, item) {
					list = append(list, item)
				}
			}
			continue
		}
		var more map[string]json.RawMessage
		if json.Unmarshal(s.Value, &more) != nil {
			continue
		}
		for name, v := range more {
			if !slices.Contains(s.Left, name) {
				members[name] = v
			}
		}
	}
	var all any = value
	switch {
	case value == nil:
		return json.RawMessage("null")
	case many(k) && list != nil:
		all = list
	case many(k) && len(members) > 0:
		all = members
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return value
	}
	return raw
}

// left reports whether an entry of a list is one that does not count.
func left(s statement, item json.RawMessage) bool {
	var text string
	if json.Unmarshal(item, &text) == nil {
		return slices.Contains(s.Left, clip(text, maxText))
	}
	r, err := readRule(item, "")
	return err == nil && slices.Contains(s.Left, clip(r.Text, maxText))
}

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A declaration is a row of the table, with where its value goes.
type declaration interface{ key() Key }

// Row is a setting whose value is a T.
type Row[T comparable] struct {
	Key
	to     *T
	not    *bool                                  // for the opposite of a switch, in the place of to
	parse  func(e entry, text string) (T, string) // reads what is written as a text, and says what it should be; "" = it is fine
	looser func(have, v T) bool                   // of TighterOnly: v permits more, or protects less, than have
	shown  func(text string) string               // hides what an error must not show
	also   func(e entry, differs bool)            // is told of a new value
}

// row makes a setting of one value. T says its type.
func row[T comparable](path string, who Who, to *T, def, en, ko string, among ...string) *Row[T] {
	k := Key{Path: path, Type: Text, Who: who, Default: def, Among: among, Means: [2]string{en, ko}}
	switch any(to).(type) {
	case *bool:
		k.Type = Switch
	case *int, *int64:
		k.Type = Count
	case *float64:
		k.Type = Number
	}
	return &Row[T]{Key: k, to: to}
}

// opposite makes a switch that is kept the other way round: the zero value is true.
func opposite(path string, who Who, not *bool, en, ko string) *Row[bool] {
	r := row(path, who, new(bool), "true", en, ko)
	r.not = not
	return r
}

func (r *Row[T]) within(least, most float64) *Row[T] { r.Least, r.Most = least, most; return r }

func (r *Row[T]) tighter(looser func(have, v T) bool) *Row[T] { r.looser = looser; return r }

// written reads the value from a text, whatever T is.
func (r *Row[T]) written(parse func(e entry, text string) (T, string)) *Row[T] {
	r.parse, r.Type = parse, Text
	return r
}

func (r *Row[T]) shows(shown func(string) string) *Row[T] { r.shown = shown; return r }

func (r *Row[T]) then(also func(e entry, differs bool)) *Row[T] { r.also = also; return r }

func (r *Row[T]) hides() *Row[T] { r.Secret = true; return r }

func (r *Row[T]) live() *Row[T] { r.Live = true; return r }

func (r *Row[T]) key() Key {
	k := r.Key
	k.take = r.take
	return k
}

// take applies a value.
func (r *Row[T]) take(e entry) error {
	if e.refused() {
		return nil
	}
	var v T
	var text string
	into := any(&v)
	if r.parse != nil {
		into = &text
	}
	if err := e.decode(into); err != nil {
		return err
	}
	want := ""
	switch {
	case r.parse != nil:
		v, want = r.parse(e, text)
	default:
		text = fmt.Sprint(v)
		want = e.key.accepts(reflect.ValueOf(&v).Elem())
	}
	if want != "" {
		if r.shown != nil {
			text = r.shown(text)
		}
		return e.invalid(clip(text, maxText), want)
	}
	if r.not != nil {
		*r.to = any(!*r.not).(T)
	}
	before := *r.to
	if !e.ly.own() && r.looser != nil && r.looser(before, v) {
		e.drop()
		return nil
	}
	e.set(before != v)
	*r.to = v
	if r.not != nil {
		*r.not = !any(v).(bool)
	}
	if r.also != nil {
		r.also(e, before != v)
	}
	return nil
}

// accepts says what a value has to be; "" = it is that. Spaces around one of several words
// do not count.
func (k Key) accepts(v reflect.Value) (want string) {
	var n float64
	switch v.Kind() {
	case reflect.String:
		if k.Among == nil {
			return ""
		}
		v.SetString(strings.TrimSpace(v.String()))
		if slices.Contains(k.Among, v.String()) {
			return ""
		}
		return strings.Join(k.Among, ", ")
	case reflect.Int, reflect.Int64:
		n = float64(v.Int())
	case reflect.Float64:
		n = v.Float()
	default:
		return ""
	}
	switch {
	case k.Most == 0 || n >= k.Least && n <= k.Most:
		return ""
	case k.Least == 0 && k.Most >= maxDollars:
		return "0, a positive number"
	}
	plain := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	return "a number from " + plain(k.Least) + " to " + plain(k.Most)
}

// Items is a setting that is a list of texts: those of all layers count together.
type Items struct {
	Key
	to    *[]string
	check func(e entry, i int, text string) (v, want string) // of one of them; "" = it is fine
	most  int                                                // of all layers; 0 = no limit
}

// items makes a setting of a list.
func items(path string, who Who, to *[]string, en, ko string, check func(e entry, i int, text string) (v, want string)) *Items {
	return &Items{Key: Key{Path: path, Type: Texts, Who: who, Means: [2]string{en, ko}}, to: to, check: check}
}

func (r *Items) atMost(n int) *Items { r.most = n; return r }

func (r *Items) live() *Items { r.Live = true; return r }

func (r *Items) key() Key {
	k := r.Key
	k.take = r.take
	return k
}

// take adds the entries of a list.
func (r *Items) take(e entry) error {
	var all []string
	if err := e.decode(&all); err != nil || r.Who == OwnLayer && len(all) > 0 && e.refused() {
		return err
	}
	for i, text := range all {
		if r.Who == TrustedOnly && !e.l.permits(e.ly) {
			e.l.inert(e.ly, e.path, e.ly.item(e.path, i), Untrusted, text)
			continue
		}
		v, want := r.check(e, i, text)
		if want == "" && r.most > 0 && len(*r.to) >= r.most && !slices.Contains(*r.to, v) {
			want = fmt.Sprintf("one of at most %d", r.most)
		}
		if want != "" {
			return e.invalidItem(i, text, want)
		}
		e.set(false)
		*r.to = union(*r.to, []string{v})
	}
	return nil
}

// custom is a setting whose value is taken by a function of its own.
type custom struct{ Key }

// other makes such a setting.
func other(path string, t Type, who Who, def, en, ko string, take func(e entry) error) *custom {
	return &custom{Key{Path: path, Type: t, Who: who, Default: def, Means: [2]string{en, ko}, take: take}}
}

// part is a setting that the object takes which it stands in, see [wholes].
func part(path string, t Type, who Who, def, en, ko string, among ...string) *custom {
	c := other(path, t, who, def, en, ko, nil)
	c.Among = among
	return c
}

func (c *custom) within(least, most float64) *custom { c.Least, c.Most = least, most; return c }

func (c *custom) among(words ...string) *custom { c.Among = words; return c }

func (c *custom) live() *custom { c.Live = true; return c }

func (c *custom) hidden() *custom { c.Secret = true; return c }

func (c *custom) key() Key { return c.Key }

// entry is what a layer says of a setting, or of an object of settings that are taken
// together.
type entry struct {
	l    *loader
	ly   layer
	key  Key
	path string // of the key, with names in the place of stars
	said *written
}

// decode reads the value.
func (e entry) decode(into any) error {
	var text spelling
	text.write(e.said)
	err := json.Unmarshal(text.out.Bytes(), into)
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		te.Offset, te.Field = text.source(te.Offset), strings.TrimSuffix(e.path+"."+te.Field, ".")
	}
	return err
}

// refused reports whether a layer may not set the key at all, and says so.
func (e entry) refused() bool {
	switch {
	case e.key.Who == AdminOnly && e.ly.kind != Managed:
		e.l.inert(e.ly, e.path, e.ly.where(e.path), Locked, "")
	case e.ly.own():
		return false
	case e.key.Who == OwnLayer:
		e.drop()
	case e.key.Who == TrustedOnly && !e.l.permits(e.ly):
		e.l.inert(e.ly, e.path, e.ly.where(e.path), Untrusted, "")
	default:
		return false
	}
	return true
}

// drop says that a repository may not set the key so.
func (e entry) drop() {
	if e.ly.compat && slices.Contains(answers, e.path) {
		e.l.leave(Inert{Key: e.path, Origin: Origin{e.ly.kind, e.ly.place(e.ly.where(e.path))}, Why: Foreign})
		return
	}
	e.l.inert(e.ly, e.path, e.ly.where(e.path), Foreign, "")
}

// answers are keys in which another agent keeps what its user has answered.
var answers = []string{"enableAllProjectMcpServers", "enabledMcpjsonServers"}

func (e entry) set(differs bool) { e.l.set(e.ly, e.path, differs) }

// put sets a member of an object.
func put[V any](e entry, to *map[string]V, name string, v V) {
	e.l.set(e.ly, e.path+"."+name, !reflect.DeepEqual((*to)[name], v))
	if *to == nil {
		*to = map[string]V{}
	}
	(*to)[name] = v
}

func (e entry) invalid(value, want string) error {
	return e.l.invalid(e.ly, e.path, value, want)
}

func (e entry) invalidItem(i int, value, want string) error {
	return e.l.invalidItem(e.ly, e.path, i, value, want)
}

// problem reports a fault at the key.
func (e entry) problem(what, fix string) error {
	return e.ly.problem(e.ly.where(e.path), what, fix)
}

// take applies what a layer says, in the order in which it stands.
func (l *loader) take(ly layer, w *written, b *branch, path string) error {
	for _, kid := range w.kids {
		word, below, ok := b.child(kid.word)
		if !ok {
			continue // it was told of when the file was read
		}
		e := entry{l: l, ly: ly, path: strings.TrimPrefix(path+"."+word, "."), said: kid}
		var err error
		switch {
		case string(kid.raw) == "null": // it says nothing
		case below.key != nil && l.rows()[below.row].take == nil: // it stands there for other programs
		case below.key != nil:
			e.key = l.rows()[below.row]
			err = e.key.take(e)
		case !ly.own() && below.all(OwnLayer):
			e.drop()
		case below.whole != nil:
			err = below.whole(e)
		case kid.raw == nil:
			err = l.take(ly, kid, below, e.path)
		default:
			err = e.decode(new(struct{}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The texts that settings are written as.

// line is a text of one line that is not empty.
func line(_ entry, text string) (v, want string) {
	if v = strings.TrimSpace(text); v == "" || len(v) > maxText || strings.ContainsFunc(v, unicode.IsControl) {
		return v, "a text"
	}
	return v, ""
}

// label is a name that may be empty.
func label(_ entry, text string) (v, want string) {
	if len(text) > maxText || strings.ContainsFunc(text, unicode.IsControl) {
		return text, "a name"
	}
	return text, ""
}

// pathOf is a path; "" = none.
func pathOf(e entry, text string) (v, want string) {
	if text == "" {
		return "", ""
	}
	return e.l.absolute(text), ""
}

// address is that of a service.
func address(like string) func(entry, string) (string, string) {
	return func(_ entry, text string) (string, string) {
		if u, ok := endpoint(text); ok {
			return u, ""
		}
		return "", "an address such as " + like
	}
}

// wait is a time within limits.
func wait(least, most time.Duration, want string) func(entry, string) (time.Duration, string) {
	return func(_ entry, text string) (time.Duration, string) {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			return d, want
		}
		return d, ""
	}
}

// bytes is a size; "none" is -1.
func bytesOf(_ entry, text string) (int64, string) {
	n, err := size(text)
	if err != nil {
		return n, "none, a size from 1MiB to 1024GiB"
	}
	return n, ""
}

func modelName(_ entry, text string) (v, want string) {
	if v = strings.TrimSpace(text); !isName(v) {
		return v, "the name of a model"
	}
	return v, ""
}

// sandboxMode reports whether nothing is confined.
func sandboxMode(_ entry, text string) (off bool, want string) {
	switch strings.TrimSpace(text) {
	case "auto":
		return false, ""
	case "off":
		return true, ""
	}
	return false, "auto, off"
}

// When a value of a repository is not taken.

func opens(have, v bool) bool  { return v && !have }
func closes(have, v bool) bool { return !v && have }
func isOn(_, v bool) bool      { return v }
func isOff(_, v bool) bool     { return !v }

func exceeds(have, v int) bool { return v > have }

// raises is for limits of which 0 is none.
func raises[T int | int64 | float64](have, v T) bool { return have > 0 && (v == 0 || v > have) }

// looserThan is for words from the loosest to the tightest.
func looserThan[T ~string](words []string) func(have, v T) bool {
	return func(have, v T) bool { return slices.Index(words, string(v)) < slices.Index(words, string(have)) }
}

// The entries of lists.

func variableName(_ entry, _ int, text string) (v, want string) {
	if !variable().MatchString(text) {
		return text, "the name of a variable"
	}
	return text, ""
}

// folder is a folder that is named as on the command line.
func folder(e entry, _ int, text string) (v, want string) {
	if text == "" {
		return text, "a folder"
	}
	return e.l.absolute(text), ""
}

// confinedPath is a path for the sandbox.
func confinedPath(e entry, _ int, text string) (v, want string) {
	if text == "" || len(text) > 4096 || strings.ContainsAny(text, "*?\x00") {
		return text, "a path; patterns are not understood here"
	}
	path := text
	if path == "~" {
		path = "~/"
	}
	full := e.l.absolute(path)
	if strings.HasPrefix(path, "~") && full == filepath.Join(e.l.src.Workdir, path) {
		return text, "a path; ~ stands for no folder here"
	}
	return full, ""
}

// target is a host that commands reach.
func target(_ entry, _ int, text string) (v, want string) {
	if !isTarget(text) {
		return text, "a host, *.a.domain, an address or a network, with :port if need be, or *"
	}
	return strings.ToLower(text), ""
}

func host(_ entry, _ int, text string) (v, want string) {
	if !isHost(text) {
		return text, "a host, *.a.domain, an address, a network such as 10.0.0.0/8"
	}
	return strings.ToLower(text), ""
}

// excluded is a pattern of instruction files that are not read.
func excluded(e entry, _ int, text string) (v, want string) {
	if text == "" || len(text) > maxPattern {
		return text, fmt.Sprintf("a pattern of at most %d bytes", maxPattern)
	}
	if strings.HasPrefix(text, "**") {
		return text, ""
	}
	return filepath.ToSlash(e.l.absolute(text)), ""
}

// treePath is a folder of a repository.
func treePath(_ entry, _ int, text string) (v, want string) {
	local := filepath.FromSlash(text)
	if !filepath.IsLocal(local) || filepath.Clean(local) == "." || len(text) > maxText || strings.ContainsFunc(text, unicode.IsControl) {
		return text, "a folder inside of the repository"
	}
	return text, ""
}

// named is an entry of a list of names, of which one layer has so many at most.
func named(what string, longest, most int) func(entry, int, string) (string, string) {
	return func(_ entry, i int, text string) (v, want string) {
		if text == "" || len(text) > longest || i >= most {
			return text, fmt.Sprintf("%s, and one of at most %d", what, most)
		}
		return text, ""
	}
}

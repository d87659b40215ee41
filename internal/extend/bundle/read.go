package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent/query"
	"dure/internal/base/near"
)

// fields reads an object, and knows which of its fields were asked for: all others are
// mistakes.
type fields struct {
	ps    *problems
	n     *node // nil = there is none
	up    *node // what it would be in
	path  string
	known []string
}

// fieldsOf begins with a value that has to be an object. Nothing is as good as an empty one.
func fieldsOf(ps *problems, n *node, path string) *fields {
	f := &fields{ps: ps, n: n, path: path}
	if !n.null() && n.shape != object {
		ps.at(query.BundleSchema, n, path, "write its fields below it, indented", "%s has to have fields, and is %s", path, n.shape)
		f.n = nil
	}
	return f
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// get returns a field; nil = it is not there, or empty.
func (f *fields) get(name string) *node {
	f.known = append(f.known, name)
	n := f.n.get(name)
	if n.null() {
		return nil
	}
	return n
}

func (f *fields) missing(name, fix string) {
	at := f.n
	if at == nil {
		at = f.up
	}
	f.ps.at(query.BundleSchema, at, join(f.path, name), fix, "%s is missing", join(f.path, name))
}

// need is get for what has to be there.
func (f *fields) need(name string) *node {
	n := f.get(name)
	if n == nil {
		f.missing(name, "write: "+name+": ...")
	}
	return n
}

// either returns a field that has two names, and which it was. The older one is told.
func (f *fields) either(name, older string) *node {
	n, old := f.get(name), f.get(older)
	switch {
	case n != nil && old != nil:
		f.ps.at(query.BundleSchema, old, join(f.path, older), "remove one of them", "%s and %s exclude each other", join(f.path, name), join(f.path, older))
	case old != nil:
		f.ps.warn(query.BundleMigrate, old, join(f.path, older), "write: "+name, "%s is the old name of %s", join(f.path, older), name)
		return old
	}
	return n
}

func (f *fields) text(name string) string { return text(f.ps, f.get(name), join(f.path, name)) }

func (f *fields) needText(name string) string { return text(f.ps, f.need(name), join(f.path, name)) }

// text reads a text; numbers are texts as they are written.
func text(ps *problems, n *node, path string) string {
	switch {
	case n == nil:
		return ""
	case n.shape != scalar:
		ps.at(query.BundleSchema, n, path, "write it as one text", "%s has to be a text, and is %s", path, n.shape)
		return ""
	case n.tag == "!!bool" || n.tag == "!!null":
		ps.at(query.BundleSchema, n, path, "put the value into quotes", "%s has to be a text", path)
		return ""
	}
	return n.text
}

// oneOf reads one of several words; "" = it is not there.
func (f *fields) oneOf(name string, words ...string) string {
	n := f.get(name)
	t := text(f.ps, n, join(f.path, name))
	if t != "" && !slices.Contains(words, t) {
		fix := "write one of them"
		if like := near.Nearest(t, words); like != "" {
			fix = "did you mean " + like + "?"
		}
		f.ps.at(query.BundleSchema, n, join(f.path, name), fix, "%s is %q and has to be one of: %s", join(f.path, name), t, strings.Join(words, ", "))
		return ""
	}
	return t
}

func (f *fields) whole(name string, least, most int) int {
	n := f.get(name)
	if n == nil {
		return 0
	}
	v, err := strconv.Atoi(strings.ReplaceAll(n.text, "_", ""))
	if n.shape != scalar || n.tag != "!!int" || err != nil || v < least || v > most {
		f.ps.at(query.BundleSchema, n, join(f.path, name), "write it in digits", "%s has to be a whole number from %d to %d", join(f.path, name), least, most)
		return 0
	}
	return v
}

// items returns what is in a list.
func (f *fields) items(name string) []*node {
	n := f.get(name)
	if n == nil {
		return nil
	}
	if n.shape != list {
		f.ps.at(query.BundleSchema, n, join(f.path, name), "write it as a list", "%s has to be a list, and is %s", join(f.path, name), n.shape)
		return nil
	}
	return n.items
}

func (f *fields) texts(name string) []string {
	var all []string
	for i, n := range f.items(name) {
		if t := text(f.ps, n, index(join(f.path, name), i)); t != "" {
			all = append(all, t)
		}
	}
	return all
}

// words reads an object whose fields are texts.
func (f *fields) words(name string) map[string]string {
	n := f.get(name)
	in := fieldsOf(f.ps, n, join(f.path, name))
	if in.n == nil {
		return nil
	}
	all := map[string]string{}
	for _, e := range in.n.keys {
		switch {
		case e.node.null():
			all[e.name] = ""
		case e.node.shape == scalar:
			all[e.name] = e.node.text
		default:
			text(f.ps, e.node, join(in.path, e.name))
		}
	}
	return all
}

// free reads an object that is handed on as it is.
func (f *fields) free(name string) json.RawMessage {
	n := f.get(name)
	if n == nil {
		return nil
	}
	if n.shape != object {
		fieldsOf(f.ps, n, join(f.path, name))
		return nil
	}
	return n.json()
}

func (f *fields) in(name string) *fields {
	in := fieldsOf(f.ps, f.get(name), join(f.path, name))
	in.up = f.n
	return in
}

// done tells of the fields that nobody has asked for.
func (f *fields) done() {
	if f.n == nil {
		return
	}
	for _, e := range f.n.keys {
		if slices.Contains(f.known, e.name) {
			continue
		}
		fix := "remove it"
		if like := near.Nearest(e.name, f.known); like != "" {
			fix = "did you mean " + like + "?"
		}
		f.ps.at(query.BundleSchema, &node{at: e.at}, join(f.path, e.name), fix, "the field %s means nothing here", join(f.path, e.name))
	}
}

// A Value is a text that stands in the file, or where it is to be found.
type Value struct {
	Literal string `json:"literal,omitempty"`
	Env     string `json:"env,omitempty"`    // name of a variable
	Secret  string `json:"secret,omitempty"` // name of a stored secret
	Place   Place  `json:"-"`
	Path    string `json:"-"`
}

// Given reports whether there is one at all.
func (v Value) Given() bool { return v.Literal != "" || v.Env != "" || v.Secret != "" }

// valueOf reads a value source: a plain text, or an object with one of value and valueFrom.
func valueOf(ps *problems, n *node, path string) Value {
	if n == nil {
		return Value{}
	}
	v := Value{Place: n.at, Path: path}
	if n.shape == scalar {
		v.Literal = n.text
		return v
	}
	f := fieldsOf(ps, n, path)
	literal, from := f.get("value"), f.get("valueFrom")
	f.done()
	if f.n == nil {
		return v
	}
	if (literal == nil) == (from == nil) {
		ps.at(query.BundleSchema, n, path, "write: value: TEXT, or valueFrom: {env: NAME}", "%s has to have exactly one of value and valueFrom", path)
		return v
	}
	if literal != nil {
		if literal.shape == scalar {
			v.Literal = literal.text
		} else {
			text(ps, literal, join(path, "value"))
		}
		return v
	}
	in := fieldsOf(ps, from, join(path, "valueFrom"))
	env, secret := in.get("env"), in.get("secretRef")
	in.done()
	if in.n == nil {
		return v
	}
	if (env == nil) == (secret == nil) {
		ps.at(query.BundleSchema, from, in.path, "write: valueFrom: {env: NAME}", "%s has to have exactly one of env and secretRef", in.path)
		return v
	}
	if v.Env = text(ps, env, join(in.path, "env")); env != nil && !isVariable(v.Env) {
		ps.at(query.BundleSchema, env, join(in.path, "env"), "use letters, digits and _", "%q cannot be the name of a variable", v.Env)
		v.Env = ""
	}
	if secret != nil {
		v.Secret = secretOf(ps, secret, join(in.path, "secretRef"))
	}
	return v
}

// secretOf reads the name of a secret: Secret/NAME, NAME, or an object with ref or name, and
// key.
func secretOf(ps *problems, n *node, path string) string {
	if n.shape == scalar {
		return strings.TrimPrefix(n.text, "Secret/")
	}
	f := fieldsOf(ps, n, path)
	ref := f.text("ref")
	if ref == "" {
		ref = f.text("name")
	} else {
		f.known = append(f.known, "name")
	}
	key := f.text("key")
	f.done()
	if ref = strings.TrimPrefix(ref, "Secret/"); ref == "" && f.n != nil {
		f.missing("ref", "write: ref: Secret/NAME")
	}
	if key != "" {
		ref += "/" + key
	}
	return ref
}

func isVariable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// values reads an object of value sources.
func (f *fields) values(name string) map[string]Value {
	in := f.in(name)
	if in.n == nil {
		return nil
	}
	all := map[string]Value{}
	for _, e := range in.n.keys {
		if v := valueOf(f.ps, e.node, join(in.path, e.name)); v.Given() {
			all[e.name] = v
		}
	}
	return all
}

// A Ref names a resource.
type Ref struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Package string `json:"package,omitempty"` // "" = the own one
	API     string `json:"apiVersion,omitempty"`
	Path    string `json:"-"`
	n       *node
}

// ID is Kind/Name, with the package before it if there is one.
func (r Ref) ID() string {
	id := r.Kind + "/" + r.Name
	if r.Package != "" {
		id = r.Package + ":" + id
	}
	return id
}

// Given reports whether something is named.
func (r Ref) Given() bool { return r.Name != "" }

// refOf reads a reference: Kind/name, or an object with kind and name.
func refOf(ps *problems, n *node, path, kind string) Ref {
	if n == nil {
		return Ref{}
	}
	r := Ref{Path: path, n: n}
	if n.shape == scalar {
		before, name, ok := strings.Cut(n.text, "/")
		if !ok || before == "" || name == "" || strings.Contains(name, "/") {
			ps.at(query.BundleRef, n, path, fmt.Sprintf("write: %s/%s", kind, strings.TrimPrefix(n.text, "/")), "%q is no reference", n.text)
			return Ref{}
		}
		r.Kind, r.Name = before, name
	} else {
		f := fieldsOf(ps, n, path)
		r.Kind, r.Name, r.Package, r.API = f.text("kind"), f.text("name"), f.text("package"), f.text("apiVersion")
		f.done()
		if f.n == nil {
			return Ref{}
		}
		if r.Kind == "" || r.Name == "" {
			ps.at(query.BundleRef, n, path, "write: {kind: "+kind+", name: ...}", "the reference has no kind or no name")
			return Ref{}
		}
	}
	if r.Kind != kind {
		ps.at(query.BundleRef, n, path, "name a resource of the kind "+kind, "%s has to name a resource of the kind %s, and names %s", path, kind, r.Kind)
		return Ref{}
	}
	return r
}

func (f *fields) ref(name, kind string) Ref {
	return refOf(f.ps, f.get(name), join(f.path, name), kind)
}

func (f *fields) needRef(name, kind string) Ref {
	return refOf(f.ps, f.need(name), join(f.path, name), kind)
}

// A Use is a resource that another one uses: by its name, or all that a selector fits, with
// what is different there.
type Use struct {
	Ref       Ref               `json:"ref,omitzero"`
	Kind      string            `json:"kind,omitempty"` // of a selector
	Name      string            `json:"name,omitempty"` // "" = any
	Labels    map[string]string `json:"labels,omitempty"`
	Config    json.RawMessage   `json:"config,omitempty"` // laid over that of an extension
	overrides *node
	n         *node
	path      string
}

// uses reads a list of resources of a kind.
func (f *fields) uses(name, kind string) []Use {
	var all []Use
	for i, n := range f.items(name) {
		if u, ok := useOf(f.ps, n, index(join(f.path, name), i), kind); ok {
			all = append(all, u)
		}
	}
	return all
}

func useOf(ps *problems, n *node, path, kind string) (Use, bool) {
	u := Use{n: n, path: path}
	if n.null() {
		ps.at(query.BundleRef, n, path, "write: "+kind+"/NAME", "the reference is empty")
		return u, false
	}
	wrapped := n.get("ref")
	if n.shape != object || wrapped == nil && n.get("selector") == nil {
		if n.get("matchLabels") != nil {
			return u.selected(ps, n, path, kind)
		}
		u.Ref = refOf(ps, n, path, kind)
		return u, u.Ref.Given()
	}
	f := fieldsOf(ps, n, path)
	f.get("ref")
	selector := f.get("selector")
	u.Config = f.free("config")
	u.overrides = f.get("overrides")
	f.done()
	checkOverrides(ps, u.overrides, join(path, "overrides"))
	if wrapped != nil && selector != nil {
		ps.at(query.BundleSchema, n, path, "remove one of them", "%s and %s exclude each other", join(path, "ref"), join(path, "selector"))
		return u, false
	}
	if selector != nil {
		return u.selected(ps, selector, join(path, "selector"), kind)
	}
	u.Ref = refOf(ps, wrapped, join(path, "ref"), kind)
	return u, u.Ref.Given()
}

func (u Use) selected(ps *problems, n *node, path, kind string) (Use, bool) {
	f := fieldsOf(ps, n, path)
	u.Kind = f.oneOf("kind", kind)
	u.Name, u.Labels = f.text("name"), f.words("matchLabels")
	f.done()
	if u.Kind == "" {
		u.Kind = kind
	}
	return u, f.n != nil
}

func checkOverrides(ps *problems, n *node, path string) {
	f := fieldsOf(ps, n, path)
	f.in("spec")
	f.in("metadata")
	f.done()
}

package config

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"dure/internal/base/near"
)

// A Key is a setting. The table of all of them is what the reader knows, what the
// schema is made of, what the page about settings is checked against, and what is
// completed and explained.
type Key struct {
	Path    string   // as it is written in a file, with dots between objects; a star is any name
	Type    Type     //
	Default string   // as JSON; "" = none, or one that depends on other things
	Among   []string // the values of a text; nil = any
	Least   float64  // of numbers; counted only with Most
	Most    float64  // 0 = no bounds
	Who     Who
	Live    bool // a change holds from the next call on, and not only from the next start
	Secret  bool // the value is not shown
	Means   [2]string

	take func(entry) error // applies a value; nil = it counts as part of another, or not at all
}

// Type is what a value has to be.
type Type string

// The types.
const (
	Text     Type = "text"
	Switch   Type = "switch" // true or false
	Count    Type = "count"  // a whole number
	Number   Type = "number"
	Texts    Type = "texts"    // a list of texts
	RuleSet  Type = "rules"    // a list of texts and objects
	List     Type = "list"     // a list of objects
	Object   Type = "object"   // with whatever keys
	Strings  Type = "strings"  // an object whose values are texts
	Group    Type = "group"    // an object of keys, and no key itself
	Switches Type = "switches" // an object whose values are true or false
)

// Who says which layers may set a key.
type Who string

// Who may set a key.
const (
	AnyLayer    Who = "all"     // every layer
	OwnLayer    Who = "own"     // every layer but the project's
	TrustedOnly Who = "trusted" // own, and a project in a trusted folder
	TighterOnly Who = "tighter" // own, and a project where that is stricter
	AdminOnly   Who = "managed" // the administrator
)

// Meaning says what a key says, in English or in Korean.
func (k Key) Meaning(language string) string {
	if language == "ko" {
		return k.Means[1]
	}
	return k.Means[0]
}

// Keys returns the table, sorted by paths.
func Keys() []Key { return slices.Clone(table()) }

// Find returns the key that a person means: in any spelling, and with a name in the
// place of a star; path is the key as a file of ours spells it. An object of keys is found
// as well, as a [Group]. Without one, nearest is what may have been meant; "" = nothing.
func Find(name string) (k Key, path, nearest string) {
	if a, ok := aliasOf(name); ok {
		name = a.to
	}
	var words []string
	at := tree()
	parts := strings.Split(name, ".")
	for i, part := range parts {
		word, below, ok := at.child(part)
		if !ok {
			return Key{}, "", nearestTo(name)
		}
		words, at = append(words, word), below
		if k := at.key; k != nil && (k.Type == Object || k.Type == Strings || k.Type == Switches) && i+1 < len(parts) {
			return *k, strings.Join(append(words, parts[i+1:]...), "."), ""
		}
	}
	path = strings.Join(words, ".")
	switch {
	case at.key != nil:
		return *at.key, path, ""
	case len(at.below) > 0:
		return Key{Path: path, Type: Group, Who: AnyLayer}, path, ""
	}
	return Key{}, "", nearestTo(name)
}

// branch is an object of keys, or a key.
type branch struct {
	word  string // as we spell it; * = any
	key   *Key
	row   int                // of the key
	whole func(entry) error  // of an object whose members are taken together: that of a stronger layer replaces it
	below map[string]*branch // by their folded words
}

// all reports whether the same layers may set all keys of an object.
func (b *branch) all(who Who) bool {
	if b.key != nil {
		return b.key.Who == who
	}
	for _, below := range b.below {
		if !below.all(who) {
			return false
		}
	}
	return true
}

// child returns what a key of an object is; word is how we spell it.
func (b *branch) child(name string) (word string, below *branch, ok bool) {
	if below, ok = b.below[fold(name)]; ok {
		return below.word, below, true
	}
	if below, ok = b.below["*"]; ok && name != "" {
		return name, below, true
	}
	return "", nil, false
}

// fold is the same for all spellings of a word: snake_case, camelCase, PascalCase. Of a path
// it folds each word.
func fold(word string) string { return strings.Map(unspelt, strings.ToLower(word)) }

// SameKey reports whether two words are spellings of one.
func SameKey(a, b string) bool { return a == b || fold(a) == fold(b) }

// tree is the table by words.
var tree = sync.OnceValue(func() *branch {
	root := &branch{}
	all := new(loader).rows()
	for i := range all {
		at := root
		for part := range strings.SplitSeq(all[i].Path, ".") {
			if at.below == nil {
				at.below = map[string]*branch{}
			}
			next := at.below[cmp.Or(fold(part), part)]
			if next == nil {
				next = &branch{word: part}
				at.below[fold(part)] = next
			}
			at = next
		}
		at.key, at.row = &all[i], i
	}
	for word, take := range wholes {
		root.below[fold(word)].whole = take
	}
	return root
})

// nearestTo returns the known key that a person may have meant: one that ends in the
// same word, or one of a few letters more or less.
func nearestTo(path string) string {
	if path == "" {
		return ""
	}
	const far = 3 // letters
	last := path[strings.LastIndexByte(path, '.')+1:]
	var known []string
	for _, k := range table() {
		known = append(known, k.Path)
	}
	for _, a := range aliases() {
		known = append(known, a.path)
	}
	best, least := "", far
	for _, k := range known {
		if fold(k[strings.LastIndexByte(k, '.')+1:]) == fold(last) {
			return k
		}
		if d := near.Distance(fold(k), fold(path), far); d < least {
			best, least = k, d
		}
	}
	return best
}

// table is the table.
var table = sync.OnceValue(func() []Key {
	all := new(loader).rows()
	slices.SortFunc(all, func(a, b Key) int { return cmp.Compare(a.Path, b.Path) })
	return all
})

// rows are the keys, whose values go into what l loads.
func (l *loader) rows() []Key {
	if l.table == nil {
		for _, r := range slices.Concat(l.modelKeys(), l.talkKeys(), l.accessKeys(), l.extendKeys(), l.otherKeys()) {
			l.table = append(l.table, r.key())
		}
	}
	return l.table
}

// wholes are the objects whose members are taken together, by their names.
var wholes = map[string]func(entry) error{
	"providers":  func(e entry) error { return e.l.providers(e) },
	"profiles":   func(e entry) error { return e.l.profiles(e) },
	"user":       func(e entry) error { return e.l.user(e) },
	"investment": func(e entry) error { return e.l.investment(e) },
	"search":     func(e entry) error { return e.l.search(e) },
	"updates":    func(e entry) error { return e.l.updates(e) },
	"lanes":      func(e entry) error { return e.l.lanes(e) },
}

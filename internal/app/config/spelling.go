package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"dure/internal/base/jsonc"
)

// spelling turns a file into one with our spelling of its keys, whichever it has, and
// without those that mean nothing. It keeps where everything stood.
type spelling struct {
	data []byte // without comments
	positions
	root  written
	twice string // a key that stands twice, in whichever spellings; "" = none does
	shape string // a key that has to be an object and is none; "" = there is none
	odd   []oddKey
	also  []aliased

	out  bytes.Buffer
	from []segment
}

// oddKey is a key that means nothing.
type oddKey struct {
	path string
	at   int64
}

// aliased is another word for a key, and what it says.
type aliased struct {
	alias
	at    int
	value jsonc.Value
}

// written is a value of a file: raw, or the members of an object of keys.
type written struct {
	word string
	raw  json.RawMessage
	src  int // where raw stood
	kids []*written
}

// segment says where bytes of the new text come from.
type segment struct{ out, src int }

// spell reads a file.
func spell(data []byte, root jsonc.Value) *spelling {
	f := &spelling{data: data, positions: positions{at: map[string]int64{}, items: map[string][]int64{}}}
	f.object(root, tree(), "", &f.root)
	for _, a := range f.also {
		if _, ok := f.at[a.to]; ok {
			continue // the key itself is stronger
		}
		to := &f.root
		for word := range strings.SplitSeq(a.to, ".") {
			to = to.kid(word)
		}
		if to.raw = f.data[a.value.Start:a.value.End]; a.make != nil {
			to.raw = a.make(to.raw)
		}
		to.src, f.at[a.to] = a.value.Start, int64(a.at)+1
		f.list(a.to, a.value)
	}
	f.write(&f.root)
	return f
}

// object reads the members of an object of keys.
func (f *spelling) object(v jsonc.Value, at *branch, prefix string, to *written) {
	for _, m := range v.Members {
		word, below, ok := at.child(m.Key)
		if !ok {
			if a, ok := aliasOf(prefix + m.Key); ok {
				f.also = append(f.also, aliased{a, m.Start, m.Value})
			} else {
				f.odd = append(f.odd, oddKey{prefix + m.Key, int64(m.Start) + 1})
			}
			continue
		}
		path := prefix + word
		if _, twice := f.at[path]; twice {
			f.twice = path
		}
		f.at[path] = int64(m.Start) + 1
		kid := to.kid(word)
		if below.key == nil && m.Value.Kind == '{' {
			f.object(m.Value, below, path+".", kid)
			continue
		}
		if below.key != nil && below.key.Type == Object && m.Value.Kind != '{' && m.Value.Kind != 'n' {
			f.shape = path
		}
		kid.raw, kid.src = f.data[m.Value.Start:m.Value.End], m.Value.Start
		f.list(path, m.Value)
	}
}

// list keeps where the entries of a list stand.
func (f *spelling) list(path string, v jsonc.Value) {
	if v.Kind != '[' {
		return
	}
	for _, item := range v.Items[:min(len(v.Items), maxItems+1)] {
		f.items[path] = append(f.items[path], int64(item.Start)+1)
	}
}

// kid returns a member, which may be new.
func (w *written) kid(word string) *written {
	if i := slices.IndexFunc(w.kids, func(k *written) bool { return k.word == word }); i >= 0 {
		return w.kids[i]
	}
	k := &written{word: word}
	w.kids = append(w.kids, k)
	return k
}

// write writes a value as JSON.
func (f *spelling) write(w *written) {
	if w.raw != nil {
		f.from = append(f.from, segment{f.out.Len(), w.src})
		f.out.Write(w.raw)
		return
	}
	f.out.WriteByte('{')
	for i, k := range w.kids {
		if i > 0 {
			f.out.WriteByte(',')
		}
		name, _ := json.Marshal(k.word) // a text
		f.out.Write(name)
		f.out.WriteByte(':')
		f.write(k)
	}
	f.out.WriteByte('}')
}

// source returns where a byte of the new text stood.
func (f *spelling) source(at int64) int64 {
	i, found := slices.BinarySearchFunc(f.from, int(at), func(s segment, at int) int { return s.out - at })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return at - int64(f.from[i].out) + int64(f.from[i].src)
}

// Package pdftext gets the text out of the pages of PDF files.
//
// It takes every file for hostile: nothing in it decides how deep, how long or
// how large anything gets, and damage leads to less text, not to a failure. It
// reads no encrypted files, draws nothing, follows nothing out of the file and
// starts no goroutines. The limits are constants; time is the context's.
package pdftext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The limits of one document.
const (
	maxObjects  = 1 << 20
	maxPages    = 20_000
	maxUnpacked = 256 << 20 // bytes of all streams that are unpacked, for one document
	maxStream   = 32 << 20  // bytes of one
)

// What keeps a document from being read.
var (
	ErrEncrypted = errors.New("the document is encrypted")
	ErrDamaged   = errors.New("the document has no pages that can be found")
)

// Document is a PDF file in memory. It serves one goroutine.
type Document struct {
	data    []byte
	objects map[ref]place
	known   map[ref]any // objects that were read
	pages   []dict
	fonts   map[ref]*font
	left    int // bytes that may still be unpacked
}

// place is where an object is: in the file, or in an unpacked stream.
type place struct {
	data []byte
	at   int
}

// Open looks through a file for its objects and pages. It takes the objects as
// they stand, the last of each number, and needs no table of theirs, which may
// be damaged or lie.
func Open(ctx context.Context, data []byte) (*Document, error) {
	d := &Document{data: data, objects: map[ref]place{}, known: map[ref]any{}, fonts: map[ref]*font{}, left: maxUnpacked}
	var catalog ref
	encrypted := false
	trailer := func(t dict) {
		if root, ok := t["Root"].(ref); ok {
			catalog = root
		}
		encrypted = encrypted || t["Encrypt"] != nil
	}
	for at := 0; at < len(data) && len(d.objects) < maxObjects; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, body, isTrailer := d.next(at)
		if body < 0 {
			break
		}
		l := &lexer{data: data, at: body}
		v := d.indirect(l)
		at = max(l.at, body)
		t, _ := v.(dict)
		s, isStream := v.(stream)
		switch {
		case isTrailer:
			trailer(t)
			continue
		case isStream && s.dict["Type"] == name("XRef"):
			trailer(s.dict)
		case isStream && s.dict["Type"] == name("ObjStm"):
			d.unpackObjects(s)
		case t["Type"] == name("Catalog") && catalog == 0:
			catalog = n
		}
		d.objects[n] = place{data, body}
	}
	clear(d.known) // an object that was looked up on the way may have come again
	if encrypted {
		return nil, ErrEncrypted
	}
	root, _ := d.resolve(catalog).(dict)
	d.collect(ctx, root["Pages"], dict{}, map[ref]bool{}, 0)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(d.pages) == 0 {
		return nil, ErrDamaged
	}
	return d, nil
}

// Pages returns the number of pages.
func (d *Document) Pages() int { return len(d.pages) }

// next finds the next "12 0 obj" or "trailer": the number of the object and
// where its content begins.
func (d *Document) next(at int) (n ref, body int, isTrailer bool) {
	for at < len(d.data) {
		i := bytes.Index(d.data[at:], []byte("obj"))
		if j := bytes.Index(d.data[at:at+max(i, 0)], []byte("trailer")); j >= 0 || i < 0 {
			if i < 0 {
				j = bytes.Index(d.data[at:], []byte("trailer"))
			}
			if j < 0 {
				return 0, -1, false
			}
			return 0, at + j + len("trailer"), true
		}
		at += i + 3
		if n := numberBefore(d.data[:at-3]); n > 0 {
			return n, at, false
		}
	}
	return 0, -1, false
}

// numberBefore reads the number of "12 0 " at the end of data; 0 when there is none.
func numberBefore(data []byte) ref {
	data = data[max(0, len(data)-32):]
	fields := bytes.Fields(data)
	if len(fields) < 2 || len(data) > 0 && !space(data[len(data)-1]) {
		return 0
	}
	word := fields[len(fields)-2]
	for i := len(word); i > 0; i-- { // "endobj12 0 obj" and worse
		if c := word[i-1]; c < '0' || c > '9' {
			word = word[i:]
			break
		}
	}
	n, err := strconv.Atoi(string(word))
	if _, gen := strconv.Atoi(string(fields[len(fields)-1])); err != nil || gen != nil || n < 1 || n > maxObjects {
		return 0
	}
	return ref(n)
}

// indirect reads the content of an object, a stream with its bytes.
func (d *Document) indirect(l *lexer) any {
	v := l.object(0)
	t, ok := v.(dict)
	if !ok {
		return v
	}
	back := l.at
	l.skip()
	if !bytes.HasPrefix(l.data[l.at:], []byte("stream")) {
		l.at = back
		return v
	}
	l.at += len("stream")
	if bytes.HasPrefix(l.data[l.at:], []byte("\r\n")) {
		l.at += 2
	} else if l.at < len(l.data) && (l.data[l.at] == '\n' || l.data[l.at] == '\r') {
		l.at++
	}
	body := l.data[l.at:]
	if n, ok := d.resolve(t["Length"]).(float64); ok && n >= 0 && n <= float64(len(body)) {
		if rest := bytes.TrimLeft(body[int(n):min(len(body), int(n)+16)], " \t\r\n"); bytes.HasPrefix(rest, []byte("endstream")) {
			l.at += int(n)
			return stream{t, body[:int(n)]}
		}
	}
	n := bytes.Index(body, []byte("endstream"))
	if n < 0 {
		n = len(body)
	}
	l.at += n
	return stream{t, body[:n]}
}

// resolve follows references to an object. A chain of them ends.
func (d *Document) resolve(v any) any {
	for range 8 {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		if known, ok := d.known[r]; ok {
			v = known
			continue
		}
		p, ok := d.objects[r]
		if !ok {
			return nil
		}
		d.known[r] = nil // while it is read: its length may be itself
		v = d.indirect(&lexer{data: p.data, at: p.at})
		d.known[r] = v
	}
	return nil
}

func (d *Document) dict(v any) dict {
	switch v := d.resolve(v).(type) {
	case dict:
		return v
	case stream:
		return v.dict
	}
	return nil
}

func (d *Document) number(v any) (float64, bool) {
	n, ok := d.resolve(v).(float64)
	return n, ok
}

// unpackObjects takes in the objects of an object stream.
func (d *Document) unpackObjects(s stream) {
	data := d.unpack(s)
	first, _ := s.dict["First"].(float64)
	count, _ := s.dict["N"].(float64)
	l := &lexer{data: data}
	for i := 0; i < int(min(count, maxObjects)) && len(d.objects) < maxObjects; i++ {
		l.skip()
		n, err1 := strconv.Atoi(string(l.word()))
		l.skip()
		at, err2 := strconv.Atoi(string(l.word()))
		if err1 != nil || err2 != nil {
			return
		}
		if at += int(first); n > 0 && n <= maxObjects && at >= 0 && at < len(data) {
			d.objects[ref(n)] = place{data, at}
		}
	}
}

// collect adds the pages of a tree. What they inherit is in from.
func (d *Document) collect(ctx context.Context, v any, from dict, seen map[ref]bool, depth int) {
	if r, ok := v.(ref); ok {
		if seen[r] {
			return
		}
		seen[r] = true
	}
	node := d.dict(v)
	if node == nil || depth > maxDepth || len(d.pages) >= maxPages || ctx.Err() != nil {
		return
	}
	res := node["Resources"]
	if res == nil {
		res = from["Resources"]
	}
	kids, ok := d.resolve(node["Kids"]).(array)
	if !ok {
		d.pages = append(d.pages, dict{"Resources": res, "Contents": node["Contents"]})
		return
	}
	for _, k := range kids {
		d.collect(ctx, k, dict{"Resources": res}, seen, depth+1)
	}
}

// Text returns the text of a page, counted from 1: at most about so many bytes.
func (d *Document) Text(ctx context.Context, page, most int) (string, error) {
	if page < 1 || page > len(d.pages) {
		return "", fmt.Errorf("reading page %d of %d: it does not exist", page, len(d.pages))
	}
	p := d.pages[page-1]
	in := &interpreter{ctx: ctx, doc: d, most: most}
	in.run(d.content(p["Contents"]), d.dict(p["Resources"]), identity, 0)
	return tidy(in.out.String()), ctx.Err()
}

// tidy takes off space at the ends of lines, and all but one of empty lines.
func tidy(s string) string {
	var b strings.Builder
	empty := 1
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \u00a0\t\r\n")
		if empty++; line != "" {
			empty = 0
		}
		if empty < 2 {
			b.WriteString(line + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// content returns what a page draws: the bytes of its streams.
func (d *Document) content(v any) []byte {
	switch c := d.resolve(v).(type) {
	case stream:
		return d.unpack(c)
	case array:
		var all []byte
		for _, part := range c {
			if s, ok := d.resolve(part).(stream); ok && len(all) < maxStream {
				all = append(append(all, d.unpack(s)...), '\n')
			}
		}
		return all
	}
	return nil
}

package checkpoint

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sample() *record {
	return &record{
		id: "000002-12345678", seq: 2, time: time.Unix(0, 1_700_000_000_000_000_000), label: Label{Session: "e", Call: "c", Text: "t", Ours: true},
		roots: []string{"/home/u/ws", "C:/ws"}, files: 3, bytes: 99,
		blobs: []placed{{hash{1, 2}, place{pack: 1, offset: 7, stored: 5, size: 9, packed: true}}},
		changes: []change{
			{path: "/home/u/ws", entry: entry{kind: Dir, mode: 0o755}},
			{path: "/home/u/ws/a", entry: entry{kind: File, mode: 0o644, size: 9, hash: hash{1, 2}}},
			{path: "/home/u/ws/a\xff\n", entry: entry{kind: Link, target: "../a b"}},
			{path: "/home/u/ws/b", gone: true},
			{path: "/home/u/ws/c", entry: entry{kind: Skipped, reason: Large, size: 1 << 40, hash: hash{3}}},
			{path: "/home/u/ws/d", entry: entry{kind: Skipped, reason: Ignored}},
			{path: "/home/u/ws/e"},
		},
	}
}

func TestRecordsComeBack(t *testing.T) {
	want := sample()
	b, err := want.encode()
	must(t, err)
	got, err := decodeRecord(b)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant:\n%+v", got, want)
	}
}

// Any bytes are read within the limits, and what can be read is written the same.
func FuzzManifest(f *testing.F) {
	b, err := sample().encode()
	must(f, err)
	f.Add(b[1:], true)
	f.Add([]byte{}, false)
	plain := func(r *record) []byte {
		b, err := r.encode()
		must(f, err)
		d, err := inflate(b[1:])
		must(f, err)
		return d
	}
	f.Add(plain(sample()), false)
	f.Add(plain(&record{}), false)
	bad := sample()
	bad.changes[1].path = "/home/../etc"
	f.Add(plain(bad), false)
	f.Fuzz(func(t *testing.T, body []byte, packed bool) {
		stored := append([]byte{recordVersion}, body...)
		if !packed {
			stored = deflate([]byte{recordVersion}, body)
		}
		r, err := decodeRecord(stored)
		if err != nil {
			return
		}
		last := ""
		for _, c := range r.changes {
			if c.path <= last || !validPath(c.path) || strings.Contains(c.path, "/../") {
				t.Fatalf("path %q behind %q", c.path, last)
			}
			last = c.path
		}
		again, err := r.encode()
		must(t, err)
		r2, err := decodeRecord(again)
		if err != nil || !reflect.DeepEqual(r, r2) {
			t.Fatalf("%+v\n%+v\n%v", r, r2, err)
		}
	})
}

// The hunks of two texts, taken back from the second, give the first; each alone
// leads to a text that has the others still.
func FuzzHunks(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n")
	f.Add("", "a")
	f.Add("a\n", "a")
	f.Add("\n\n\n\n\n\n\n\n\n", "\n\n\n\nx\n\n\n\n\n\n\n")
	f.Add("a\r\nb\r\n", "a\nb\n")
	f.Add("\\ No newline at end of file\n", "+a\n-b\n@@ -1,1 +1,1 @@\n")
	f.Add("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n", "x1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16")
	f.Fuzz(func(t *testing.T, a, b string) {
		hunks := hunksOf([]byte(a), []byte(b))
		got, err := unapply([]byte(b), hunks)
		if err != nil || string(got) != a {
			t.Fatalf("%q to %q: %q, %v\n%+v", a, b, got, err, hunks)
		}
		for i := range hunks {
			out, err := unapply([]byte(b), hunks[i:i+1])
			if err != nil {
				t.Fatalf("%q to %q: hunk %d: %v", a, b, i, err)
			}
			rest := append(append([]Hunk{}, hunks[:i]...), hunks[i+1:]...)
			if len(rest) == 0 && string(out) != a {
				t.Fatalf("%q to %q: %q", a, b, out)
			}
		}
		for _, h := range hunks {
			if len(h.side('-')) != h.OldLines || len(h.side('+')) != h.NewLines {
				t.Fatalf("%q to %q: %+v", a, b, h)
			}
		}
	})
}

// Any text is a file of rules.
func FuzzRules(f *testing.F) {
	f.Add("*.o\n!keep\n/a/**/b\n[a-z]x\n\\#\n", "/ws/a/x/b")
	f.Add("[", "/ws/[")
	f.Add("**/**/**/*a*a*a*a*b\n", "/ws/"+strings.Repeat("a/", 50)+strings.Repeat("a", 50))
	f.Add("[^\\", "/ws/x")
	f.Fuzz(func(t *testing.T, text, path string) {
		if !validPath(path) || !below(path, "/ws") || path == "/ws" {
			return
		}
		if rules := parseRules(text); len(rules) == maxRules {
			return
		}
		for last, want := range map[string]bool{"*": true, "!*": false} { // the last line decides
			c := &chain{nil, "/ws", parseRules(text + "\n" + last)}
			if got := c.ignored(path, true); got != want {
				t.Fatalf("%q is ignored: %v", path, got)
			}
		}
	})
}

// An intent that was altered is no intent, and none leads out of the roots.
func FuzzIntent(f *testing.F) {
	a, err := frame(sample())
	must(f, err)
	f.Add(append(bytes.Clone(a), a...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		in, ok := parseIntent(b)
		if !ok {
			return
		}
		for _, it := range in.items {
			if !validPath(it.path) {
				t.Fatalf("%q", it.path)
			}
		}
	})
}

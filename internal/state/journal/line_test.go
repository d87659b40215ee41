package journal

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)

func noBlob(blobRef) ([]byte, error) { return nil, errors.New("no blob") }

// The bytes of a line are a format: what is written here is read for ever.
func TestLineForm(t *testing.T) {
	note := agent.Event{Seq: 42, Epoch: 3, Time: noon, ID: "e1", Body: agent.Note{Text: "x"}}
	data := []byte(`{"text":"x"}`)
	for _, c := range []struct {
		name string
		p    payload
		want string
	}{
		{"plain", payload{data: data}, `{"v":1,"seq":42,"ep":3,"ts":"2026-11-20T12:00:00.123456789Z","k":"note","id":"e1","d":{"text":"x"},"c":"92befdb7"}`},
		{"more", payload{data: data, more: 2}, `{"v":1,"seq":42,"ep":3,"ts":"2026-11-20T12:00:00.123456789Z","k":"note","id":"e1","m":2,"d":{"text":"x"},"c":"2a7ebbe7"}`},
		{"extra", payload{data: data, x: []byte(`{"t":["m1"]}`)}, `{"v":1,"seq":42,"ep":3,"ts":"2026-11-20T12:00:00.123456789Z","k":"note","id":"e1","x":{"t":["m1"]},"d":{"text":"x"},"c":"b77f8b41"}`},
		{"blob", payload{ref: &blobRef{strings.Repeat("ab", 32), 40000, "head", "tail"}}, `{"v":1,"seq":42,"ep":3,"ts":"2026-11-20T12:00:00.123456789Z","k":"note","id":"e1","b":{"sha256":"` + strings.Repeat("ab", 32) + `","size":40000,"head":"head","tail":"tail"},"c":"86dccc7b"}`},
	} {
		got, sum := appendLine(nil, note, c.p, 7)
		if string(got) != c.want+"\n" {
			t.Errorf("%s:\ngot  %swant %s", c.name, got, c.want)
		}
		l, err := readLine(got[:len(got)-1], 7)
		if err != nil || l.sum != sum || l.seq != 42 || l.epoch != 3 || l.more != c.p.more || l.kind != "note" || l.id != "e1" || string(l.x) != string(c.p.x) {
			t.Errorf("%s: read as %+v, %v", c.name, l, err)
		}
		if !json.Valid(got) {
			t.Errorf("%s: not JSON", c.name)
		}
		e, err := l.event(func(ref blobRef) ([]byte, error) {
			if ref != *c.p.ref {
				t.Errorf("%s: refers to %+v", c.name, ref)
			}
			return data, nil
		})
		if diff := cmp.Diff(note, e); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
		if _, err := readLine(got[:len(got)-1], 8); !errors.Is(err, errSum) {
			t.Errorf("%s: behind another line: %v", c.name, err)
		}
	}
}

// signed makes a line of what a foreign hand wrote, with a right checksum.
func signed(body string, seed uint32) []byte {
	b, sum := []byte(body), uint32(0)
	sum = crcOf(b, seed)
	b = append(b, sumMark...)
	b = appendSum(b, sum)
	return append(b, `"}`...)
}

func TestForeignLines(t *testing.T) {
	const frame = `{"v":1,"seq":1,"ep":1,"ts":"2026-11-20T12:00:00Z","k":"note","id":"e"`
	for _, c := range []struct{ name, body, want string }{
		{"later version", `{"v":2,"seq":1,"new":true`, "event format version 2 is newer than this program knows (1): use a newer dure"},
		{"other order", `{"seq":1,"v":1,"id":"e","ep":1,"k":"note","ts":"2026-11-20T12:00:00Z","d":{"text":"x"}`, ""},
		{"field behind the body", frame + `,"d":{"text":"x"},"z":1`, ""},
		{"escaped kind", strings.Replace(frame, `"note"`, `"n\u006fte"`, 1) + `,"d":{"text":"x"}`, ""},
		{"no body", frame, "a line that is not an event"},
		{"two bodies", frame + `,"b":{},"d":{}`, "its body"},
		{"no version", `{"seq":1,"ep":1,"ts":"2026-11-20T12:00:00Z","k":"note","id":"e","d":{}`, "a line that is not an event"},
		{"not JSON", `{"v":1,"seq":1,,`, "a line that is not an event"},
		{"bad time", strings.Replace(frame, "2026", "x", 1) + `,"d":{}`, "reading the time of event 1"},
		{"bad body", frame + `,"d":{"text":1}`, "reading event 1: decoding note"},
		{"bad unknown body", strings.Replace(frame, "note", "new", 1) + `,"d":{]`, "not JSON"},
		{"bad blob", frame + `,"b":{"sha256":"../../etc/passwd"}`, "refers to no possible blob"},
	} {
		l, err := readLine(signed(c.body, 0), 0)
		if err == nil {
			_, err = l.event(noBlob)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || c.name != "two bodies" && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestBlobRefIsCutBetweenRunes(t *testing.T) {
	for pad := range 4 {
		ref := newRef("", []byte(strings.Repeat("x", pad)+strings.Repeat("두레", 10_000)))
		for _, s := range []string{ref.Head, ref.Tail} {
			if !utf8.ValidString(s) || len(s) < excerpt-4 || len(s) > excerpt {
				t.Errorf("pad %d: %d bytes, %q", pad, len(s), s)
			}
		}
	}
}

func FuzzLine(f *testing.F) {
	line, _ := appendLine(nil, agent.Event{Seq: 1, Epoch: 1, Time: noon, ID: "e", Body: agent.Note{Text: "x"}}, payload{data: []byte(`{"text":"x"}`), more: 1}, 0)
	f.Add(line[:len(line)-1], "kind", "id", []byte(`{"a":1}`))
	f.Add(signed(`{"v":1,"seq":1,"ep":1,"ts":"","k":"x","id":"e","x":{"t":["a"]},"d":{}`, 0), `"k"`, "ä\n", []byte("[1,\n2]"))
	f.Add(signed(`{"v":1,"b":{}`, 0), "", "", []byte(nil))
	f.Add([]byte("{}"), "\\", "", []byte("0 ")) // spaces around a body are not part of it
	f.Fuzz(func(t *testing.T, raw []byte, kind, id string, data []byte) {
		for _, raw := range [][]byte{raw, signed(string(raw), 0)} {
			if l, err := readLine(raw, 0); err == nil {
				_, _ = l.event(noBlob) // must not panic
				_, _ = l.extra()
			}
		}
		body := agent.Unknown{Name: kind, Raw: data}
		enc, err := encodeBody(body)
		if err != nil || !utf8.ValidString(kind) || !utf8.ValidString(id) || agentKind(kind) {
			return
		}
		want := agent.Event{Seq: 5, Epoch: 2, Time: noon, ID: id, Body: agent.Unknown{Name: kind, Raw: enc}}
		line, sum := appendLine(nil, want, payload{data: enc}, 9)
		if strings.Count(string(line), "\n") != 1 {
			t.Fatalf("%d lines: %s", strings.Count(string(line), "\n"), line)
		}
		l, err := readLine(line[:len(line)-1], 9)
		if err != nil || l.sum != sum {
			t.Fatalf("%v: %s", err, line)
		}
		got, err := l.event(noBlob)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v: %s\n%s", err, line, diff)
		}
	})
}

func agentKind(kind string) bool {
	for _, k := range agent.Kinds() {
		if k == kind {
			return true
		}
	}
	return false
}

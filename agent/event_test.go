package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden line of kinds that have none yet")

// Every kind of event that ever existed has a line in testdata/events.jsonl
// that is read forever: it decodes, and encodes to the same bytes. Lines are
// added and never changed.
func TestGoldenLines(t *testing.T) {
	const path = "testdata/events.jsonl"
	data, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil && !*update {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var e Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Errorf("%s: %v", s.Text(), err)
			continue
		}
		if _, unknown := e.Body.(Unknown); unknown {
			t.Errorf("kind %s is not known any more", e.Kind())
		}
		seen[e.Kind()] = true
		got, err := json.Marshal(e)
		if err != nil {
			t.Error(err)
		}
		if string(got) != s.Text() {
			t.Errorf("kind %s changed:\n got %s\nwant %s", e.Kind(), got, s.Text())
		}
	}
	for _, kind := range Kinds() {
		if seen[kind] {
			continue
		}
		if !*update {
			t.Errorf("kind %s has no golden line: run go test ./agent -update", kind)
			continue
		}
		line, err := json.Marshal(sample(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		data = append(append(data, line...), '\n')
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(path), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sample returns an event of a kind with every field set, so that a field that
// is renamed shows in its golden line.
func sample(t *testing.T, kind string) Event {
	t.Helper()
	body, err := DecodeBody(Version, kind, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.New(reflect.TypeOf(body)).Elem()
	fill(v, 0)
	return Event{Seq: 7, Epoch: 2, Time: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), ID: "ev-7", Body: v.Interface().(Body)}
}

func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		if depth < 6 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		switch v.Type() {
		case reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(`{"a":1}`))
		case reflect.TypeFor[[]byte]():
			v.SetBytes([]byte{1})
		default:
			if depth < 6 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				fill(v.Index(0), depth+1)
			}
		}
	case reflect.Map:
		if depth < 6 {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("k"), e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag.Get("json"); tag != "-" {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

func TestEveryTypeHasItsKind(t *testing.T) {
	for kind, dec := range decoders {
		b, err := dec([]byte("{}"))
		if err != nil || b.Kind() != kind {
			t.Errorf("the decoder of %s gives %T, %v", kind, b, err)
		}
	}
}

func TestUnknownEventSurvives(t *testing.T) {
	const line = `{"v":1,"seq":7,"ep":1,"ts":"2026-01-02T03:04:05Z","k":"from.the.future","id":"x","d":{"x":1, "y":[ ]}}`
	var e Event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	if want := (Unknown{"from.the.future", json.RawMessage(`{"x":1, "y":[ ]}`)}); !reflect.DeepEqual(e.Body, want) {
		t.Errorf("got %+v", e.Body)
	}
	if got := AppendFrame(nil, e, e.Body.(Unknown).Raw); string(got) != line {
		t.Errorf("got  %s\nwant %s", got, line)
	}
}

func TestALaterFormatIsRefused(t *testing.T) {
	var e Event
	if err := json.Unmarshal([]byte(`{"v":2,"seq":1,"k":"note","d":{}}`), &e); err == nil {
		t.Error("a later version was read")
	}
}

func TestCommandsRoundTrip(t *testing.T) {
	for _, c := range []Command{
		Prompt{ID: "1", Text: "x"},
		Interrupt{},
		Resolve{ID: "a", Decision: Decision{Verdict: Allow}},
		Change{Mode: ModePlan},
		Continue{},
		Compact{Focus: "x"},
		Restore{},
		Rate{Of: 3, Good: true, Text: "x"},
		Rewind{To: 3, Files: true, Only: []string{"a"}},
		Accept{At: "x", All: true},
		Reject{At: "x", Files: []Pick{{Path: "a", ID: "i", Hunks: []string{"h"}}}, Merge: true, Marks: true},
		ChangePlan{Plan: "p", Do: PlanMove, Step: 1, To: 2, Text: "x"},
		Revoke{Rules: []string{"Bash(x)"}},
		DecidePlan{Plan: "p", Verdict: PlanAnother, Reason: "x"},
	} {
		data, err := EncodeCommand(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeCommand(c.Command(), data)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v came back as %+v, %v", c, got, err)
		}
	}
	if len(commands) != 14 {
		t.Error("a command is missing from this test")
	}
	if _, err := DecodeCommand("nosuch", nil); err == nil {
		t.Error("an unknown command was read")
	}
}

func TestCost(t *testing.T) {
	rate := func(f float64) *float64 { return &f }
	sonnet := &Price{Input: rate(3), Output: rate(15), CacheRead: rate(0.3), CacheWrite: rate(3.75)}
	for _, tt := range []struct {
		name  string
		price *Price
		usage Usage
		want  string
	}{
		{"nothing", sonnet, Usage{}, "$0.0000"},
		{"all", sonnet, Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6}, "$22.0500"},
		{"a token", sonnet, Usage{CacheRead: 1}, "$0.0000"},
		{"no price", nil, Usage{Input: 1}, "unknown"},
		{"no price for what was used", sonnet, Usage{CacheWrite: 1, CacheHour: 1}, "unknown"},
		{"no price for what was not used", &Price{Input: rate(1)}, Usage{Input: 1e6}, "$1.0000"},
	} {
		got := "unknown"
		if c := tt.price.Cost(tt.usage); c != nil {
			got = c.String()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if c := sonnet.Cost(Usage{CacheRead: 1}); *c != 300 {
		t.Errorf("a cached token costs %d billionths, want 300", *c)
	}
}

func TestTextOfAMessage(t *testing.T) {
	m := Message{Role: Assistant, Blocks: []Block{
		{Type: ThinkingBlock, Text: "hm"},
		{Type: TextBlock, Text: "a"},
		{Type: CallBlock, Call: &Call{ID: "1"}},
		{Type: TextBlock, Text: "b"},
		{Type: CallBlock, Call: &Call{ID: "2"}},
	}}
	if m.Text() != "ab" {
		t.Errorf("text %q", m.Text())
	}
	if ids := slices.Collect(func(yield func(string) bool) {
		for _, c := range m.Calls() {
			if !yield(c.ID) {
				return
			}
		}
	}); !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("calls %v", ids)
	}
}

func BenchmarkMarshal(b *testing.B) {
	e := Event{Seq: 7, Epoch: 1, Time: time.Now(), ID: "x", Body: CallFinished{Result: Result{ID: "1", Text: string(bytes.Repeat([]byte("x"), 800))}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

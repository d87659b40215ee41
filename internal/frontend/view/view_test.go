package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

var update = flag.Bool("update", false, "rewrite the views in testdata")

// A line of a log in testdata is an event of the session, or one of a child.
type line struct {
	Child string
	Event agent.Event
}

func (l *line) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte(`{"child":`)) {
		return json.Unmarshal(data, &l.Event)
	}
	type plain line
	return json.Unmarshal(data, (*plain)(l))
}

func readLog(t testing.TB, path string) (all []line) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(data) {
		var one line
		if err := json.Unmarshal(l, &one); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, one)
	}
	return all
}

func (v *View) take(l line) []*Row {
	if l.Child == "" {
		return v.Apply(l.Event)
	}
	if child := v.Child(l.Child); child != nil {
		return child.Apply(l.Event)
	}
	return nil
}

func encoded(t testing.TB, v *View) string {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// Each log gives its view: with the rows that each event has changed, and without live events.
func TestVectors(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(logs) == 0 {
		t.Fatal("no logs", err)
	}
	kinds := map[Kind]bool{}
	for _, path := range logs {
		t.Run(filepath.Base(path), func(t *testing.T) {
			v, stored := New("", Limits{}), New("", Limits{})
			changes := []string{}
			for _, l := range readLog(t, path) {
				ids := []string{fmt.Sprint(l.Event.Seq)}
				for _, r := range v.take(l) {
					ids = append(ids, strings.TrimSuffix(r.ID+map[bool]string{true: " gone"}[r.Gone], " "))
					kinds[r.Kind] = true
				}
				changes = append(changes, strings.Join(ids, ": "))
				if !l.Event.Live() {
					stored.take(l)
				}
			}
			v.trim()
			stored.trim()
			v.Turn.Doing, stored.Turn.Doing = Doing{}, Doing{} // live events tell more of it
			if diff := cmp.Diff(encoded(t, v), encoded(t, stored)); diff != "" {
				t.Errorf("without live events (-with +without):\n%s", diff)
			}
			got, err := json.MarshalIndent(map[string]any{"changed": changes, "view": json.RawMessage(encoded(t, v))}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(path, "l")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
	for _, k := range []Kind{InputRow, AnswerRow, ThoughtRow, CallRow, ApprovalRow, QuestionRow, PlanRow, NoteRow, CompactionRow, ChildRow, DroppedRow, EndRow} {
		if !kinds[k] {
			t.Errorf("no log has a row of kind %s", k)
		}
	}
}

// A view is read in pages, from its end.
func TestPages(t *testing.T) {
	v := New("s", Limits{Rows: 8})
	for i := range 10 {
		v.Apply(agent.Event{Seq: int64(i + 1), Body: agent.Note{Text: fmt.Sprint(i)}})
	}
	v.Apply(agent.Event{Seq: 11, Body: agent.ModelRequested{}})
	message := agent.Message{Blocks: []agent.Block{{Type: agent.TextBlock, Text: "a"}, {Type: agent.ThinkingBlock, Text: "b"}, {Type: agent.TextBlock, Text: "c"}}}
	v.Apply(agent.Event{Seq: 12, Body: agent.ModelAnswered{Answer: agent.Answer{Message: message}}})
	v.trim()
	var pages [][]string
	before, more := int64(0), true
	for len(pages) < 9 {
		var rows []*Row
		rows, more = v.Rows(before, 2)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if len(rows) == 0 {
			break
		}
		pages, before = append(pages, ids), rows[0].Seq
	}
	want := [][]string{{"11.0", "11.1", "11.2"}, {"9", "10"}, {"7", "8"}, {"6"}}
	if diff := cmp.Diff(want, pages); diff != "" || !more {
		t.Errorf("pages (-want +got, more %v):\n%s", more, diff)
	}
	if v.Left != 5 || v.Newest(AnswerRow) != "ac" {
		t.Errorf("%d rows were dropped, and the answer is %q", v.Left, v.Newest(AnswerRow))
	}
}

// What is over is held within the limits, and what an event has changed is whole.
func TestLimits(t *testing.T) {
	v := New("s", Limits{Rows: 50, Bytes: 20_000, Text: 1000})
	long := strings.Repeat("é", 2000)
	for i := range 100 {
		id := fmt.Sprint(i)
		v.Apply(agent.Event{Seq: int64(2*i + 1), Body: agent.CallStarted{ID: id, Tool: "bash__exec"}})
		rows := v.Apply(agent.Event{Seq: int64(2*i + 2), Body: agent.CallFinished{Result: agent.Result{ID: id, Status: agent.StatusOK, Text: long}}})
		if len(rows) != 1 || rows[0].Call.Result.Text != long {
			t.Fatalf("the row is not whole: %+v", rows)
		}
	}
	v.trim()
	for _, r := range v.rows {
		if r.Size < len(long) || len(r.Call.Result.Text) > 1000 || r.Call.State != CallDone {
			t.Fatalf("a row of %d bytes, with %d of its text", r.Size, len(r.Call.Result.Text))
		}
	}
	if n := len(encoded(t, v)); v.bytes > 20_000 || n > 40_000 || len(v.rows) < 5 {
		t.Errorf("%d rows hold %d bytes, %d as JSON", len(v.rows), v.bytes, n)
	}
}

// Whatever is applied, in whatever order: nothing panics, and the limits hold.
func FuzzApply(f *testing.F) {
	logs, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(logs, "../../../agent/testdata/events.jsonl") {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, order uint8) {
		var all []line
		for l := range bytes.Lines(data) {
			var one line
			if json.Unmarshal(l, &one) == nil {
				all = append(all, one)
			}
		}
		if order%2 == 1 {
			slices.Reverse(all)
		}
		v := New("s", Limits{Rows: 20, Bytes: 16 << 10, Text: 512})
		for n := range 3 { // again, as newer events
			for i, l := range all {
				if l.Event.Body == nil {
					continue
				}
				if l.Event.Seq > 0 && (n > 0 || order > 1) {
					l.Event.Seq = int64(n*len(all) + i + 1)
				}
				v.take(l)
			}
		}
		v.trim()
		if len(v.rows) > 20 || v.bytes > 16<<10 || v.bytes < 0 || len(v.open) > 20 {
			t.Errorf("%d rows of %d bytes, %d open", len(v.rows), v.bytes, len(v.open))
		}
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
		for before, pages := int64(0), 0; ; pages++ {
			rows, _ := v.Rows(before, 5)
			if len(rows) == 0 || rows[0].Seq <= 1 {
				break
			}
			if before = rows[0].Seq; pages > 20 {
				t.Fatal("the pages do not end")
			}
		}
	})
}

func BenchmarkApply(b *testing.B) {
	v := New("s", Limits{})
	v.Apply(agent.Event{Seq: 1, Body: agent.ModelRequested{}})
	b.ReportAllocs()
	for b.Loop() {
		v.Apply(agent.Event{Body: agent.Fragment{What: agent.DeltaText, Text: "word "}})
	}
}

func BenchmarkCall(b *testing.B) {
	v, seq := New("s", Limits{}), int64(0)
	text := strings.Repeat("a line of output\n", 2000)
	b.ReportAllocs()
	for b.Loop() {
		v.Apply(agent.Event{Seq: seq + 1, Body: agent.CallStarted{ID: "c", Tool: "bash__exec"}})
		v.Apply(agent.Event{Seq: seq + 2, Body: agent.CallFinished{Result: agent.Result{ID: "c", Status: agent.StatusOK, Text: text}}})
		seq += 2
	}
}

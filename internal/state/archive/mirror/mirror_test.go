package mirror

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/state/transcript"
)

const session = "01a207b8-d47b-7804-89dd-89b813501b55"

// story is a conversation with a call, a title and a way back.
func story() []agent.Event {
	call := agent.Call{ID: "c1", Tool: "bash__exec", Input: json.RawMessage(`{"command":"ls"}`)}
	said := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "Let me see."}, {Type: agent.CallBlock, Call: &call}}}
	bodies := []agent.Body{
		agent.SessionOpened{Session: session, Title: "Mine"},
		agent.InputAdded{Input: "3f7d0b55-cc78-4387-8db9-6031f845b675", Text: "what is here?"},
		agent.TurnStarted{},
		agent.ModelAnswered{Answer: agent.Answer{Message: said, Stop: agent.StopCalls}},
		agent.CallFinished{Tool: "bash__exec", Result: agent.Result{ID: "c1", Status: agent.StatusOK, Text: "a.txt"}},
		agent.CallFinished{Tool: "bash__exec", Result: agent.Result{ID: "of-a-skill", Status: agent.StatusOK, Text: "no"}},
		agent.TurnEnded{},
		agent.InputAdded{Input: "in_2", Text: "left"},
		agent.ConversationRewound{To: 7},
		agent.InputAdded{Input: "in_3", Text: "instead"},
	}
	return events(bodies...)
}

func events(bodies ...agent.Body) (out []agent.Event) {
	for i, b := range bodies {
		out = append(out, agent.Event{Seq: int64(i + 1), ID: "e" + string(rune('a'+i)), Time: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Body: b})
	}
	return out
}

// shortened is a conversation whose beginning has made room, more than once.
func shortened() []agent.Event {
	says := func(text string) agent.Body {
		return agent.ModelAnswered{Answer: agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}}}
	}
	head := func(text string) []agent.Message { return []agent.Message{agent.UserText(text)} }
	return events(
		agent.SessionOpened{Session: session},                   // 1
		agent.InputAdded{Input: "in_1", Text: "one"}, says("1"), // 2, 3
		agent.InputAdded{Input: "in_2", Text: "two"}, says("2"), // 4, 5
		agent.ContextCompacted{Messages: 2, Through: 3, Head: head("sum of one")}, // 6
		agent.InputAdded{Input: "in_3", Text: "three"}, says("3"),                 // 7, 8
		agent.ContextCompacted{Trimmed: []agent.Trimmed{{Message: 1}}},              // 9: of results only
		agent.ContextCompacted{Messages: 1, Through: 6, Head: head("a better sum")}, // 10
		agent.InputAdded{Input: "in_4", Text: "four"}, says("4"),                    // 11, 12
		agent.ContextCompacted{Messages: 4, Through: 7, Head: head("sum of three"), After: 10},    // 13
		agent.InputAdded{Input: "in_5", Text: "five"},                                             // 14
		agent.ConversationRewound{To: 12}, agent.InputAdded{Input: "in_6", Text: "five, instead"}, // 15, 16
		agent.ContextCompacted{Messages: 7, Through: 16},                            // 17
		agent.InputAdded{Input: "in_7", Text: "six"}, agent.ContextRestored{Of: 17}, // 18, 19
		says("7"), // 20
	)
}

// reads is what the packages read of a file: the conversation that ends with its newest line,
// from where it begins.
func reads(t *testing.T, text string) (said []string) {
	t.Helper()
	type read struct {
		Subtype, UUID string
		Parent        string `json:"parentUuid"`
		Compact       struct {
			Kept *kept `json:"preservedMessages"`
		} `json:"compactMetadata"`
		Message struct{ Content any }
	}
	all, newest := map[string]read{}, ""
	var begins []*kept
	for line := range strings.Lines(text) {
		var r read
		if json.Unmarshal([]byte(line), &r) != nil || r.UUID == "" {
			continue
		}
		all[r.UUID], newest = r, r.UUID
		if k := r.Compact.Kept; k != nil {
			begins = append(begins, k)
		}
	}
	for _, k := range begins {
		at := k.Anchor
		for _, id := range k.UUIDs {
			r := all[id]
			r.Parent, at = at, id
			all[id] = r
		}
		for id, r := range all {
			if r.Parent == k.Anchor && id != k.UUIDs[0] {
				r.Parent = at
				all[id] = r
			}
		}
	}
	for at := newest; at != ""; {
		r := all[at]
		if r.Subtype != "" {
			break
		}
		what := fmt.Sprint(r.Message.Content)
		if list, ok := r.Message.Content.([]any); ok {
			what = list[0].(map[string]any)["text"].(string)
		}
		said = append(said, what)
		at = r.Parent
	}
	slices.Reverse(said)
	return said
}

// However often the conversation has made room, its file leads to what the model has of it,
// and to the same whichever run of the program has written which part.
func TestShortened(t *testing.T) {
	all := shortened()
	for _, c := range []struct {
		through int64
		want    string
	}{
		{5, "one 1 two 2"},
		{6, "sum of one"}, // nothing was said since: what stays follows with what is said next
		{8, "sum of one two 2 three 3"},
		{9, "sum of one two 2 three 3"},
		{12, "a better sum two 2 three 3 four 4"},
		{14, "sum of three 3 four 4 five"},
		{16, "a better sum two 2 three 3 four 4 five, instead"},
		{18, "six"},
		{20, "a better sum two 2 three 3 four 4 five, instead six 7"},
	} {
		for split := int64(1); split <= c.through; split++ {
			dir := t.TempDir()
			write(t, config(dir), all[:split])
			write(t, config(dir), all[:c.through])
			if got := strings.Join(reads(t, content(t, dir)), " "); got != c.want {
				t.Errorf("up to %d, with another run from %d: %q, want %q", c.through, split, got, c.want)
			}
		}
	}
}

// A way back to before all that was said leaves nothing of it, whichever run reads the line
// that begins anew: it follows none. Where a compaction begins, which follows none either, what
// stays behind it does.
func TestBackToTheBeginning(t *testing.T) {
	says := func(text string) agent.Body {
		return agent.ModelAnswered{Answer: agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}}}
	}
	sum := func(messages int, through int64) agent.Body {
		return agent.ContextCompacted{Messages: messages, Through: through, Head: []agent.Message{agent.UserText("sum")}}
	}
	in := func(text string) agent.Body { return agent.InputAdded{Input: "in_" + text, Text: text} }
	for name, tt := range map[string]struct {
		bodies []agent.Body
		want   string
	}{
		"what came is shortened": {[]agent.Body{
			agent.SessionOpened{Session: session},
			in("old"), says("1"),
			agent.ConversationRewound{To: 1},
			in("new"), says("2"), sum(1, 0), in("more"),
		}, "sum new 2 more"},
		"and is whole again": {[]agent.Body{
			agent.SessionOpened{Session: session},
			in("old"), says("1"),
			agent.ConversationRewound{To: 1},
			in("new"), says("2"), sum(1, 5),
			agent.ContextRestored{Of: 7},
			in("more"),
		}, "new 2 more"},
		"twice": {[]agent.Body{
			agent.SessionOpened{Session: session},
			in("old"),
			agent.ConversationRewound{To: 1},
			in("newer"),
			agent.ConversationRewound{To: 1},
			in("new"), sum(1, 0), in("more"),
		}, "sum new more"},
		"of a fork": {[]agent.Body{
			agent.SessionOpened{Session: session, ForkOf: "another"},
			in("old"), says("1"),
			agent.ConversationRewound{To: 1},
			in("new"), says("2"), sum(1, 0), in("more"),
		}, "sum new 2 more"},
		"behind a compaction": {[]agent.Body{
			agent.SessionOpened{Session: session},
			in("old"), says("1"), sum(1, 2), in("kept"),
			agent.ConversationRewound{To: 1},
			in("new"), says("2"), sum(1, 6), in("more"),
		}, "sum new 2 more"},
		"none, but a compaction": {[]agent.Body{
			agent.SessionOpened{Session: session}, in("old"), says("1"), sum(1, 2), in("two"), says("2"), sum(2, 2), in("more"),
		}, "sum 1 two 2 more"},
		"none, but one without a sum": {[]agent.Body{
			agent.SessionOpened{Session: session},
			in("old"), says("1"),
			agent.ContextCompacted{Messages: 1, Through: 2},
			in("two"), says("2"), sum(1, 2), in("more"),
		}, "sum 1 two 2 more"},
	} {
		all := events(tt.bodies...)
		for split := range all {
			dir := t.TempDir()
			write(t, config(dir), all[:split])
			write(t, config(dir), all)
			if got := strings.Join(reads(t, content(t, dir)), " "); got != tt.want {
				t.Errorf("%s, with another run from %d: %q, want %q", name, split, got, tt.want)
			}
		}
	}
}

func config(dir string) Config {
	shown := func(string) string { return "Bash" }
	return Config{Projects: dir, Session: session, Workdir: "/tmp/proj.x_y", Version: "1", Shown: shown}
}

// write applies events, as a run of the program does.
func write(t *testing.T, c Config, events []agent.Event) *Mirror {
	t.Helper()
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Seq <= m.After() {
			continue
		}
		if err := m.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

func content(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "-tmp-proj-x-y", session+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLines(t *testing.T) {
	dir := t.TempDir()
	write(t, config(dir), story())
	var got []string
	parents := map[string]string{"": "-"}
	for line := range strings.Lines(content(t, dir)) {
		var l struct {
			Type, UUID, CustomTitle string
			ParentUUID              *string
			SessionID               string
			Message                 struct{ Content any }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.SessionID != session {
			t.Fatal(err, line)
		}
		parent := ""
		if l.ParentUUID != nil {
			parent = *l.ParentUUID
		}
		what, _ := json.Marshal(l.Message.Content)
		if l.CustomTitle != "" {
			what = []byte(l.CustomTitle)
		}
		if l.UUID != "" {
			parents[l.UUID] = string(what)
		}
		got = append(got, l.Type+" "+string(what)+" < "+parents[parent])
	}
	const asked, text = `"what is here?"`, `[{"text":"Let me see.","type":"text"}]`
	const calls, result = `[{"id":"c1","input":{"command":"ls"},"name":"Bash","type":"tool_use"}]`, `[{"content":"a.txt","tool_use_id":"c1","type":"tool_result"}]`
	want := []string{
		"custom-title Mine < -", "user " + asked + " < -", "assistant " + text + " < " + asked, "assistant " + calls + " < " + text,
		"user " + result + " < " + calls, `user "left" < ` + result, `user "instead" < ` + result,
	}
	want[0], got[0] = "", ""
	if d := cmp.Diff(want[1:], got[1:]); d != "" {
		t.Error(d)
	}
}

// However often a run is cut short, wherever in a line, the file comes to say the same.
func TestCutShort(t *testing.T) {
	for i, all := range [][]agent.Event{story(), shortened()} {
		step := 1 + 28*i // of a long one, not everywhere
		whole := t.TempDir()
		write(t, config(whole), all)
		want := content(t, whole)
		var cuts []int
		for n := 0; n < len(want); n += step {
			cuts = append(cuts, n)
		}
		ends := func(n int) bool { return n == 0 || want[n] == '\n' || want[n-1] == '\n' }
		for _, n := range prooftest.Sample(t, cuts, 40, ends) {
			dir := t.TempDir()
			path := filepath.Join(dir, "-tmp-proj-x-y", session+".jsonl")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want[:n]), 0o600); err != nil {
				t.Fatal(err)
			}
			write(t, config(dir), all)
			write(t, config(dir), all)
			var valid []string
			for line := range strings.Lines(content(t, dir)) {
				if json.Valid([]byte(line)) && strings.TrimSpace(line) != "" {
					valid = append(valid, line)
				}
			}
			if got := strings.Join(valid, ""); got != want {
				t.Fatalf("cut at %d: %s", n, cmp.Diff(want, got))
			}
		}
	}
}

// What an answer and its messages are called does not depend on which run of the program
// writes it, or where that was cut short, and is as the host is told: the answer by its
// request, a message by the place of its block. The last one that is shown says why it ended.
func TestNamesOfAnAnswer(t *testing.T) {
	all := events(
		agent.SessionOpened{Session: session}, agent.InputAdded{Input: "in_1", Text: "go"}, // 1, 2
		agent.ModelRequested{}, agent.SettingsChanged{Title: "Made meanwhile", By: "model"}, // 3, 4
		agent.ModelRequested{Purpose: "title"}, // 5
		agent.ModelAnswered{Answer: agent.Answer{ID: "resp_1", Stop: agent.StopEnd, Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{
			{Type: agent.RawBlock, Provider: "responses", Raw: json.RawMessage(`{"type":"x"}`)},
			{Type: agent.TextBlock, Text: "one"},
			{Type: agent.TextBlock, Text: "two"},
			{Type: agent.RawBlock, Provider: "responses", Raw: json.RawMessage(`{"type":"y"}`)},
		}}}}, // 6
	)
	type answer struct {
		UUID    string
		Message struct {
			ID   string
			Stop string `json:"stop_reason"`
		}
	}
	id, of := transcript.AnswerID(all[2].ID), all[5].ID
	var one, two answer
	one.UUID, one.Message.ID = transcript.MessageID(of, 1), id
	two.UUID, two.Message.ID, two.Message.Stop = transcript.MessageID(of, 2), id, "end_turn"
	whole := t.TempDir()
	write(t, config(whole), all)
	text := content(t, whole)
	for n := 0; n < len(text); n += 7 {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "-tmp-proj-x-y", session+".jsonl"), text[:n])
		write(t, config(dir), all)
		var got []answer
		for line := range strings.Lines(content(t, dir)) {
			var a answer
			if json.Unmarshal([]byte(line), &a) == nil && strings.HasPrefix(a.Message.ID, "msg_") {
				got = append(got, a)
			}
		}
		if d := cmp.Diff([]answer{one, two}, got); d != "" {
			t.Fatalf("cut at %d: %s", n, d)
		}
	}
}

// What others have said of the session is known until the session says it itself.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	write(t, config(dir), story())
	f, err := os.OpenFile(filepath.Join(dir, "-tmp-proj-x-y", session+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"type":"custom-title","customTitle":"Theirs","sessionId":"` + session + `"}` + "\n" + `{"type":"tag","tag":"red","sessionId":"` + session + `"}`)
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	more := append(story(), agent.Event{Seq: 11, ID: "z", Body: agent.SettingsChanged{Title: "Theirs", By: "user", Tags: &[]string{"red"}}})
	if o := write(t, config(dir), more).Others(); o.Title != "Theirs" || o.Tag == nil || *o.Tag != "red" {
		t.Errorf("%+v", o)
	}
	if o := write(t, config(dir), more).Others(); o.Title != "" || o.Tag != nil {
		t.Errorf("told again: %+v", o)
	}
}

// The tag that readers know is written when it has become another one, whichever run of the
// program writes it, and neither for a color nor for what is behind it: a host that has given
// the session another one meanwhile has had the last word.
func TestTag(t *testing.T) {
	tags := func(list ...string) agent.Body { return agent.SettingsChanged{Tags: &list} }
	all := events(
		agent.SessionOpened{Session: session}, agent.InputAdded{Input: "in_1", Text: "go"},
		tags("color-red"), tags("user:ann", "color-red", "a"), tags("user:ann", "a", "b"),
		agent.InputAdded{Input: "in_2", Text: "on"}, tags("a", "b", "color-blue"), tags("b"), tags("b", "color-blue"), tags("color-blue"),
	)
	for split := range len(all) + 1 {
		dir := t.TempDir()
		write(t, config(dir), all[:split])
		write(t, config(dir), all)
		write(t, config(dir), all)
		var got []string
		for line := range strings.Lines(content(t, dir)) {
			var l struct{ Type, Tag string }
			if json.Unmarshal([]byte(line), &l) == nil && l.Type == "tag" {
				got = append(got, l.Tag)
			}
		}
		if s := strings.Join(got, ","); s != "a,b," {
			t.Errorf("another run from %d: %s", split, s)
		}
	}
}

func TestFolder(t *testing.T) {
	for path, want := range map[string]string{
		"/tmp/proj.x_y": "-tmp-proj-x-y", "/한/b": "---b", "/😀": "---", "/e\u0301": "--",
		"/" + strings.Repeat("a", 200): "-" + strings.Repeat("a", 199) + "-nhnifb",
	} {
		got := Folder(path)
		if len(want) > maxFolder { // readers find it by what is before the hash
			got, want = got[:maxFolder+1], want[:maxFolder+1]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []Config{{Projects: t.TempDir(), Session: "../x"}, {Projects: t.TempDir(), Session: session, Agent: "../x"}} {
		if _, err := Open(c); err == nil {
			t.Errorf("%+v was opened", c)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"type":"user","uuid":"a","event":"` + session + `:3","message":{"content":[{"type":"tool_use","id":"c1"}]}}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "-tmp-proj-x-y", session+".jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, config(dir), story())
		if s := content(t, dir); !strings.HasPrefix(s, string(data)) || !strings.HasSuffix(s, "\n") && s != "" {
			t.Errorf("it was not appended to: %q", s)
		}
	})
}

// No link leads what is written out of the folder with the files of all.
func TestLinksLeadNowhere(t *testing.T) {
	for _, link := range []string{session + ".jsonl", session, session + "/subagents"} {
		work, projects, out := t.TempDir(), t.TempDir(), t.TempDir()
		to := out
		if strings.HasSuffix(link, ".jsonl") {
			to = filepath.Join(out, "profile")
			if err := os.WriteFile(to, []byte("mine\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := filepath.Join(projects, Folder(work), link)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		prooftest.Link(t, os.Symlink(to, at))
		c := Config{Projects: projects, Session: session, Workdir: work}
		if to == out {
			c.Agent = "a1"
		}
		if m, err := Open(c); err == nil {
			t.Errorf("%s: it is followed", link)
			_ = m.Close()
		}
		list, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if data, _ := os.ReadFile(filepath.Join(out, f.Name())); string(data) != "mine\n" {
				t.Errorf("%s: %s has %q", link, f.Name(), data)
			}
		}
	}
}

// Whoever wants to know is told what is added, and nothing but that: whole lines, each once,
// however often the file is gone on with.
func TestWrote(t *testing.T) {
	dir := t.TempDir()
	var told strings.Builder
	c := config(dir)
	c.Wrote = func(lines []byte) { told.Write(lines) }
	all := story()
	write(t, c, all[:5])
	if told.String() != content(t, dir) || told.Len() == 0 {
		t.Errorf("%q", told.String())
	}
	file := c.Path()
	whole, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, whole[:len(whole)-7], 0o600) != nil { // its last line was cut short
		t.Fatal(err)
	}
	told.Reset()
	write(t, c, all)
	now := content(t, dir)
	if told.Len() == 0 || now != string(whole[:len(whole)-7])+"\n"+told.String() {
		t.Errorf("%q", told.String())
	}
	told.Reset()
	if write(t, c, all); told.Len() > 0 || content(t, dir) != now {
		t.Errorf("%q", told.String())
	}
}

// A session that goes on elsewhere, from its file alone, has another log: events of both have
// the same numbers, and each line is there once, however often it is opened.
func TestGoesOnElsewhere(t *testing.T) {
	says := func(text string) agent.Body {
		return agent.ModelAnswered{Answer: agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}}}
	}
	log := func(name string, bodies ...agent.Body) []agent.Event {
		list := events(append([]agent.Body{agent.SessionOpened{Session: session, Title: "Mine"}}, bodies...)...)
		for i := range list {
			list[i].ID = name + list[i].ID
		}
		return list
	}
	at := func(c Config, log string) Config {
		c.Adopted, c.Log = "imported", log
		return c
	}
	taken := agent.Note{Code: "imported"}
	c := config(t.TempDir())
	first := log("1", agent.InputAdded{Input: "in_1", Text: "red"}, says("Red it is."))
	second := log("2", agent.InputAdded{Input: "in_1", Text: "red"}, says("Red it is."), taken, agent.InputAdded{Input: "in_2", Text: "what was it?"}, says("Red."))
	third := log("3", agent.InputAdded{Input: "in_1", Text: "red"}, says("Red it is."), agent.InputAdded{Input: "in_2", Text: "what was it?"}, says("Red."), taken,
		agent.InputAdded{Input: "in_3", Text: "sure?"}, says("Yes."))
	write(t, c, first)
	for n := 4; n <= len(second); n++ {
		write(t, at(c, "b"), second[:n])
	}
	for n := 6; n <= len(third); n++ {
		write(t, at(c, "c"), third[:n])
	}
	text := content(t, c.Projects)
	want := []string{"red", "Red it is.", "what was it?", "Red.", "sure?", "Yes."}
	if got := reads(t, text); !slices.Equal(got, want) {
		t.Errorf("the conversation is %q, want %q", got, want)
	}
	if n := strings.Count(text, `"uuid"`); n != len(want) {
		t.Errorf("%d lines of the conversation, want %d:\n%s", n, len(want), text)
	}
}

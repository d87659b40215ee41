//go:build unix

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// lay puts files below the world's folder: work/ is the workspace, home/ the user's.
func (w *world) lay(files map[string]string) {
	w.t.Helper()
	for name, content := range files {
		path := filepath.Join(filepath.Dir(w.work), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// told shows a request of the conversation as its user messages and what was added to
// them, a line each; of instructions, what stands between their labels.
func told(t *testing.T, r script.Recorded) string {
	t.Helper()
	var body struct {
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range body.Messages {
		for _, raw := range m.Content {
			var c struct{ Type, Text string }
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatal(err)
			}
			switch {
			case c.Type != "text" && c.Type != "tool_result":
			case c.Type == "tool_result":
				b.WriteString("result\n")
			case strings.Contains(c.Text, "<instructions scope"):
				b.WriteString("instructions:")
				for l := range strings.Lines(c.Text) {
					if l = strings.TrimSpace(l); l != "" && l[0] != '<' && !strings.Contains(l, "ake the place of") {
						b.WriteString(" " + l)
					}
				}
				b.WriteString("\n")
			default:
				fmt.Fprintf(&b, "%s: %s\n", m.Role, strings.TrimSpace(c.Text))
			}
		}
	}
	return b.String()
}

// prefixes reports requests that do not begin with all messages of the one before.
func prefixes(t *testing.T, requests []script.Recorded) {
	t.Helper()
	var before []byte
	for i, r := range requests {
		var body struct {
			System   json.RawMessage   `json:"system"`
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(bytes.ReplaceAll(r.Body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil), &body); err != nil {
			t.Fatal(err)
		}
		now := append([]byte(nil), body.System...)
		for _, m := range body.Messages {
			now = append(append(now, '\n'), m...)
		}
		whole := now
		if n := len(before); n > 0 { // the last message may have got more blocks
			before = bytes.TrimSuffix(before, []byte("]}"))
			if !bytes.HasPrefix(now, before) {
				t.Errorf("request %d does not begin with the one before it:\n%s\n---\n%s", i, before, now)
			}
		}
		before = whole
	}
}

// The model gets the layers at the beginning, what holds for some files when it
// touches them, and a text again that changes: always behind what it has read.
func TestMemoryInASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{ByStep: true, Replies: []script.Reply{
		calls(tool("Read", fields{"file_path": "web/a.go"})),
		{Text: "Read."},
		{Text: "Again."},
		{Text: "And again."},
		{Text: "Gone."},
		{Text: "Resumed."},
	}}, script.Options{})
	w.lay(map[string]string{
		"home/dure/AGENTS.md":         "The user's.",
		"home/.claude/CLAUDE.md":      "The user's other.",
		"work/CLAUDE.md":              "Of CLAUDE.\n@docs/more.md",
		"work/docs/more.md":           "Included.",
		"work/AGENTS.md":              "한국어로 답하세요.",
		"work/CLAUDE.local.md":        "Local.",
		"work/web/AGENTS.md":          "In web.",
		"work/.dure/rules/go.md":      "---\npaths: \"*.go\"\n---\nFor Go.",
		"work/.dure/rules/c.md":       "---\npaths: \"*.c\"\n---\nFor C.",
		"work/web/a.go":               "package web\n",
		"work/other/AGENTS.md":        "In another folder.",
		"home/dure/rules/always.md":   "Always.",
		"work/web/deep/er/AGENTS.md":  "Deeper.",
		"work/.claude/rules/plain.md": "Plain.",
	})
	flags := app.Flags{Trust: true}
	k := w.talk(flags, agent.Open{})
	k.turn("Look.")
	w.write("AGENTS.md", "영어로 답하세요.")
	k.turn("More.")
	k.turn("The same.")
	if err := os.Remove(filepath.Join(w.work, "web/AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	k.turn("Without it.")
	k.sound()
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	k = w.talk(flags, agent.Open{Session: k.Info.ID})
	k.turn("Back.")
	k.sound()
	const (
		begun = "instructions: The user's other. The user's. Always. Of CLAUDE. Included. %s Plain. Local.\n"
		first = "user: Look.\n"
	)
	start := fmt.Sprintf(begun, "한국어로 답하세요.") + first
	touched := start + "assistant: I call.\nresult\ninstructions: For Go.\ninstructions: In web.\n"
	changed := touched + "assistant: Read.\n" + fmt.Sprintf(begun, "영어로 답하세요.") + "user: More.\n"
	same := changed + "assistant: Again.\nuser: The same.\n"
	gone := same + "assistant: And again.\nuser: <instructions path=\"W/web/AGENTS.md\"/> is not there any more, or holds for other files: what it said does not hold.\nuser: Without it.\n"
	want := []string{start, touched, changed, same, gone, gone + "assistant: Gone.\nuser: Back.\n"}
	for i, r := range w.model.Requests() {
		if d := cmp.Diff(want[min(i, len(want)-1)], strings.ReplaceAll(told(t, r), w.work, "W")); d != "" {
			t.Errorf("request %d: %s", i, d)
		}
	}
	prefixes(t, w.model.Requests())
	if bad := refusals(w.model); bad != nil {
		t.Error(bad)
	}
}

// Nothing of a folder that nobody trusts is read; what is the user's own is.
func TestMemoryOfAnUntrustedFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	w.lay(map[string]string{
		"home/dure/AGENTS.md": "Mine.", "work/AGENTS.md": "Theirs.", "work/.dure/rules/x.md": "Theirs.", "work/CLAUDE.local.md": "Theirs.",
	})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("Hello.")
	if got, want := told(t, w.model.Requests()[0]), "instructions: Mine.\nuser: Hello.\n"; got != want {
		t.Errorf("it was told\n%s\nwant\n%s", got, want)
	}
	r, err := client.Query[query.MemoryReport](t.Context(), k.Client, query.ListMemory{Session: k.Info.ID})
	if err != nil || r.Trusted || len(r.Findings) != 1 || r.Findings[0].Code != "memory-untrusted" || r.Findings[0].Args["n"] != "3" {
		t.Errorf("the report is %+v, %v", r, err)
	}
}

// A compaction puts the instructions away, and they come again as they are then:
// those of the beginning, and those for the files that were touched last.
func TestMemoryAfterACompaction(t *testing.T) {
	t.Parallel()
	reply := func(r script.Request) script.Reply {
		switch {
		case strings.Contains(string(r.Body), "You shorten the conversation"):
			return script.Reply{Text: "So far."}
		case strings.Contains(string(r.Body), "Look.") && !strings.Contains(string(r.Body), "tool_result") && !strings.Contains(string(r.Body), "[Previous conversation summary]"):
			return calls(tool("Read", fields{"file_path": "web/a.go"}))
		}
		return script.Reply{Text: "Done."}
	}
	w := newWorld(t, script.Script{}, script.Options{Func: reply})
	w.lay(map[string]string{"work/AGENTS.md": "Root.", "work/web/AGENTS.md": "In web.", "work/web/a.go": "package web\n" + strings.Repeat("// much\n", 4000)})
	k := w.talk(app.Flags{Trust: true, Settings: `{"compact":{"strategy":"summarize","recent":1}}`}, agent.Open{})
	k.turn("Look.")
	k.turn("Talk.")
	k.send(agent.Compact{})
	body[agent.ContextCompacted](k)
	w.write("AGENTS.md", "Root, changed.")
	k.turn("On.")
	k.sound()
	requests := w.model.Requests()
	got := told(t, requests[len(requests)-1])
	for _, want := range []string{"instructions: Root, changed.\n", "instructions: In web.\n"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("after the compaction it is told\n%s\nwithout one %s", got, want)
		}
	}
	if strings.Contains(got, "Root.\n") {
		t.Errorf("what was put away is there:\n%s", got)
	}
	if bad := refusals(w.model); bad != nil {
		t.Error(bad)
	}
}

// Going back takes back what came since, and it comes again with what it belongs to.
func TestMemoryAfterARewind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{ByStep: true, Replies: []script.Reply{
		{Text: "Hi."}, {Text: "Changed."}, {Text: "Back."},
	}}, script.Options{})
	w.lay(map[string]string{"work/AGENTS.md": "One."})
	k := w.talk(app.Flags{Trust: true}, agent.Open{})
	k.turn("Hello.")
	head := last(k)
	w.write("AGENTS.md", "Two.")
	k.turn("More.")
	k.send(agent.Rewind{To: head, Conversation: true})
	body[agent.ConversationRewound](k)
	w.write("AGENTS.md", "One.")
	k.turn("Other.")
	k.sound()
	requests := w.model.Requests()
	want := "instructions: One.\nuser: Hello.\nassistant: Hi.\nuser: Other.\n"
	if d := cmp.Diff(want, told(t, requests[len(requests)-1])); d != "" {
		t.Error(d)
	}
}

// Deny rules hold for what an instruction file includes, and files of a project
// include nothing from outside of it unless the user says so.
func TestMemoryIncludesNothingThatIsDenied(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ settings, want string }{
		{`{}`, "instructions: Root.\nuser: Hello.\n"},
		{`{"memory":{"outside":true}}`, "instructions: Root. Outside.\nuser: Hello.\n"},
		{`{"memory":{"enabled":false}}`, "user: Hello.\n"},
		{`{"memory":{"excludes":["**/AGENTS.md"]}}`, "user: Hello.\n"},
	} {
		w := newWorld(t, says(), script.Options{})
		w.lay(map[string]string{
			"work/AGENTS.md": "Root.\n@denied.txt\n@../out.md\n@.env\n", "work/denied.txt": "Secret.", "work/.env": "Secret.", "out.md": "Outside.",
		})
		k := w.talk(app.Flags{Trust: true, Settings: tt.settings, Deny: []string{"Read(denied.txt)"}}, agent.Open{})
		k.turn("Hello.")
		if d := cmp.Diff(tt.want, told(t, w.model.Requests()[0])); d != "" {
			t.Errorf("%s: %s", tt.settings, d)
		}
	}
}

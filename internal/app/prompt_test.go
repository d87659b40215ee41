//go:build unix

package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// hello is a model that greets.
func hello() script.Options {
	return script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Hello."} }}
}

// settings writes a file in the user's configuration.
func (w *world) settings(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.home, "dure", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// prefix is what a request has in front of its conversation.
func prefix(t *testing.T, r script.Recorded) (p struct {
	System []struct{ Text string }
	Tools  []struct{ Name string }
	Raw    string
},
) {
	t.Helper()
	if err := json.Unmarshal(r.Body, &p); err != nil {
		t.Fatal(err)
	}
	head, _, ok := bytes.Cut(r.Body, []byte(`"messages":`))
	if !ok {
		t.Fatalf("%s has no messages", r.Body)
	}
	p.Raw = string(head)
	return p
}

// Two sessions of one kind in one folder begin with the same bytes, and so does one that is
// opened again; the preview says what they are.
func TestTheSamePrefix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, hello())
	flags := app.Flags{SystemAppend: "Prefer tabs."}
	one := w.talk(flags, agent.Open{New: "one"})
	one.turn("Hi.")
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.talk(flags, agent.Open{New: "two"}).turn("Ho.")
	again := w.talk(flags, agent.Open{Session: "one"})
	again.turn("Hi again.")
	asked := w.model.Requests()
	first := prefix(t, asked[0])
	for i, r := range asked {
		if got := prefix(t, r); got.Raw != first.Raw {
			t.Errorf("request %d begins with\n%s\nand not with\n%s", i, got.Raw, first.Raw)
		}
	}
	if len(asked) != 3 || len(first.System) != 11 || len(asked[0].Body) > 20<<10 {
		t.Errorf("%d requests, %d sections, %d bytes", len(asked), len(first.System), len(asked[0].Body))
	}
	var opened time.Time
	for e, err := range again.Client.Attach("one").Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		opened = e.Time
		break
	}
	report, err := client.Query[query.PromptReport](t.Context(), again.Client, query.PromptPreview{Opened: opened, Tools: true})
	if err != nil || report.Hash != all[agent.ModelRequested](again.seen)[0].System {
		t.Errorf("the preview is %s of another prompt, %v", report.Hash, err)
	}
	if len(report.Tools) != len(first.Tools) || report.Tokens == 0 || report.Budget == 0 {
		t.Errorf("%d tools: %v\n%d were offered: %v\n%d of %d tokens", len(report.Tools), report.Tools, len(first.Tools), first.Tools, report.Tokens, report.Budget)
	}
}

// What a session is opened with holds until it is closed, and stands in its log.
func TestWorkIsSettledWhenASessionOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, hello())
	w.settings("settings.json", `{"profiles": {"review": {"base": "code", "effort": "high", "steps": 7, "mode": "plan", "tools": ["read-only"], "verification": false, "prompt": "You review code."}}}`)
	k := w.talk(app.Flags{Profile: "review"}, agent.Open{})
	k.turn("Look.")
	want := agent.Profile{Name: "review", Kind: "code", Model: "script", Effort: "high", Steps: 7, Mode: agent.ModePlan, Tools: []string{"read-only"}}
	opened := all[agent.SessionOpened](k.seen)[0]
	if got, _ := json.Marshal(opened.Work); string(got) != marshalled(t, want) {
		t.Errorf("the log says %s", got)
	}
	w.settings("settings.json", `{"profiles": {"review": {"base": "chat", "prompt": "You sing."}}}`)
	w.settings("prompts/review.md", "And dance.")
	k.turn("Again.")
	asked := w.model.Requests()
	if a, b := prefix(t, asked[0]), prefix(t, asked[1]); a.Raw != b.Raw || !strings.Contains(a.Raw, "You review code.") || strings.Contains(a.Raw, "You are dure") {
		t.Errorf("one session has two prompts:\n%s\n%s", a.Raw, b.Raw)
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	k = w.talk(app.Flags{}, agent.Open{Session: k.Info.ID})
	k.turn("And now?")
	asked = w.model.Requests()
	if p := prefix(t, asked[2]); !strings.Contains(p.Raw, "You sing.\\n\\nAnd dance.") {
		t.Errorf("opened again, the prompt is\n%s", p.Raw)
	}
	if got := all[agent.SessionOpened](k.seen); got[len(got)-1].Work.Kind != "chat" {
		t.Errorf("opened again, its work is %+v", got[len(got)-1].Work)
	}
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Chat is offered nothing that changes files or runs commands, unless settings say so.
func TestToolsOfProfiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile, settings string
		want, not         string
	}{
		{"chat", `{}`, "Read Grep WebFetch TodoWrite AskUserQuestion TaskNote", "Write Edit Bash Delete Move HttpRequest GitCommit"},
		{"chat", `{"profiles": {"chat": {"tools": ["all"]}}}`, "Read Write Bash", ""},
		{"code", `{}`, "Read Write Bash", ""},
		{"code", `{"taskState": false}`, "Read Write Bash", "TaskNote"},
		{"code", `{"profiles": {"code": {"tools": ["Read", "group:web", "file_edit"]}}}`, "Read Edit WebFetch", "Write Bash Grep"},
	} {
		w := newWorld(t, script.Script{}, hello())
		w.settings("settings.json", c.settings)
		w.talk(app.Flags{Profile: c.profile}, agent.Open{}).turn("Hi.")
		var has []string
		for _, tool := range prefix(t, w.model.Requests()[0]).Tools {
			has = append(has, tool.Name)
		}
		for _, name := range strings.Fields(c.want) {
			if !slices.Contains(has, name) {
				t.Errorf("%s, %s: %s is missing in %v", c.profile, c.settings, name, has)
			}
		}
		for _, name := range strings.Fields(c.not) {
			if slices.Contains(has, name) {
				t.Errorf("%s, %s: has %s", c.profile, c.settings, name)
			}
		}
	}
}

// What is wrong with a prompt or a profile is said when a session is opened, with what
// to do about it; nothing is asked.
func TestBadPrompts(t *testing.T) {
	t.Parallel()
	small := `{"models":[{"id":"script","provider":"anthropic","window":2000,"max_output":100}]}`
	for _, c := range []struct {
		name, settings, prompt string
		flags                  app.Flags
		code                   agent.ProblemCode
		says                   string
	}{
		{"no such profile", `{}`, "", app.Flags{}, agent.ProblemUsage, `"nothing" is none of: chat, code, cowork, finance`},
		{"no such tool", `{"profiles": {"code": {"tools": ["Raed"]}}}`, "", app.Flags{}, agent.ProblemSettings, `there is no tool "Raed"`},
		{"a bad file", `{}`, "---\nmode: other\n---\n", app.Flags{}, agent.ProblemSettings, `line 2: mode is "other"`},
		{"no room", small, "", app.Flags{SystemAppend: strings.Repeat("word ", 500)}, agent.ProblemPrompt, "has room for 250"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, script.Script{}, hello())
			w.settings("settings.json", c.settings)
			if c.prompt != "" {
				w.settings("prompts/code.md", c.prompt)
			}
			o := agent.Open{}
			if c.name == "no such profile" {
				o.Profile = "nothing"
			}
			a := w.program(options(w.work, w.home, w.model.URL(), c.flags))
			_, err := a.Client().Open(t.Context(), o)
			if p := agent.ProblemOf(err); p == nil || p.Code != c.code || !strings.Contains(p.Message, c.says) || p.Fix == "" {
				t.Errorf("%v", err)
			}
			if list, err := client.Query[agent.SessionList](t.Context(), a.Client(), agent.ListSessions{}); err != nil || len(list.Sessions) > 0 {
				t.Errorf("it leaves %v, %v", list, err)
			}
		})
	}
}

// In a small window the sections that are needed least go, and the preview says which.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, hello())
	w.settings("settings.json", `{"models":[{"id":"script","provider":"anthropic","window":4000,"max_output":100}]}`)
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	r, err := client.Query[query.PromptReport](t.Context(), a.Client(), query.PromptPreview{})
	if err != nil {
		t.Fatal(err)
	}
	var dropped []string
	for _, s := range r.Sections {
		if s.Dropped {
			dropped = append(dropped, s.ID)
		}
	}
	if r.Budget != 500 || r.Tokens > r.Budget || !slices.Contains(dropped, "examples") || slices.Contains(dropped, "constraints") {
		t.Errorf("%d of %d tokens, without %v", r.Tokens, r.Budget, dropped)
	}
}

// The window is told part by part: the sections of the prompt, and what nobody has said
// by where it comes from.
func TestWhatFillsTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, hello())
	w.settings("AGENTS.md", "Prefer tabs. "+strings.Repeat("Be careful. ", 50))
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("Hi.")
	r, err := client.Query[agent.ContextReport](t.Context(), k.Client, agent.ContextUsage{Session: k.Info.ID})
	if err != nil {
		t.Fatal(err)
	}
	var names, sections []string
	used, inPrompt, prompt := 0, 0, 0
	for _, p := range r.Parts {
		names = append(names, p.Name)
		if p.Name != "autocompact_buffer" && p.Name != "free_space" {
			used += p.Tokens
		}
		for _, s := range p.Parts {
			sections, inPrompt, prompt = append(sections, s.Name), inPrompt+s.Tokens, p.Tokens
		}
	}
	if got := strings.Join(names, " "); got != "system_prompt system_tools memory_files messages autocompact_buffer free_space" || used != r.Used {
		t.Errorf("%s: %d of %d", got, used, r.Used)
	}
	if len(sections) != 10 || sections[0] != "identity" || inPrompt > prompt+len(sections) || inPrompt < prompt*9/10 {
		t.Errorf("the prompt of %d has %v with %d", prompt, sections, inPrompt)
	}
}

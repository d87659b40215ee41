package cli

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

func TestPromptLines(t *testing.T) {
	r := query.PromptReport{
		Profile: "review", Kind: "code", Path: "/home/u/.dure/prompts/review.md", Budget: 500, Tokens: 130,
		Sections: []query.PromptSection{
			{ID: "identity", Title: "Identity", Content: "You are dure.", Priority: 100, Required: true, Tokens: 40},
			{ID: "capabilities", Title: "How to work", Content: "# How to work\n- Look before you act.\n" + strings.Repeat("- And again.\n", 20), Priority: 80, Tokens: 90},
			{ID: "examples", Title: "Examples", Content: "# Examples\nOne \x1b[31mred.", Priority: 10, Tokens: 1200, Dropped: true},
		},
		Tools: []query.PromptTool{{Name: "Bash", Description: "Runs a shell command and returns what it prints (stdout and stderr together).", Tokens: 224}},
	}
	var b strings.Builder
	for _, language := range []string{"en", "ko"} {
		for _, full := range []bool{false, true} {
			w := bufio.NewWriter(&b)
			for _, l := range promptLines(text.For(language), r, full) {
				Hang(w, 72, l.head, l.body, l.indent)
			}
			w.WriteString("---\n")
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := agent.Profile{
		Name: "review", Kind: "code", Model: "opus", Fallback: []string{"sonnet", "haiku"}, Effort: "high", Steps: 9,
		Mode: agent.ModePlan, Plan: agent.PlanAuto, Dollars: 2.5, Tokens: 120_000, Verify: true, Tools: []string{"read-only", "group:web"},
	}
	for _, language := range []string{"en", "ko"} {
		b.WriteString(profileLine(text.For(language), p) + "\n")
	}
	golden(t, "prompt.txt", b.String())
}

func TestTaskLines(t *testing.T) {
	s := taskState{
		Session: "s", Task: "mending\nthe parser", Files: []string{"/w/a.go"}, Facts: map[string]string{"port": "80", "host": "h"},
		Decisions: []taskDecision{{Seq: 4, Time: time.Unix(0, 0), Decision: "use JSON", Reason: "it is small", Alternatives: []string{"XML", "YAML"}}},
		Summary:   "[Previous conversation summary]\nIt was \x1b[1mlong.\n",
	}
	var lines []string
	for _, language := range []string{"en", "ko"} {
		lines = append(lines, taskLines(text.For(language), s)...)
		lines = append(lines, taskLines(text.For(language), taskState{})...)
	}
	golden(t, "task.txt", strings.Join(lines, "\n")+"\n")
}

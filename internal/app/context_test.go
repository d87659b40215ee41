//go:build unix

package app_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// worker is a model that does long work in a small window: it prints a lot, notes a
// decision, and at the end opens what a summary names.
func worker(steps int) func(script.Request) script.Reply {
	n, step := 0, 0
	return func(r script.Request) script.Reply {
		n++
		call := func(tool string, in fields) script.Reply {
			return script.Reply{Text: fmt.Sprintf("Step %d.", n), Calls: []script.Call{{ID: fmt.Sprintf("c%d", n), Tool: tool, Input: input(in)}}}
		}
		if strings.Contains(string(r.Body), "You shorten the conversation") {
			return script.Reply{Text: "Much was printed [#4-6]. Nonsense [#99999]."}
		}
		step++
		switch {
		case step == 1:
			return call("TaskNote", fields{"decisions": []fields{{"decision": "print with seq", "reason": "it is there"}}, "facts": fields{"answer": "forty-two"}})
		case step <= steps:
			return call("Bash", fields{"command": fmt.Sprintf("seq %d %d", step*1000, step*1000+900)})
		case step == steps+1:
			span := regexp.MustCompile(`\[#(\d+)-(\d+)\]`).FindStringSubmatch(string(r.Body))
			if span == nil {
				return script.Reply{Text: "The summary names nothing."}
			}
			return call("Recall", fields{"from": number(span[1]), "to": number(span[2])})
		}
		return script.Reply{Text: "Done."}
	}
}

func number(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// A session works on in a window that holds a fraction of what it says: it never
// exceeds it, keeps what it has noted, opens what was put away, and its log can be
// replayed, also by who opens it again.
func TestLongWorkInASmallWindow(t *testing.T) {
	t.Parallel()
	const window = 30_000
	w := newWorld(t, script.Script{}, script.Options{Func: worker(40)})
	settings := fmt.Sprintf(`{"models":[{"id":"script","provider":"anthropic","window":%d,"max_output":2000}],"compact":{"strategy":"summarize"}}`, window)
	flags := app.Flags{Skip: true, Settings: settings}
	k := w.talk(flags, agent.Open{})
	if end := k.turn("Print everything."); end.Reason != agent.EndDone {
		t.Fatalf("the turn ended: %+v", end)
	}
	done := all[agent.ContextCompacted](k.seen)
	if len(done) < 3 {
		t.Errorf("%d compactions", len(done))
	}
	for _, a := range all[agent.ModelAnswered](k.seen) {
		if n := a.Usage.Context(); n > window {
			t.Errorf("a request had %d tokens", n)
		}
	}
	last := done[len(done)-1]
	var head string
	for _, d := range done {
		if d.Messages > 0 {
			head = d.Head[0].Text()
		}
	}
	for _, want := range []string{"Print everything.", "print with seq", "answer: forty-two", "Much was printed [#4-6]"} {
		if !strings.Contains(head, want) {
			t.Errorf("%q is lost in\n%s", want, head)
		}
	}
	if strings.Contains(head, "99999") {
		t.Error("a reference to nothing was kept")
	}
	if last.After >= last.Before {
		t.Errorf("from %d to %d tokens", last.Before, last.After)
	}
	var recalled string
	for _, f := range all[agent.CallFinished](k.seen) {
		if f.Tool == "session__recall" {
			recalled = f.Result.Text
		}
	}
	if !strings.Contains(recalled, "call c1: task__note") {
		t.Errorf("what was recalled is\n%s", recalled)
	}
	k.sound()

	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := w.talk(flags, agent.Open{Session: k.Info.ID})
	if end := again.turn("And now?"); end.Reason != agent.EndDone {
		t.Fatalf("the turn of a resumed session ended: %+v", end)
	}
	report, err := client.Query[agent.ContextReport](t.Context(), again.Client, agent.ContextUsage{Session: k.Info.ID})
	if err != nil || report.Window != window || report.Used < 1000 || report.Used > window || len(report.Parts) != 5 {
		t.Errorf("the window has %+v, %v", report, err)
	}
	all, system := 0, 0
	for _, p := range report.Parts {
		all += p.Tokens
		for _, part := range p.Parts {
			system += part.Tokens
		}
	}
	if all != window || system != report.Parts[0].Tokens {
		t.Errorf("the parts come to %d, those of the prompt to %d: %+v", all, system, report.Parts)
	}
	again.send(agent.Restore{})
	body[agent.ContextRestored](again)
	again.sound()
	if bad := refusals(w.model); bad != nil {
		t.Error(bad)
	}
}

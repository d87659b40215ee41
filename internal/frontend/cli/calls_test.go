package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/frontend/text"
)

// Of an agent that has ended people see its type, its short ID and how its report begins.
func TestHowTasksEnd(t *testing.T) {
	id := "child:cabcdefg" + strings.Repeat("h", 25)
	report := agent.Result{Status: agent.StatusOK, Text: "x", Output: json.RawMessage(`{"agentType":"researcher","content":[{"type":"text","text":"Found\n` + strings.Repeat("가", 200) + `"}]}`)}
	failed := agent.Failure(agent.ErrTool, "it broke", "")
	failed.Output = report.Output
	for _, c := range []struct {
		b      agent.CallSettled
		en, ko string
	}{
		{agent.CallSettled{Handle: "job:a", Result: agent.OK("one")}, "task job:a has ended: one", "작업 job:a 끝: one"},
		{agent.CallSettled{Handle: id, Result: report}, "agent researcher (cabcdefg) has ended: Found " + strings.Repeat("가", 94) + "…", "에이전트 researcher(cabcdefg) 끝: Found " + strings.Repeat("가", 94) + "…"},
		{agent.CallSettled{Handle: id + "-123456", Result: failed}, "agent researcher (cabcdefg) has failed: it broke", "에이전트 researcher(cabcdefg) 실패: it broke"},
		{agent.CallSettled{Handle: id, Result: agent.Result{Status: agent.StatusOK, Output: json.RawMessage(`{"type":"delegate_result","from":"tutor","to":"main","payload":"Taught."}`)}}, "agent tutor (cabcdefg) has ended: Taught.", "에이전트 tutor(cabcdefg) 끝: Taught."},
	} {
		for lang, want := range map[string]string{"en": c.en, "ko": c.ko} {
			if got := settledLine(text.For(lang), c.b); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
	}
	b := agent.CrewProgressed{Task: "build", Agent: "debugger", Status: "failed", Over: 2, Done: 1, Of: 3, Percent: 66}
	if got := CrewLine(text.For("en"), b); got != "plan: 2 of 3 tasks over (66 %) · build (debugger) failed" {
		t.Error(got)
	}
	if got := CrewLine(text.For("ko"), b); got != "계획: 작업 3개 중 2개 끝(66 %) · build(debugger) failed" {
		t.Error(got)
	}
}

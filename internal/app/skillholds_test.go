//go:build unix

package app_test

import (
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// What a skill takes away, a turn does not have either that nobody has asked for; its hooks
// hold for the turn, or, as the ecosystem has it, for the rest of the session.
func TestWhatSkillsHoldBehindTheirTurn(t *testing.T) {
	t.Parallel()
	const skill = "---\nname: strict\ndescription: Is strict.\ndisallowed-tools: Bash\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo HOOKED >&2; exit 2\n---\nBe strict.\n"
	for folder, free := range map[string]string{".dure": "FREE", ".claude": "HOOKED"} {
		bash := func(id, command string) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: id, Tool: "Bash", Input: input(fields{"command": command})}}}
		}
		w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
			switch {
			case strings.Contains(r.Last, "the tests fail"):
				return bash("woken", "echo WOKEN")
			case strings.Contains(r.Last, "once more"):
				return bash("free", "echo FREE")
			case strings.Contains(r.Last, "be strict please"):
				return script.Reply{Calls: []script.Call{{ID: "skill", Tool: "Skill", Input: input(fields{"skill": "strict"})}}}
			}
			return script.Reply{Text: "done", Stop: agent.StopEnd}
		}})
		w.lay(map[string]string{"work/" + folder + "/skills/strict/SKILL.md": skill})
		w.chooses(fields{"hooks": fields{"UserPromptSubmit": []any{fields{"hooks": []any{
			fields{"type": "command", "command": "while [ ! -e go ]; do sleep 0.1; done; echo the tests fail >&2; exit 2", "asyncRewake": true, "once": true},
		}}}}})
		k := w.talk(app.Flags{Trust: true, Allow: []string{"Bash", "Skill"}}, agent.Open{})
		k.turn("be strict please")
		w.write("go", "")
		body[agent.TurnEnded](k)
		k.turn("once more")
		if got := k.result("woken").Text; !strings.Contains(got, "takes it away") {
			t.Errorf("%s: in a turn that nobody has asked for, Bash says %q", folder, got)
		}
		if got := k.result("free").Text; !strings.Contains(got, free) {
			t.Errorf("%s: once somebody has said something, Bash says %q, want %s", folder, got, free)
		}
		k.sound()
	}
}

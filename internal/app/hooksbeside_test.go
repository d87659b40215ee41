//go:build unix

package app_test

import (
	"fmt"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// noting is a hook that writes down what it is told, by the name of its event.
func noting(then string) string { return "cat >> $DURE_HOOK_EVENT; " + then }

// Agents begin and end with events of their own; what hooks say at their beginning is for
// them, and hooks may have them go on.
func TestHooksOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(func(r script.Request) script.Reply {
		text := "first"
		switch {
		case !strings.Contains(string(r.Body), "mind the gap"):
			text = "not told"
		case strings.Contains(r.Last, "once more"):
			text = "second"
		}
		return script.Reply{Text: text, Stop: agent.StopEnd}
	}, hand("a1", fields{"description": "look", "prompt": "Look.", "subagent_type": "looker"})))
	w.kind("looker", "---\nname: looker\ndescription: Looks.\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: touch own\n---\nYou look.\n")
	w.chooses(fields{"permissions": fields{"allow": []string{"Agent"}}, "hooks": fields{
		"SubagentStart": []any{fields{"matcher": "looker", "hooks": []any{fields{"type": "command", "command": noting(
			`echo '{"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "mind the gap"}}'`)}}}},
		"SubagentStop": `case $(tee -a SubagentStop) in *'"stop_hook_active":false'*) echo once more >&2; exit 2;; esac`,
		"Stop":         noting(""),
		"SessionStart": noting(""),
	}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("Do the whole.")
	if r := k.result("a1"); !strings.HasPrefix(r.Text, "second\n") {
		t.Errorf("the result is %q", r.Text)
	}
	for name, n := range map[string]int{"SubagentStart": 1, "SubagentStop": 2, "Stop": 1, "SessionStart": 1} {
		if got := strings.Count(w.read(name), "\n"); got != n {
			t.Errorf("%s ran %d times, want %d", name, got, n)
		}
	}
	if !fileThere(w, "own") {
		t.Error("the hooks of the agent did not run")
	}
	stop := w.told("SubagentStop")
	if stop["agent_type"] != "looker" || stop["last_assistant_message"] != "second" || stop["session_id"] != k.Info.ID || stop["agent_id"] == "" {
		t.Errorf("told at its end: %v", stop)
	}
	k.sound()
}

// No hook runs for the agent that a hook asks, and what that says counts.
func TestHooksOfHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case strings.Contains(string(r.Body), "Is this all right?") && r.Step == 0:
			return script.Reply{Calls: []script.Call{{ID: "r1", Tool: "Read", Input: input(fields{"file_path": "rules.txt"})}}}
		case strings.Contains(string(r.Body), "Is this all right?"):
			return script.Reply{Text: `{"ok": false, "reason": "the rules say no"}`, Stop: agent.StopEnd}
		}
		return bites(r)
	}})
	w.write("rules.txt", "no canaries\n")
	w.chooses(fields{"permissions": fields{"allow": []string{"Bash"}}, "hooks": fields{"PreToolUse": []any{
		fields{"hooks": []any{fields{"type": "agent", "prompt": "Is this all right?"}}},
		fields{"hooks": []any{fields{"type": "command", "command": noting("")}}},
	}}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("go")
	if fileThere(w, "canary") || !strings.Contains(k.result("c1").Text, "the rules say no") {
		t.Errorf("the agent was not heard\n%s", names(k.seen))
	}
	if n := strings.Count(w.read("PreToolUse"), "\n"); n != 1 {
		t.Errorf("the other hook ran %d times, and was to be asked about one call", n)
	}
	k.sound()
}

// A change of the model is put to hooks, and so is a compaction; people who are asked
// something are told by hooks as well.
func TestHooksBesideTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "ask me") {
			return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("q", r.Step), Tool: "Bash", Input: input(fields{"command": "touch asked"})}}}
		}
		return script.Reply{Text: strings.Repeat("words ", 200), Stop: agent.StopEnd}
	}})
	w.chooses(fields{"hooks": fields{
		"PreModelSwitch":  `case $(cat) in *'"to_model":"demo"'*) echo not that one >&2; exit 2;; esac`,
		"PostModelSwitch": noting(""),
		"PreCompact":      noting("echo keep it all >&2; exit 2"),
		"Notification":    []any{fields{"matcher": "permission_prompt", "hooks": []any{fields{"type": "command", "command": noting("")}}}},
	}})
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	for i := range 4 {
		k.turn(fmt.Sprint("say something ", i))
	}
	err := k.Send(t.Context(), agent.Change{Model: "demo"})
	if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemHook || p.Args["reason"] != "not that one" {
		t.Errorf("the change of the model: %v", err)
	}
	_ = k.Send(t.Context(), agent.Compact{}) // that nothing came of it is noted
	k.send(agent.Prompt{Text: "ask me"})
	asked := body[agent.ApprovalAsked](k)
	k.until("the hook", func(e agent.Event) bool { b, ok := e.Body.(agent.HookRan); return ok && b.Event == "Notification" })
	k.send(agent.Resolve{ID: asked.ID, Decision: agent.Decision{Verdict: agent.Deny}})
	body[agent.TurnEnded](k)
	if told := w.told("Notification"); told["message"] != "dure needs your permission to use Bash" {
		t.Errorf("told %v", told)
	}
	if n := len(all[agent.ContextCompacted](k.seen)); n != 0 || !fileThere(w, "PreCompact") {
		t.Errorf("%d compactions, and the hook was asked: %v\n%s", n, fileThere(w, "PreCompact"), names(k.seen))
	}
	k.sound()
}

// A hook that nobody waits for wakes the session when it has something to say.
func TestHooksWake(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "the tests fail") {
			return script.Reply{Text: "I mend them.", Stop: agent.StopEnd}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}})
	w.chooses(fields{"hooks": fields{"UserPromptSubmit": []any{fields{"hooks": []any{
		fields{"type": "command", "command": "while [ ! -e go ]; do :; done; echo the tests fail >&2; exit 2", "asyncRewake": true},
	}}}}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("work")
	w.write("go", "")
	body[agent.TurnEnded](k)
	if got := strings.Join(said(k.seen), "; "); got != "done; I mend them." {
		t.Errorf("it said %s\n%s", got, names(k.seen))
	}
	k.sound()
}

// Another output may take the place of a result if it has its form, and a person's word
// may come from a hook, but not on what only a person may allow.
func TestHooksSpeakForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step < 3 {
			command := []string{"echo one", "echo two; uname", "echo x > .git/config"}[r.Step]
			return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("c", r.Step), Tool: "Bash", Input: input(fields{"command": command})}}}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}})
	w.chooses(fields{"hooks": fields{
		"PermissionRequest": `echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}'`,
		"PostToolUse": `case $(cat) in
			*'echo one'*) echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": {"stdout": "another", "stderr": ""}}}';;
			*) echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": {"else": 1}}}';; esac`,
	}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("go")
	for id, want := range map[string]string{"c0": "another", "c1": "two\n", "c2": "denied"} {
		if got := k.result(id).Text; !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	k.sound()
}

// Hooks hold for the commands in the text of a skill, for what a skill does in a session
// of its own, and before a skill takes effect; a skill's own hooks hold behind it.
func TestHooksHoldInSkills(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, skill, event, hook string }{
		{"inline", "allowed-tools: Bash(touch *)\n---\nMade: !`touch canary`\n", "PreToolUse", guardDog},
		{"forked", "context: fork\nallowed-tools: Bash(touch *)\n---\nBite.\n", "PreToolUse", guardDog},
		{"before", "allowed-tools: Bash(touch *)\n---\nMade: !`touch canary`\n", "PreSkillExecute", "echo not this one >&2; exit 2"},
		{"its own", "allowed-tools: Bash(touch *)\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: exit 2\n---\nBite.\n", "Notification", "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
				forked := !strings.Contains(string(r.Body), "Do it all.")
				switch {
				case forked && r.Step == 0, !forked && r.Step == 1:
					return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("b", r.Step), Tool: "Bash", Input: input(fields{"command": "touch canary"})}}}
				case !forked && r.Step == 0:
					return script.Reply{Calls: []script.Call{{ID: "s1", Tool: "Skill", Input: input(fields{"skill": "biter"})}}}
				}
				return script.Reply{Text: "I could not.", Stop: agent.StopEnd}
			}})
			w.lay(map[string]string{"home/dure/skills/biter/SKILL.md": "---\nname: biter\ndescription: Bites.\n" + tt.skill})
			w.chooses(fields{"hooks": fields{tt.event: tt.hook}})
			k := w.talk(app.Flags{}, agent.Open{})
			k.turn("Do it all.")
			if fileThere(w, "canary") {
				t.Errorf("the canary is there\n%s", names(k.seen))
			}
			if tt.event != "Notification" && len(all[agent.HookRan](k.seen)) == 0 && tt.name != "forked" {
				t.Errorf("no hook ran\n%s", names(k.seen))
			}
			k.sound()
		})
	}
}

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

// done is a model that has nothing to do.
func done(script.Request) script.Reply { return script.Reply{Text: "done", Stop: agent.StopEnd} }

// A hook that wakes the session at the end of each turn does so some times. After that
// what it says waits for a person, and from then on it may wake the session again.
func TestHooksWakeSomeTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: done})
	w.chooses(fields{"hooks": fields{"Stop": []any{fields{"hooks": []any{
		fields{"type": "command", "command": "echo never done >&2; exit 2", "asyncRewake": true},
	}}}}})
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	k.send(agent.Prompt{Text: "work"})
	for _, most := range []int{9, 18} {
		k.until("the end of it", func(e agent.Event) bool {
			n, ok := e.Body.(agent.Note)
			return ok && strings.Contains(n.Text, "as often in a row as they may")
		})
		k.until("the words that wait", func(e agent.Event) bool {
			ran, ok := e.Body.(agent.HookRan)
			return ok && strings.Contains(ran.Context, "never done")
		})
		if n := len(w.model.Requests()); n > most {
			t.Errorf("%d requests, more than %d", n, most)
		}
		k.send(agent.Prompt{Text: "more"})
	}
	body[agent.TurnEnded](k)
	k.sound()
}

// A call that has the name of one of an earlier step is another call: hooks are asked
// about it again.
func TestHooksOfCallsOfOneName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step < 3 {
			return script.Reply{Calls: []script.Call{{ID: "call_0", Tool: "Bash", Input: input(fields{"command": "printf x >> ran"})}}}
		}
		return done(r)
	}})
	w.chooses(fields{"permissions": fields{"allow": []string{"Bash"}}, "hooks": fields{"PreToolUse": "printf x >> asked; test $(wc -c < asked) -lt 3 || exit 2"}})
	w.talk(app.Flags{}, agent.Open{}).turn("go")
	if asked, ran := w.read("asked"), w.read("ran"); asked != "xxx" || ran != "xx" {
		t.Errorf("asked %q, ran %q", asked, ran)
	}
}

// What hooks have left as an environment is there for the commands of agents too, and the
// hooks of an agent look at the calls of those that work for it.
func TestHooksHoldForAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		command := func(line string) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("c", r.Step), Tool: "Bash", Input: input(fields{"command": line})}}}
		}
		body := string(r.Body)
		switch {
		case r.Step > 0:
			return done(r)
		case strings.Contains(body, "You look."):
			return command(`test "$LEFT" = here && touch made`)
		case strings.Contains(body, "You lead."):
			return script.Reply{Calls: []script.Call{hand("b1", fields{"description": "bite", "prompt": "Bite.", "subagent_type": "dog"})}}
		case strings.Contains(body, "You bite."):
			return command("touch canary")
		}
		return script.Reply{Calls: []script.Call{
			hand("a1", fields{"description": "look", "prompt": "Look.", "subagent_type": "looker"}),
			hand("a2", fields{"description": "lead", "prompt": "Lead.", "subagent_type": "leader"}),
		}}
	}})
	w.kind("looker", "---\nname: looker\ndescription: Looks.\n---\nYou look.\n")
	w.kind("dog", "---\nname: dog\ndescription: Bites.\n---\nYou bite.\n")
	w.kind("leader", "---\nname: leader\ndescription: Leads.\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: touch guarded; exit 2\n---\nYou lead.\n")
	w.chooses(fields{
		"permissions": fields{"allow": []string{"Bash", "Agent"}},
		"hooks":       fields{"SessionStart": `echo export LEFT=here > "$CLAUDE_ENV_FILE"`},
	})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("go")
	for name, want := range map[string]bool{"made": true, "guarded": true, "canary": false} {
		if fileThere(w, name) != want {
			t.Errorf("%s: %v, want %v\n%s", name, !want, want, names(k.seen))
		}
	}
	k.sound()
}

// What was allowed for a session in one folder is not allowed in another one, and not in
// a copy of the session.
func TestWhatIsAllowedStaysWhereItWas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		open    func(id, below string) agent.Open
		allowed bool
	}{
		{"opened again", func(id, _ string) agent.Open { return agent.Open{Session: id} }, true},
		{"elsewhere", func(id, below string) agent.Open { return agent.Open{Session: id, Workdir: below} }, false},
		{"a copy", func(id, _ string) agent.Open { return agent.Open{Fork: id} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
				if r.Step%2 == 0 {
					return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("c", r.Step), Tool: "Bash", Input: input(fields{"command": "touch made"})}}}
				}
				return done(r)
			}})
			w.lay(map[string]string{"work/below/empty": ""})
			grant := hso("PermissionRequest", fields{"decision": fields{"behavior": "allow", "updatedPermissions": []any{fields{
				"type": "addRules", "behavior": "allow", "destination": "session", "rules": []any{fields{"toolName": "Bash", "ruleContent": "touch *"}},
			}}}})
			w.chooses(fields{"hooks": fields{"PermissionRequest": "case $(cat) in *below*) exit 0;; esac; " + firstTime(grant)}})
			k := w.talk(app.Flags{}, agent.Open{})
			k.turn("Make it.")
			shut(k)
			k = w.talk(app.Flags{}, tt.open(k.Info.ID, w.work+"/below"))
			k.turn("Make it.")
			list := all[agent.CallDecided](k.seen)
			if last := list[len(list)-1]; (last.Decision.Verdict == agent.Allow) != tt.allowed {
				t.Errorf("decided %+v\n%s", last.Decision, names(k.seen))
			}
			k.sound()
		})
	}
}

// Hooks are told of a call that somebody stops.
func TestHooksOfStoppedCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step == 0 {
			return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: input(fields{"command": "echo begun; sleep 60"})}}}
		}
		return done(r)
	}})
	w.chooses(fields{"permissions": fields{"allow": []string{"Bash"}}, "hooks": fields{"PostToolUseFailure": `grep -q '"is_interrupt":true' && touch told`}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.send(agent.Prompt{Text: "go"})
	// A call that is stopped between its start on record and its command did nothing,
	// and no hook hears of it: the command says itself that it runs.
	body[agent.CallOutput](k)
	k.send(agent.Interrupt{})
	if end := body[agent.TurnEnded](k); end.Reason != agent.EndInterrupted || !fileThere(w, "told") {
		t.Errorf("it ended %s, and the hook was told: %v\n%s", end.Reason, fileThere(w, "told"), names(k.seen))
	}
	k.sound()
}

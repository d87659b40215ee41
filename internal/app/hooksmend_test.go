//go:build unix

package app_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A hook that speaks for a person may change a call, and is no person: what it has made
// of the call is decided on anew, and what only a person may allow it does not.
func TestHooksThatChangeWhatIsAsked(t *testing.T) {
	t.Parallel()
	for command, ran := range map[string]bool{"touch other": true, "touch .git/config": false} {
		w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
			if r.Step == 0 {
				return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: input(fields{"command": "touch made"})}}}
			}
			return script.Reply{Text: "done", Stop: agent.StopEnd}
		}})
		w.chooses(fields{"hooks": fields{"PermissionRequest": fmt.Sprintf(
			`echo asked >> asked; echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedInput": {"command": %q}}}}'`, command)}})
		w.file(w.work+"/.git/HEAD", "ref: refs/heads/main\n")
		k := w.talk(app.Flags{}, agent.Open{})
		k.turn("go")
		if there := fileThere(w, strings.TrimPrefix(command, "touch ")); there != ran {
			t.Errorf("%s: it ran: %v\n%s", command, there, names(k.seen))
		}
		d := all[agent.CallDecided](k.seen)
		if len(d) != 1 || ran && !strings.HasPrefix(d[0].Decision.By, "hook:") || !ran && d[0].Decision.Verdict != agent.Deny {
			t.Errorf("%s: decided %+v", command, d)
		}
		k.sound()
	}
}

// A rule says behind a call what it says before it.
func TestRulesOfHooksBehindCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step == 0 {
			return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: input(fields{"command": "touch made"})}}}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}})
	var list []any
	for _, rule := range []string{"Bash(touch *)", "Bash(rm *)", "Bash"} {
		list = append(list, fields{"type": "command", "if": rule, "command": fmt.Sprintf("echo '%s' >> fits", rule)})
	}
	w.chooses(fields{"permissions": fields{"allow": []string{"Bash"}}, "hooks": fields{"PostToolUse": []any{fields{"hooks": list}}}})
	w.talk(app.Flags{}, agent.Open{}).turn("go")
	got := strings.Fields(strings.ReplaceAll(w.read("fits"), "Bash(touch *)", "touch"))
	if len(got) != 2 || strings.Contains(w.read("fits"), "rm") {
		t.Errorf("these rules fit: %q", w.read("fits"))
	}
}

// What a hook keeps from a session stays away, whatever else changes and whoever looks at
// the hooks; and from the agents of the session too.
func TestHeldSettings(t *testing.T) {
	t.Parallel()
	bite := func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "bite") || strings.Contains(r.Last, "Bite.") {
			c := canary
			c.ID = fmt.Sprint("c", r.Step)
			return script.Reply{Calls: []script.Call{c}}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "have it done") {
			return script.Reply{Calls: []script.Call{hand("a1", fields{"description": "bite", "prompt": "Bite.", "subagent_type": "dog"})}}
		}
		return bite(r)
	}})
	w.kind("dog", "---\nname: dog\ndescription: Bites.\n---\nYou bite.\n")
	user := fields{"permissions": fields{"allow": []string{"Bash", "Agent"}}, "hooks": fields{"ConfigChange": "case $(cat) in *project_settings*) exit 2;; esac"}}
	w.chooses(user)
	project := w.work + "/.dure/settings.json"
	w.file(project, string(input(fields{"hooks": fields{"PreToolUse": guardDog}})))
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Trust: true}))
	k := w.talkTo(a, agent.Open{})
	k.turn("bite")
	w.file(project, "{}")
	k.turn("bite")
	user["maxSteps"] = 50
	w.chooses(user)
	k.turn("bite")
	if _, err := client.Query[query.HookReport](t.Context(), a.Client(), query.ListHooks{Session: k.Info.ID}); err != nil {
		t.Fatal(err)
	}
	k.turn("bite")
	k.turn("have it done")
	if fileThere(w, "canary") {
		t.Errorf("what a hook keeps away was taken over\n%s", names(k.seen))
	}
	k.sound()
}

// Rules that a hook keeps from a session are kept from its agents, and from who looks at
// the rules; what it lets pass holds for both.
func TestHeldRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case strings.Contains(r.Last, "have it done"):
			return script.Reply{Calls: []script.Call{hand(fmt.Sprint("a", r.Step), fields{"description": "bite", "prompt": "Bite.", "subagent_type": "dog"})}}
		case strings.Contains(r.Last, "bite") || strings.Contains(r.Last, "Bite."):
			c := canary
			c.ID = fmt.Sprint("c", r.Step)
			return script.Reply{Calls: []script.Call{c}}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}})
	w.kind("dog", "---\nname: dog\ndescription: Bites.\n---\nYou bite.\n")
	w.chooses(fields{"permissions": fields{"allow": []string{"Bash", "Agent"}}, "hooks": fields{"ConfigChange": "test ! -e keep || exit 2"}})
	project := w.work + "/.dure/settings.json"
	w.file(project, `{"permissions":{"deny":["Bash(touch *)"]}}`)
	w.write("keep", "")
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Trust: true}))
	k := w.talkTo(a, agent.Open{})
	k.turn("hello")
	w.file(project, "{}")
	k.turn("have it done")
	if _, err := client.Query[query.RuleReport](t.Context(), a.Client(), query.ListRules{Session: k.Info.ID}); err != nil {
		t.Fatal(err)
	}
	k.turn("bite")
	k.turn("have it done")
	if fileThere(w, "canary") {
		t.Errorf("what a hook keeps away was taken over\n%s", names(k.seen))
	}
	if err := os.Remove(w.work + "/keep"); err != nil {
		t.Fatal(err)
	}
	w.file(project, `{"maxSteps":50}`)
	k.turn("have it done")
	if !fileThere(w, "canary") {
		t.Errorf("what hooks let pass does not hold for agents\n%s", names(k.seen))
	}
	k.sound()
}

// A rule that is written while a turn runs holds for its next call.
func TestRulesHoldFromTheNextCall(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step == 0 {
			w.chooses(fields{"permissions": fields{"allow": []string{"Bash"}, "deny": []string{"Bash(touch *)"}}})
			return script.Reply{Calls: []script.Call{canary}}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}})
	w.chooses(fields{"permissions": fields{"allow": []string{"Bash"}}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("go")
	if fileThere(w, "canary") {
		t.Errorf("the rule does not hold\n%s", names(k.seen))
	}
}

// Hooks that keep a command from becoming a prompt are asked before the commands in its
// text have run.
func TestHooksBeforeCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "done", Stop: agent.StopEnd} }})
	w.lay(map[string]string{"home/dure/commands/biter.md": "---\ndescription: Bites.\nallowed-tools: Bash(touch *)\n---\nMade: !`touch canary`\n"})
	for _, forbidden := range []bool{true, false} {
		set := fields{}
		if forbidden {
			set["hooks"] = fields{"UserPromptExpansion": "echo not that >&2; exit 2"}
		}
		w.chooses(set)
		w.talk(app.Flags{}, agent.Open{}).turn("/biter")
		if there := fileThere(w, "canary"); there == forbidden {
			t.Errorf("forbidden %v: the canary is there: %v", forbidden, there)
		}
	}
}

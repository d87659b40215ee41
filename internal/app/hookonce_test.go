//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A hook that runs once in a session has run when that is opened again.
func TestOnceHoldsWhenOpenedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: done})
	w.chooses(fields{"hooks": fields{"UserPromptSubmit": []any{fields{"hooks": []any{
		fields{"type": "command", "command": "printf x >> once", "once": true},
		fields{"type": "command", "command": "printf x >> always"},
	}}}}})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("work")
	shut(k)
	k = w.talk(app.Flags{}, agent.Open{Session: k.Info.ID})
	k.turn("more")
	if once, always := w.read("once"), w.read("always"); once != "x" || always != "xx" {
		t.Errorf("it ran %q, and the other one %q", once, always)
	}
	k.sound()
}

// A hook of the beginning of a conversation may have skills read again whose files look
// as they did.
func TestHookHasSkillsReadAgain(t *testing.T) {
	t.Parallel()
	for _, reload := range []bool{true, false} {
		w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
			if strings.Contains(string(r.Body), "You shorten the conversation") {
				return script.Reply{Text: "So far."}
			}
			return done(r)
		}})
		w.lay(map[string]string{"work/.claude/skills/greet/SKILL.md": "---\nname: greet\ndescription: Greets one.\n---\nGreet.\n"})
		line := "exit 0"
		if reload {
			line = hso("SessionStart", fields{"reloadSkills": true})
		}
		w.chooses(fields{"hooks": fields{"SessionStart": []any{fields{"matcher": "compact", "hooks": []any{fields{"type": "command", "command": line}}}}}})
		k := w.talk(app.Flags{Trust: true, Settings: `{"compact":{"strategy":"summarize","recent":1}}`}, agent.Open{})
		k.turn("Look. " + strings.Repeat("much ", 4000))
		k.turn("Talk.")
		path := filepath.Join(w.work, ".claude/skills/greet/SKILL.md")
		was, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		w.write(".claude/skills/greet/SKILL.md", strings.Replace(w.read(".claude/skills/greet/SKILL.md"), "one", "two", 1))
		if err := os.Chtimes(path, was.ModTime(), was.ModTime()); err != nil {
			t.Fatal(err)
		}
		k.send(agent.Compact{})
		body[agent.ContextCompacted](k)
		k.turn("On.")
		ran := slices.ContainsFunc(all[agent.HookRan](k.seen), func(r agent.HookRan) bool { return r.Event == "SessionStart" && r.Outcome == agent.HookPassed })
		requests := w.model.Requests()
		if got := told(t, requests[len(requests)-1]); !ran || strings.Contains(got, "Greets two.") != reload {
			t.Errorf("with reloadSkills %v it is told\n%s\nafter\n%s", reload, got, names(k.seen))
		}
		k.sound()
	}
}

// What a hook has for a terminal goes to where a person sits, and nowhere else: that is
// told once.
func TestHooksForTheTerminal(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		w := newWorld(t, script.Script{}, script.Options{Func: done})
		w.chooses(fields{"hooks": fields{"UserPromptSubmit": "printf %s '" + `{"terminalSequence":"\u001b]0;work\u0007\u001b[2J"}` + "'"}})
		k := w.talk(app.Flags{}, agent.Open{Approver: there})
		k.turn("work")
		k.turn("more")
		want, notes := "", 1
		if there {
			want, notes = "\x1b]0;work\a", 0
		}
		for _, ran := range all[agent.HookRan](k.seen) {
			if ran.Terminal != want || !strings.Contains(ran.Message, "does not reach a terminal") {
				t.Errorf("somebody there %v: the terminal gets %q, and people read %q", there, ran.Terminal, ran.Message)
			}
		}
		told := slices.DeleteFunc(all[agent.Note](k.seen), func(n agent.Note) bool { return !strings.Contains(n.Text, "for the terminal") })
		if len(told) != notes {
			t.Errorf("somebody there %v: it is told %d times\n%s", there, len(told), names(k.seen))
		}
		k.sound()
	}
}

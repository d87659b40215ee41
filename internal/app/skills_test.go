//go:build unix

package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/safety/sandbox"
)

// The model calls a skill of the user's: its rules hold for the turn and its text comes
// behind the result; a second call adds a note alone.
func TestSkillOfTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(
		calls(tool("Skill", fields{"skill": "greet", "args": "Kim; touch owned"})),
		calls(tool("Bash", fields{"command": "touch made"})),
		calls(tool("Skill", fields{"skill": "GREET", "args": "Kim; touch owned"})),
		script.Reply{Text: "Greeted."},
		calls(tool("Bash", fields{"command": "touch later"})),
		script.Reply{Text: "Denied."},
	), script.Options{})
	w.lay(map[string]string{
		"home/dure/skills/greet/SKILL.md": "---\nname: greet\ndescription: Greets somebody.\nallowed-tools: Bash(touch *)\narguments: who\n---\nGreet $who of $ARGUMENTS.\nIt is !`echo \"so $0\" $1`\n",
		"home/dure/skills/other/SKILL.md": "---\nname: other\ndescription: Another.\ndisable-model-invocation: true\n---\nx\n",
	})
	k := w.unasked(app.Flags{}, agent.Open{})
	k.turn("hello")
	k.turn("once more")
	reqs := w.model.Requests()
	first, second := string(reqs[0].Body), told(t, reqs[1])
	if !strings.Contains(first, "- greet: Greets somebody.") || strings.Contains(first, "Another.") {
		t.Errorf("the list is wrong:\n%s", told(t, reqs[0]))
	}
	if !strings.Contains(second, "Greet Kim; of Kim; touch owned.\nIt is so Kim; touch") {
		t.Errorf("the text is wrong:\n%s", second)
	}
	if last := told(t, reqs[5]); strings.Count(last, "Greet Kim") != 1 {
		t.Errorf("told twice:\n%s", last)
	}
	if len(all[agent.SkillActivated](k.seen)) != 2 || len(all[agent.SkillCompleted](k.seen)) != 2 {
		t.Errorf("the log is\n%s", names(k.seen))
	}
	if got := w.listed(); got != "made" {
		t.Errorf("the commands made %s", got)
	}
	k.sound()
}

// listed are the visible files of the workspace, without what stands there while a
// command is confined.
func (w *world) listed() string {
	w.t.Helper()
	entries, err := os.ReadDir(w.work)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		held := errors.Is(err, fs.ErrNotExist) || err == nil && sandbox.IsHold(info.Mode())
		if !held && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

// distinct is a script whose calls all have IDs of their own.
func distinct(replies ...script.Reply) script.Script {
	for i, r := range replies {
		for j := range r.Calls {
			r.Calls[j].ID = fmt.Sprintf("r%dc%d", i+1, j+1)
		}
	}
	return script.Script{ByStep: true, Replies: replies}
}

// What a hook denies in the text of a skill was not allowed, as what a rule denies.
func TestSkillWhoseCommandAHookDenies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Refused."}), script.Options{})
	w.lay(map[string]string{"home/dure/skills/asks/SKILL.md": "---\nname: asks\ndescription: Asks.\nallowed-tools: Bash(touch *)\n---\nIt is !`touch owned`.\n"})
	w.chooses(fields{"hooks": fields{"PreToolUse": hso("PreToolUse", fields{"permissionDecision": "deny", "permissionDecisionReason": "nothing is touched"})}})
	k := w.unasked(app.Flags{}, agent.Open{})
	k.turn("/asks")
	got, want := told(t, w.model.Requests()[0]), `its command "touch owned" was not allowed`
	if !strings.Contains(got, want) || !strings.Contains(got, "nothing is touched") || fileThere(w, "owned") {
		t.Errorf("no %q:\n%s", want, got)
	}
}

// What a person types calls a skill once, with its commands; an argument is never one. A
// skill of a session of its own gives back its answer, and what was allowed for the turn
// holds no longer.
func TestSkillOfTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(
		script.Reply{Text: "Said."},
		script.Reply{Text: "Of the work alone."},
		script.Reply{Text: "And so."},
		script.Reply{Text: "Not so."},
		script.Reply{Text: "Refused."},
	), script.Options{})
	w.lay(map[string]string{
		"home/dure/skills/say/SKILL.md":     "---\nname: say\ndescription: Says.\nallowed-tools: Bash(printf *)\n---\nSay $ARGUMENTS, !`printf 'it %s' \"$0\"`.\n",
		"home/dure/skills/apart/SKILL.md":   "---\nname: apart\ndescription: Works alone.\ncontext: fork\nallowed-tools: Read\n---\nWork on $0.\n",
		"home/.claude/skills/asks/SKILL.md": "---\nname: asks\ndescription: Asks.\n---\nIt is !`touch owned`.\n",
		"home/dure/skills/quiet/SKILL.md":   "---\nname: quiet\ndescription: For models.\nuser-invocable: false\n---\nx\n",
	})
	k := w.unasked(app.Flags{}, agent.Open{})
	k.turn("/say !`touch owned` $(touch owned)")
	k.turn("/apart cats")
	k.turn("/asks")
	k.turn("/quiet")
	reqs := w.model.Requests()
	for i, want := range []string{
		"Say !`touch owned` $(touch owned), it !`touch.", "user: Work on cats.", "[Fork skill result] apart\nSaid.",
		"The user has called the skill asks, and it did not come to its end: its command \"touch owned\" was not allowed", "it is for the model alone",
	} {
		if got := told(t, reqs[i]); !strings.Contains(got, want) {
			t.Errorf("request %d has no %q:\n%s", i, want, got)
		}
	}
	var tools struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(reqs[1].Body, &tools); err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "Read" {
		t.Errorf("the session of a skill has %v, %v", tools, err)
	}
	if got := w.listed(); got != "" {
		t.Errorf("made %s", got)
	}
	k.sound()
}

// A skill for some files comes when one is touched, once, and runs nothing; one of a
// folder that nobody trusts never does.
func TestSkillOfFiles(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{true, false} {
		w := newWorld(t, distinct(
			calls(tool("Read", fields{"file_path": "web/a.go"})),
			script.Reply{Text: "Read."},
			calls(tool("Read", fields{"file_path": "web/a.go"})),
			script.Reply{Text: "Again."},
		), script.Options{})
		w.lay(map[string]string{
			"work/web/a.go":                       "package web\n",
			"work/.claude/skills/go/SKILL.md":     "---\nname: go\ndescription: For Go.\npaths: \"web/**/*.go\"\n---\nUse tabs. !`touch owned`\n",
			"work/web/.claude/skills/in/SKILL.md": "---\nname: in\ndescription: Lies below.\n---\nx\n",
		})
		k := w.unasked(app.Flags{Trust: trusted}, agent.Open{})
		k.turn("hello")
		k.turn("once more")
		last := told(t, w.model.Requests()[3])
		n := 0
		if trusted {
			n = 1
		}
		if strings.Count(last, "### go\nUse tabs. [not run") != n || strings.Contains(last, "- in: Lies below.") != trusted || w.listed() != "web" {
			t.Errorf("trusted %v: made %s:\n%s", trusted, w.listed(), last)
		}
		k.sound()
	}
}

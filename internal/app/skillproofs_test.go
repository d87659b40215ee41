//go:build unix

package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// A skill is known after its call was put away: its text comes again, once, and the list
// as well; a second call says that it was read.
func TestSkillAfterACompaction(t *testing.T) {
	t.Parallel()
	again := false
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case strings.Contains(r.Last, "Once more."):
			again = true
			return script.Reply{Calls: []script.Call{{ID: "s1", Tool: "Skill", Input: input(fields{"skill": "greet", "args": "Kim"})}}}
		case strings.Contains(r.Last, "Read the file."):
			return script.Reply{Calls: []script.Call{{ID: "r1", Tool: "Read", Input: input(fields{"file_path": "long.txt"})}}}
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}})
	w.write("long.txt", strings.Repeat("much\n", 4000))
	w.lay(map[string]string{"home/dure/skills/greet/SKILL.md": "---\nname: greet\ndescription: Greets somebody.\n---\nGreet $0 in verse.\n"})
	k := w.talk(app.Flags{Settings: `{"compact":{"strategy":"summarize","recent":1}}`}, agent.Open{})
	k.turn("/greet Kim")
	k.turn("Read the file.")
	k.turn("Talk.")
	k.send(agent.Compact{})
	body[agent.ContextCompacted](k)
	k.turn("On.")
	requests := w.model.Requests()
	got := told(t, requests[len(requests)-1])
	if strings.Count(got, "Greet Kim in verse.") != 1 || strings.Count(got, "- greet: Greets somebody.") != 1 || strings.Contains(got, "much\nmuch") {
		t.Errorf("after the compaction it is told\n%s", got)
	}
	k.turn("Once more.")
	if r := k.result("s1"); !again || !strings.Contains(r.Text, "was read before") {
		t.Errorf("called again it says %q", r.Text)
	}
	k.sound()
}

// A turn with a skill goes on with what the skill gave it after kill -9: its model, its
// rules and its hooks, to the end of the turn and no longer. The skill is still known.
func TestSkillAfterAKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts programs")
	}
	r := &crashRun{dir: t.TempDir(), ask: true, printed: map[int64]string{}, acked: map[string]bool{}}
	for _, dir := range []string{r.work(), r.home()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	r.model, err = script.NewServer(script.Script{}, script.Options{Func: func(req script.Request) script.Reply {
		touch := func(name string) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: name, Tool: "Bash", Input: input(fields{"command": "touch " + name})}}}
		}
		switch {
		case req.Step == 0:
			return touch("one")
		case req.Step == 1 && !r.mute.Load():
			return touch("two")
		case req.Step == 1:
			return script.Reply{Text: "Never.", Faults: slices.Repeat([]script.Fault{{Kind: script.Slow}}, 100)}
		case strings.Contains(req.Last, "Later."):
			return touch("three")
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.model.Close()
	w := &world{t: t, work: r.work(), home: r.home(), model: r.model}
	w.lay(map[string]string{
		"home/dure/settings.json":         w.twoModels(),
		"home/dure/skills/armed/SKILL.md": "---\nname: armed\ndescription: Is armed.\nmodel: here/two\nallowed-tools: Bash(touch *)\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo held >> ledger\n---\nTouch them all.\n",
	})
	r.mute.Store(true)
	if died, _, err := r.child(childTask{Says: "/armed", At: "call.finished"}); err != nil || !died {
		t.Fatalf("the first program: died %v, %v", died, err)
	}
	r.mute.Store(false)
	for _, task := range []childTask{{Says: "/armed"}, {Says: "/armed", Text: "Later."}} {
		if died, _, err := r.child(task); err != nil || died {
			t.Fatalf("%+v: died %v, %v", task, died, err)
		}
	}
	k := w.talk(app.Flags{}, agent.Open{Session: crashID})
	k.sound()
	if got := w.read("ledger"); strings.Count(got, "held\n") != 2 {
		t.Errorf("the hooks ran for %q", got)
	}
	var questions []string
	for _, q := range all[agent.ApprovalAsked](k.seen) {
		questions = append(questions, q.Proposal.Call.ID)
	}
	if !slices.Equal(questions, []string{"three"}) {
		t.Errorf("it asked about %v", questions)
	}
	got := slices.Compact(w.asked())
	if fmt.Sprint(got) != "[two script]" {
		t.Errorf("it asked the models %v", got)
	}
	last := told(t, w.model.Requests()[len(w.model.Requests())-1])
	if strings.Count(last, "Touch them all.") != 1 || !strings.Contains(last, "- armed: Is armed.") {
		t.Errorf("in the end it is told\n%s", last)
	}
	if _, err := os.Stat(filepath.Join(w.work, "three")); err != nil {
		t.Error(err)
	}
}

// An agent calls skills of its own: what one gives it holds there, and not for whom it
// works; a skill that runs in a session of its own has its hooks in there.
func TestSkillsInChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		main := strings.Contains(string(r.Body), whole)
		inFork := strings.Contains(string(r.Body), "Please touch forked.")
		bash := func(name string) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: "b-" + name, Tool: "Bash", Input: input(fields{"command": "touch " + name})}}}
		}
		skill := func(name string) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: "s-" + name, Tool: "Skill", Input: input(fields{"skill": name})}}}
		}
		switch {
		case inFork && !main && r.Step == 0:
			return bash("forked")
		case !main && !inFork && r.Step == 0:
			return skill("armed")
		case !main && !inFork && r.Step == 1:
			return bash("inner")
		case main && r.Step == 0:
			return script.Reply{Calls: []script.Call{hand("a1", fields{"description": "d", "prompt": "Do a part.", "subagent_type": "general-purpose"})}}
		case main && r.Step == 1:
			return skill("forking")
		case main && r.Step == 2:
			return bash("outer")
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}})
	w.lay(map[string]string{
		"home/dure/skills/armed/SKILL.md":   armed("armed"),
		"home/dure/skills/forking/SKILL.md": strings.Replace(armed("forked"), "---\nname: forked\n", "---\ncontext: fork\n", 1),
	})
	k := w.talk(app.Flags{Settings: w.twoModels()}, agent.Open{})
	k.turn(whole)
	if got := w.listed(); got != "forked hook-armed hook-forked inner" {
		t.Errorf("they made %s\n%s", got, names(k.seen))
	}
	if a := all[agent.SkillActivated](k.seen); len(a) != 1 || a[0].Skill != "forking" || !a[0].Fork {
		t.Errorf("the session has the skills %+v", a)
	}
	k.sound()
}

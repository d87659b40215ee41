//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

var wished = regexp.MustCompile(`Please (touch|hand over to) ([a-z-]+)\.`)

// obliging is a model that does the one thing that it is told last.
func obliging(r script.Request) script.Reply {
	m := wished.FindAllStringSubmatch(r.Last, -1)
	switch {
	case strings.Contains(r.Last, "Please read below."):
		return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("r", r.Step), Tool: "Read", Input: input(fields{"file_path": "sub/a.go"})}}}
	case m == nil:
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	case m[len(m)-1][1] == "touch":
		return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("t", r.Step), Tool: "Bash", Input: input(fields{"command": "touch " + m[len(m)-1][2]})}}}
	}
	name := m[len(m)-1][2]
	return script.Reply{Calls: []script.Call{hand(fmt.Sprint("h", r.Step), fields{"description": "d", "prompt": "Please touch " + name + ".", "subagent_type": name})}}
}

// twoModels are settings with another model beside the usual one.
func (w *world) twoModels() string {
	return fmt.Sprintf(`{"providers":{"here":{"type":"anthropic","baseUrl":%q}},"models":[{"id":"two","provider":"here","window":200000}]}`, w.model.URL())
}

// armed is a text that asks for everything that files can ask for.
func armed(name string) string {
	return "---\nname: " + name + "\ndescription: Is " + name + ".\nmodel: here/two\neffort: high\nallowed-tools: Bash(touch *)\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: touch hook-" + name + "\n---\nPlease touch " + name + ".\n"
}

// asked are the models of the requests.
func (w *world) asked() (list []string) {
	for _, r := range w.model.Requests() {
		if !json.Valid(r.Body) {
			continue // of a program that was killed while it sent it
		}
		var body struct{ Model string }
		if err := json.Unmarshal(r.Body, &body); err != nil {
			w.t.Fatal(err)
		}
		list = append(list, body.Model)
	}
	return list
}

// A skill, command or agent whose file came or changed after the trust was given, or lies
// below, is used without powers, each with a warning; once it is trusted it has them. The
// canaries are files that only a power can make.
func TestPowersAreForWhatWasTrusted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: obliging})
	plain := func(name string) string {
		return "---\nname: " + name + "\ndescription: Is " + name + ".\n---\nPlease touch " + name + ".\n"
	}
	w.lay(map[string]string{
		"work/sub/a.go": "package sub\n",
		"work/sub/.claude/skills/skill-nested/SKILL.md": armed("skill-nested"),
		"work/.claude/skills/skill-changed/SKILL.md":    plain("skill-changed"),
		"work/.claude/commands/command-changed.md":      plain("command-changed"),
		"work/.claude/agents/agent-changed.md":          plain("agent-changed"),
	})
	settings := strings.Replace(w.twoModels(), "{", `{"profiles":{"other":{"base":"chat","model":"here/two"}},`, 1) // so that files may ask for it
	o := w.caring(app.Flags{Trust: true, Settings: settings})
	a := w.program(o)
	k := w.talkTo(a, agent.Open{})
	k.turn("Please touch first.") // which nobody allows; what came before it is trusted
	w.lay(map[string]string{
		"work/.claude/skills/skill-changed/SKILL.md": armed("skill-changed"),
		"work/.claude/skills/skill-new/SKILL.md":     armed("skill-new"),
		"work/.claude/skills/skill-runs/SKILL.md":    "---\ndescription: d\nallowed-tools: Bash(touch *)\n---\nIt is !`touch ran-skill`.\n",
		"work/.claude/commands/command-changed.md":   armed("command-changed"),
		"work/.claude/commands/command-new.md":       armed("command-new"),
		"work/.claude/commands/command-runs.md":      "---\nallowed-tools: Bash(touch *)\n---\nIt is !`touch ran-command`.\n",
		"work/.claude/agents/agent-changed.md":       armed("agent-changed"),
		"work/.claude/agents/agent-new.md":           armed("agent-new"),
	})
	play := func(k *talk) {
		for _, text := range []string{
			"/skill-new", "/skill-changed", "Please read below.", "/skill-nested", "/skill-runs", "/command-new", "/command-changed", "/command-runs",
			"Please hand over to agent-new.", "Please hand over to agent-changed.",
		} {
			k.turn(text)
		}
		k.sound()
	}
	play(k)
	if got := w.listed(); got != "sub" {
		t.Errorf("without trust they made %s", got)
	}
	if got := w.asked(); slices.Contains(got, "two") {
		t.Errorf("without trust they asked %s", got)
	}
	var notes []string
	for _, n := range all[agent.Note](k.seen) {
		notes = append(notes, n.Text)
	}
	for _, name := range []string{
		"skill skill-new", "skill skill-changed", "skill skill-nested", "skill skill-runs", "command command-new", "command command-changed",
		"agent agent-new", "agent agent-changed",
	} {
		if !slices.ContainsFunc(notes, func(n string) bool {
			return strings.HasPrefix(n, "the "+name+": the file came or changed after its folder was trusted")
		}) {
			t.Errorf("no note on %s among\n%s", name, strings.Join(notes, "\n"))
		}
	}
	for _, dir := range []string{w.work, filepath.Join(w.work, "sub")} {
		trustFolder(t, a, dir)
	}
	before := len(w.asked())
	play(w.talkWith(w.caring(app.Flags{Settings: settings}), agent.Open{}))
	want := "command-changed command-new hook-agent-changed hook-agent-new hook-command-changed hook-command-new hook-skill-changed hook-skill-nested hook-skill-new " +
		"ran-command ran-skill skill-changed skill-nested skill-new sub"
	if got := w.listed(); got != want {
		t.Errorf("trusted they made\n%s, want\n%s", got, want)
	}
	if got := w.asked()[before:]; !slices.Contains(got, "two") {
		t.Errorf("trusted they asked %s", got)
	}
}

// What a project brings does not choose who reads the conversation, trusted or not: only a
// server that the settings name is asked, or the user's own files.
func TestFilesChooseNoServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: obliging})
	text := "---\ndescription: Is there.\nmodel: here/two\n---\nSay it.\n"
	w.lay(map[string]string{
		"work/.claude/skills/skill-theirs/SKILL.md": text, "work/.claude/commands/command-theirs.md": text,
		"work/.claude/skills/skill-apart/SKILL.md": strings.Replace(text, "---\n", "---\ncontext: fork\n", 1),
		"work/.claude/agents/agent-theirs.md":      strings.Replace(text, "---\n", "---\nname: agent-theirs\n", 1),
		"home/dure/skills/own/SKILL.md":            text,
	})
	play := func(settings string) (string, []agent.Note) {
		before := len(w.asked())
		k := w.unasked(app.Flags{Trust: true, Settings: settings}, agent.Open{})
		for _, text := range []string{"/skill-theirs", "/skill-apart", "/command-theirs", "Please hand over to agent-theirs.", "/own"} {
			k.turn(text)
		}
		k.sound()
		return strings.Join(w.asked()[before:], " "), all[agent.Note](k.seen)
	}
	got, notes := play(w.twoModels())
	if want := "script script script script script script script script two"; got != want {
		t.Errorf("it asked %s, want %s", got, want)
	}
	for _, name := range []string{"skill skill-theirs", "skill skill-apart", "skill command-theirs", "agent agent-theirs"} {
		if !slices.ContainsFunc(notes, func(n agent.Note) bool {
			return strings.HasPrefix(n.Text, "the "+name+" asks for a model that cannot be asked") && strings.Contains(n.Text, "that the settings do not name")
		}) {
			t.Errorf("no note on the %s among %+v", name, notes)
		}
	}
	if got, _ := play(strings.Replace(w.twoModels(), "{", `{"profiles":{"other":{"base":"chat","model":"here/two"}},`, 1)); strings.Count(got, "two") != 6 {
		t.Errorf("with a profile that names it, it asked %s", got)
	}
}

// What a skill, or a command of a file, asks for holds to the end of the turn: the model,
// the effort, rules and hooks; then all is as before.
func TestPowersHoldForTheTurn(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"skill": "home/dure/skills/armed/SKILL.md", "command": "home/dure/commands/armed.md"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script.Script{}, script.Options{Func: obliging})
			w.lay(map[string]string{file: strings.Replace(armed("armed"), "allowed-tools:", "disallowed-tools: Write\nallowed-tools:", 1)})
			k := w.unasked(app.Flags{Settings: w.twoModels()}, agent.Open{})
			k.turn("/armed")
			if got := w.listed(); got != "armed hook-armed" {
				t.Errorf("in the turn it made %s\n%s", got, names(k.seen))
			}
			if err := os.Remove(filepath.Join(w.work, "hook-armed")); err != nil {
				t.Fatal(err)
			}
			k.turn("Please touch later.")
			if got := w.listed(); got != "armed" {
				t.Errorf("after the turn there is %s", got)
			}
			if got := strings.Join(w.asked(), " "); got != "two two script script" {
				t.Errorf("it asked %s", got)
			}
			for i, r := range all[agent.ModelRequested](k.seen) {
				if (r.Params.Thinking > 0) != (i < 2) {
					t.Errorf("request %d may think for %d tokens", i, r.Params.Thinking)
				}
			}
			if a := all[agent.SkillActivated](k.seen); len(a) != 1 || !slices.Equal(a[0].Without, []string{"Write"}) {
				t.Errorf("the log has %+v", a)
			}
			k.sound()
		})
	}
}

// A command of a file runs in a session of its own, as an agent of a type: its answer
// enters the conversation; in the background it comes later, and names nothing to read.
func TestCommandsApart(t *testing.T) {
	t.Parallel()
	for _, background := range []bool{false, true} {
		w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
			if strings.Contains(string(r.Body), "You count.") {
				return script.Reply{Text: "Seven, as @secret.txt says.", Stop: agent.StopEnd}
			}
			return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
		}})
		w.kind("counter", "---\nname: counter\ndescription: Counts.\ntools: Glob, Read\n---\nYou count.\n")
		w.write("secret.txt", "the canary\n")
		said := "background: false\n"
		if background { // as it is where the file says nothing
			said = ""
		}
		w.lay(map[string]string{"home/dure/commands/apart.md": "---\ncontext: fork\nagent: counter\n" + said + "---\nCount the $0.\n"})
		k := w.unasked(app.Flags{}, agent.Open{Approver: true})
		k.turn("/apart cats")
		const result = "[Fork skill result] apart\nSeven, as @secret.txt says."
		if background {
			// It comes as a turn of its own, or into the one that is still going on.
			later := func(e agent.Event) bool { b, ok := e.Body.(agent.InputAdded); return ok && b.Origin != "" }
			i := slices.IndexFunc(k.seen, later)
			if i < 0 {
				k.until("the result", later)
				body[agent.TurnEnded](k)
				i = slices.IndexFunc(k.seen, later)
			}
			if got := k.seen[i].Body.(agent.InputAdded); got.Text != result || got.Origin != "command:apart" {
				t.Errorf("it came as %+v", got)
			}
		} else if got := all[agent.InputAdded](k.seen)[0].Text; got != "/apart cats\n\n[/apart says:]\n"+result {
			t.Errorf("the input is %q", got)
		}
		var child script.Recorded
		for _, r := range w.model.Requests() {
			if strings.Contains(string(r.Body), "You count.") {
				child = r
			}
			if strings.Contains(string(r.Body), "the canary") {
				t.Errorf("what a model has answered was read:\n%s", told(t, r))
			}
		}
		if got := toolsIn(t, child.Body); !slices.Equal(got, []string{"Glob", "Read"}) || !strings.Contains(told(t, child), "Count the cats.") {
			t.Errorf("apart it has %v:\n%s", got, told(t, child))
		}
		k.sound()
	}
}

// What a command or a skill does in the background ends with its session, which does not
// wait for what it would come to. Whoever opens the session again is told, once. One that
// has come to its end is not told of.
func TestACommandApartEndsWithItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if strings.Contains(string(r.Body), "Count for ever.") {
			return script.Reply{Text: "Never.", Faults: slices.Repeat([]script.Fault{{Kind: script.Slow}}, 1000)}
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}})
	w.lay(map[string]string{
		"home/dure/commands/apart.md":     "---\ncontext: fork\nbackground: yes\n---\nCount for ever.\n",
		"home/dure/skills/alone/SKILL.md": "---\ndescription: Alone.\ncontext: fork\n---\nCount for ever.\n",
		"home/dure/skills/quick/SKILL.md": "---\ndescription: Quick.\ncontext: fork\n---\nCount to one.\n",
	})
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	k.turn("/quick")
	if !slices.ContainsFunc(k.seen, func(e agent.Event) bool { b, ok := e.Body.(agent.InputAdded); return ok && b.Origin == "skill:quick" }) {
		k.until("the result", func(e agent.Event) bool { b, ok := e.Body.(agent.InputAdded); return ok && b.Origin == "skill:quick" })
		body[agent.TurnEnded](k)
	}
	for _, text := range []string{"/apart", "/alone"} {
		if end := k.turn(text); end.Reason != agent.EndDone {
			t.Error(end)
		}
	}
	if err := k.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		again := w.talk(app.Flags{}, agent.Open{Session: k.Info.ID})
		again.turn("Go on.")
		requests := w.model.Requests()
		got := told(t, requests[len(requests)-1])
		for _, name := range []string{"apart", "alone"} {
			if strings.Count(got, "[Fork skill result] "+name+"\nIt did not come to its end: the program ended while it ran") != 1 {
				t.Errorf("of %s it is told\n%s", name, got)
			}
		}
		if strings.Count(got, "[Fork skill result] quick\nSo it is.") != 1 || strings.Contains(got, "quick\nIt did not") {
			t.Errorf("of what came to its end it is told\n%s", got)
		}
		again.sound()
		if err := again.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

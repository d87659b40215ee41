//go:build unix

package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

var toRun = regexp.MustCompile(`Please run (\S+)\.`)

// A script beside a skill runs unasked by the skill's rules as it was trusted, and no
// longer once it has changed or another file has come: in a turn, a session of its own, and
// from the text; so does one that a command names. Nor do hooks beside such a script count.
// The canaries are files that only the scripts make.
func TestScriptsBesideSkillsAreProven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if m := toRun.FindStringSubmatch(r.Last); m != nil {
			return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("b", r.Step), Tool: "Bash", Input: input(fields{"command": "bash " + m[1]})}}}
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}})
	const shared = ".claude/scripts/shared.sh"
	skill := func(name, more, path, text string) {
		w.lay(map[string]string{
			"work/.claude/skills/" + name + "/SKILL.md":      "---\ndescription: Is " + name + ".\nallowed-tools: Bash(bash " + path + ")\n" + more + "---\n" + text + "\n",
			"work/.claude/skills/" + name + "/scripts/go.sh": "touch old-" + name + "\n",
		})
	}
	beside := func(name string) string { return ".claude/skills/" + name + "/scripts/go.sh" }
	hook := "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: touch hooked\n"
	skill("plain", hook, beside("plain"), "Please run "+beside("plain")+".")
	skill("apart", "context: fork\n", beside("apart"), "Please run "+beside("apart")+".")
	skill("inline", "", beside("inline"), "It is !`bash "+beside("inline")+"`.")
	skill("shares", "", shared, "Please run "+shared+".")
	w.lay(map[string]string{
		"work/" + shared:                 "touch old-shared\n",
		"work/.claude/commands/named.md": "---\nallowed-tools: Bash(bash " + shared + ")\n---\nIt is !`bash " + shared + "`.\n",
	})
	names := []string{"plain", "apart", "inline", "shares", "named"}
	trust := func(a *app.App) {
		trustFolder(t, a, w.work)
	}
	play := func(a *app.App) (made string, k *talk) {
		for _, old := range strings.Fields(w.listed()) {
			if err := os.Remove(filepath.Join(w.work, old)); err != nil {
				t.Fatal(err)
			}
		}
		k = w.talkTo(a, agent.Open{})
		for _, name := range names {
			k.turn("/" + name)
		}
		k.sound()
		return w.listed(), k
	}
	trust(w.program(w.caring(app.Flags{})))
	a := w.program(w.caring(app.Flags{}))
	if got, k := play(a); got != "hooked old-apart old-inline old-plain old-shared" {
		t.Fatalf("as they were trusted they made %q\n%s", got, decisions(k))
	}
	for _, name := range []string{"plain", "apart", "inline"} {
		w.lay(map[string]string{"work/" + beside(name): "touch new-" + name + "\n"})
	}
	w.lay(map[string]string{"work/" + shared: "touch new-shared\n"})
	got, k := play(a)
	if got != "" {
		t.Errorf("changed they made %q\n%s", got, decisions(k))
	}
	denied := ""
	for _, d := range all[agent.CallDecided](k.seen) {
		denied += d.Decision.Reason + "\n"
	}
	if !strings.Contains(denied, beside("plain")+", which belongs to what plain may run unasked, came or changed") || !strings.Contains(denied, shared+", which belongs to what shares may run") {
		t.Errorf("it was denied because of\n%s", denied)
	}
	trust(a)
	if got, _ := play(a); got != "hooked new-apart new-inline new-plain new-shared" {
		t.Errorf("trusted anew they made %q", got)
	}
	for _, name := range []string{"plain", "apart", "inline"} {
		w.lay(map[string]string{"work/.claude/skills/" + name + "/lib/more.sh": "touch more\n"})
	}
	if got, _ := play(a); got != "new-shared" {
		t.Errorf("beside another file they made %q", got)
	}
}

func decisions(k *talk) (text string) {
	for _, d := range all[agent.CallDecided](k.seen) {
		text += fmt.Sprintln(string(d.Proposal.Call.Input), d.Decision.Verdict, d.Decision.Reason)
	}
	for _, n := range all[agent.Note](k.seen) {
		text += n.Text + "\n"
	}
	return text
}

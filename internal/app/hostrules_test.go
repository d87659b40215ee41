//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// What an embedding program forbids holds from the next call on, also for agents, until it is
// taken back; where it is to stand in settings, it is written there. What others forbid stays.
func TestHostForbids(t *testing.T) {
	t.Parallel()
	touch := func(name string) script.Reply { return calls(tool("Bash", fields{"command": "touch " + name})) }
	done := script.Reply{Text: "Done."}
	w := newWorld(t, distinct(
		touch("one"), done, touch("two"), done, touch("three"), done, touch("four"), done, touch("five"), done,
		calls(tool("Agent", fields{"prompt": "Touch it", "description": "touch"})), touch("six"), done, done,
	), script.Options{})
	a := w.embedded(&app.Host{}, app.Flags{Skip: true, Deny: []string{"Bash(touch five)"}})
	k := w.talkTo(a, agent.Open{})
	change := func(c query.RuleChange) {
		t.Helper()
		if err := changeRules(t, a, k.Info.ID, c); err != nil {
			t.Fatal(err)
		}
	}
	made := func(name string) bool {
		t.Helper()
		k.turn("Touch it")
		_, err := os.Stat(filepath.Join(w.work, name))
		return err == nil
	}
	rule := []string{"Bash(touch *)"}
	deny := query.RuleChange{Verdict: agent.Deny, Change: query.RulesAdded, Rules: rule}
	if change(deny); made("one") {
		t.Error("it is done although the host forbids it")
	}
	if got, err := w.rules(a, k.Info.ID); err != nil || !strings.Contains(got, "Bash(touch *) deny session") {
		t.Errorf("the rules: %s, %v", got, err)
	}
	if change(query.RuleChange{Verdict: agent.Deny, Change: query.RulesRemoved, Rules: rule}); !made("two") {
		t.Error("it is forbidden although that was taken back")
	}
	if change(query.RuleChange{Verdict: agent.AskUser, Change: query.RulesAdded, Rules: rule}); made("three") {
		t.Error("it is done although nobody was asked")
	}
	if change(query.RuleChange{Verdict: agent.AskUser, Change: query.RulesReplaced, Rules: []string{"Bash(rm *)"}}); !made("four") {
		t.Error("others took the place of that rule, and it counts")
	}
	if change(query.RuleChange{Verdict: agent.Deny, Change: query.RulesRemoved, Rules: []string{"Bash(touch five)"}}); made("five") {
		t.Error("a rule of the command line was taken away")
	}
	deny.Scope = "local"
	if change(deny); made("six") {
		t.Error("an agent does what the host forbids")
	}
	settings, err := os.ReadFile(filepath.Join(w.work, ".dure", "settings.local.json"))
	if err != nil || !strings.Contains(string(settings), "Bash(touch *)") {
		t.Errorf("the settings: %s, %v", settings, err)
	}
	for _, bad := range []query.RuleChange{
		{Verdict: agent.Deny, Change: query.RulesAdded, Rules: []string{"Read", "("}},
		{Verdict: agent.Deny, Change: query.RulesAdded, Rules: []string{"Read"}, Scope: "managed"},
		{Verdict: agent.Allow, Change: query.RulesAdded, Rules: []string{"Bash"}},
		{Verdict: "never", Change: query.RulesAdded, Rules: []string{"Bash"}},
	} {
		if err := changeRules(t, a, k.Info.ID, bad); err == nil {
			t.Errorf("%+v was taken over", bad)
		}
	}
	if got, err := w.rules(a, k.Info.ID); err != nil || strings.Contains(got, "Read") {
		t.Errorf("a change counts that was refused: %s, %v", got, err)
	}
	if err := changeRules(t, a, "nobody", deny); err == nil {
		t.Error("rules of a session were changed that is not open")
	}
}

// rules are those of a session, one a line.
func (w *world) rules(a *app.App, session string) (string, error) {
	r, err := client.Query[query.RuleReport](w.t.Context(), a.Client(), query.ListRules{Session: session})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, one := range r.Rules {
		b.WriteString(one.Rule + " " + string(one.Verdict) + " " + one.Layer + "\n")
	}
	return b.String(), nil
}

// A folder that the embedding program adds is read in without a question, unless rules deny it
// or the administrator lets nobody else allow anything.
func TestHostAddsFolders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		flags app.Flags
		want  bool
	}{
		{"by itself", app.Flags{}, true},
		{"a rule denies it", app.Flags{Deny: []string{"Read(~/other*/**)"}}, false},
		{"managed settings alone allow", app.Flags{Driver: `{"allowManagedPermissionRulesOnly":true}`}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w *world
			w = newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
				switch strings.TrimSpace(r.Last) {
				case "Touch it":
					return script.Reply{Calls: []script.Call{numbered("touch", "Bash", fields{"command": "touch x"})}}
				case "Read it":
					return script.Reply{Calls: []script.Call{numbered("read", "Read", fields{"file_path": filepath.Join(w.home, "other [1]", "in", "a.txt")})}}
				}
				return script.Reply{Text: "Done.", Stop: agent.StopEnd}
			}})
			other := filepath.Join(w.home, "other [1]")
			w.file(filepath.Join(other, "in", "a.txt"), "what it says")
			a := w.embedded(&app.Host{}, tt.flags)
			k := w.talkTo(a, agent.Open{Approver: true})
			rule, err := client.Query[string](t.Context(), a.Client(), query.FolderRule{Session: k.Info.ID, Dir: other})
			if err != nil {
				t.Fatal(err)
			}
			k.answer("Touch it", func(q agent.ApprovalAsked) agent.Resolve {
				return agent.Resolve{ID: q.ID, Decision: agent.Decision{Verdict: agent.Allow}, Remember: agent.RememberSession, Rules: []string{rule}}
			})
			asked := len(all[agent.ApprovalAsked](k.seen))
			k.answer("Read it", func(q agent.ApprovalAsked) agent.Resolve {
				return agent.Resolve{ID: q.ID, Decision: agent.Decision{Verdict: agent.Deny}}
			})
			r := all[agent.CallFinished](k.seen)
			got := !r[len(r)-1].Result.Failed() && len(all[agent.ApprovalAsked](k.seen)) == asked
			if got != tt.want {
				t.Errorf("read without a question: %v\n%+v", got, r[len(r)-1].Result)
			}
		})
	}
}

// An embedding program writes settings of the user's where they count in this run.
func TestHostSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Hello."}), script.Options{})
	a := w.embedded(&app.Host{}, app.Flags{})
	if _, err := client.Query[query.SettingChange](t.Context(), a.Client(), query.ChangeSetting{Do: query.SettingSet, Scope: "user", Key: "effort", Value: "low"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(w.home, "dure", "settings.json"))
	if err != nil || !strings.Contains(string(data), `"effort": "low"`) {
		t.Errorf("%s, %v", data, err)
	}
	o := options(w.work, w.home, w.model.URL(), app.Flags{})
	o.Flags.Sources = &[]string{"project"}
	o.Host = &app.Host{}
	if _, err := client.Query[query.SettingChange](t.Context(), w.program(o).Client(), query.ChangeSetting{Do: query.SettingSet, Scope: "user", Key: "effort", Value: "high"}); err == nil {
		t.Error("settings were written that do not count")
	}
}

func changeRules(t *testing.T, a *app.App, session string, c query.RuleChange) error {
	t.Helper()
	c.Session = session
	_, err := client.Query[query.RuleEdited](t.Context(), a.Client(), c)
	return err
}

//go:build unix

package app_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/kernel/plug"
	"dure/internal/models/script"
)

var updatePoints = flag.Bool("update-points", false, "write testdata/points.txt anew")

// What each capability adds to sessions of different kinds, and in what order, is in
// testdata/points.txt.
func TestPoints(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	show := func(name string, list []plug.Attached, sections []query.PromptSection) {
		fmt.Fprintf(&got, "== %s\n%s", name, printed(list))
		var names []string
		for _, s := range sections {
			names = append(names, s.ID)
		}
		fmt.Fprintf(&got, "prompt: %s\n\n", strings.Join(names, ", "))
	}
	for _, kind := range []struct {
		name  string
		open  agent.Open
		files map[string]string
		child bool
	}{
		{name: "a plain session"},
		{name: "with hooks and skills", files: map[string]string{
			".claude/settings.json":     `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}`,
			".claude/skills/a/SKILL.md": "---\nname: a\ndescription: It is there.\n---\nDo it.\n",
			".claude/commands/typed.md": "Do it.\n",
			"CLAUDE.md":                 "Be brief.\n",
		}},
		{name: "a session of an agent", child: true},
		{name: "a session of a user of a server", open: agent.Open{Owned: true, Approver: true}},
	} {
		w := newWorld(t, says(script.Reply{Text: "Done."}), script.Options{})
		for name, text := range kind.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(w.work, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			w.write(name, text)
		}
		all := map[string][]plug.Attached{}
		var built []plug.Session
		o := options(w.work, w.home, w.model.URL(), app.Flags{Trust: true})
		o.Points = func(s plug.Session, list []plug.Attached) []plug.Attached {
			built, all[s.ID] = append(built, s), list
			return list
		}
		a := w.program(o)
		k := w.talkTo(a, kind.open)
		if kind.child {
			if _, err := built[0].Reach.Spawn(t.Context(), agent.Child{Prompt: "Do it.", Key: "k"}); err != nil {
				t.Fatal(err)
			}
		}
		report, err := client.Query[query.PromptReport](t.Context(), k.Client, query.PromptPreview{})
		if err != nil {
			t.Fatal(err)
		}
		show(kind.name, all[built[len(built)-1].ID], report.Sections)
	}
	const file = "testdata/points.txt"
	if *updatePoints {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got.String() {
		t.Errorf("%v; now it is\n%s", err, got.String())
	}
}

// printed returns who adds what, in the order in which it is asked.
func printed(list []plug.Attached) string {
	var b strings.Builder
	line := func(point string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", point, strings.Join(names, ", "))
		}
	}
	stages := func(point string, of func(plug.Gate) []plug.Stage) {
		var names []string
		for _, p := range list {
			for _, s := range of(p.Gate) {
				if s.Decide != nil {
					names = append(names, fmt.Sprintf("%s (%s)", s.Name, p.Name))
				}
			}
		}
		line("gate "+point, names)
	}
	one := func(s plug.Stage) []plug.Stage { return []plug.Stage{s} }
	stages("rules", func(g plug.Gate) []plug.Stage { return one(g.Rules) })
	stages("bounds", func(g plug.Gate) []plug.Stage { return g.Bounds })
	stages("hooks", func(g plug.Gate) []plug.Stage { return g.Hooks })
	stages("commands", func(g plug.Gate) []plug.Stage { return g.Commands })
	stages("verdict", func(g plug.Gate) []plug.Stage { return one(g.Verdict) })
	stages("parent", func(g plug.Gate) []plug.Stage { return one(g.Parent) })
	stages("last", func(g plug.Gate) []plug.Stage { return g.Last })
	walk := func(prefix string, of func(plug.Attached) reflect.Value) {
		fields := of(plug.Attached{}).Type()
		for i := range fields.NumField() {
			f := fields.Field(i)
			if f.Type.Kind() != reflect.Func && f.Type.Kind() != reflect.Slice {
				continue
			}
			var names []string
			for _, p := range list {
				if v := of(p).Field(i); !v.IsNil() {
					names = append(names, p.Name)
				}
			}
			line(prefix+f.Name, names)
		}
	}
	walk("hook ", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Hooks) })
	walk("hook ", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Hooks.TurnHooks) })
	walk("undo ", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Undo) })
	walk("guard ", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Guard) })
	walk("compactor ", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Compactor) })
	walk("permissions ", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Permissions) })
	walk("plans ", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Plans) })
	walk("", func(p plug.Attached) reflect.Value { return reflect.ValueOf(p.Points) })
	return b.String()
}

// Whatever capability is left out, a session does without it; without the policy every call
// is denied.
func TestWithoutACapability(t *testing.T) {
	t.Parallel()
	var names []string
	run := func(t *testing.T, without string) (wrote bool, end agent.TurnEnded) {
		w := newWorld(t, says(answer("w1", "Write", fields{"file_path": "new.txt", "content": "new\n"}), script.Reply{Text: "Done."}), script.Options{})
		o := options(w.work, w.home, w.model.URL(), app.Flags{Mode: string(agent.ModeAcceptEdits)})
		o.Points = func(_ plug.Session, list []plug.Attached) []plug.Attached {
			for _, p := range list {
				if without == "" {
					names = append(names, p.Name)
				}
			}
			return slices.DeleteFunc(list, func(p plug.Attached) bool { return p.Name == without && without != "session" })
		}
		k := w.talkWith(o, agent.Open{})
		end = k.turn("Do it.")
		_, err := os.Stat(filepath.Join(w.work, "new.txt"))
		return err == nil, end
	}
	if wrote, end := run(t, ""); !wrote || end.Reason != agent.EndDone {
		t.Fatalf("with all of them it wrote %v and ended with %+v", wrote, end)
	}
	if len(names) < 10 {
		t.Fatalf("there are only %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if wrote, end := run(t, name); wrote != (name != "policy") || end.Reason != agent.EndDone {
				t.Errorf("without it the session wrote %v and ended with %+v", wrote, end)
			}
		})
	}
}

package typed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/commands"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
)

// rig is the commands of a folder with some files, in an open session.
func rig(t *testing.T, files map[string]string) *Session {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := New(Config{
		Workdir: dir, Root: func(_, workdir string) string { return workdir },
		Places: func(string) []frontmatter.Place {
			return []frontmatter.Place{{Scope: frontmatter.User, Dir: dir, Trusted: true}}
		},
		Skills: func(string) []query.CommandInfo {
			return []query.CommandInfo{{Name: "taken", Kind: query.CommandSkill}}
		},
		Lender:   func(string, string, string) (l trust.Lender, ok bool) { return l, false },
		Models:   func() []string { return []string{"m1"} },
		Describe: func(string) func(string) string { return func(name string) string { return "does " + name } },
		Prompts: Prompts{
			List:  func(string) []query.CommandInfo { return nil },
			Ready: func(context.Context, string, string) {},
			Later: func(string, string, string) bool { return false },
		},
		Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "***") },
	})
	s := x.Session(plug.Session{ID: "one"}, dir, Services{
		Expanding: func(_ context.Context, _, command, _, _, _ string) error {
			if command == "forbidden" {
				return errors.New("a hook says no")
			}
			return nil
		},
		Command:  func(_ context.Context, _ commands.Command, text, _, _ string) (string, error) { return text, nil },
		Skill:    func(_ context.Context, name, _ string) (string, error) { return "the skill " + name, nil },
		Prompted: func(string) bool { return false },
		Prompt:   func(context.Context, agent.InputQueued) (string, *agent.InputDropped, bool) { return "", nil, false },
	})
	t.Cleanup(s.Points().Close)
	return s
}

// What somebody types becomes the text of a command, unless a skill has its name, a hook
// forbids it, or it is no command.
func TestHeard(t *testing.T) {
	s := rig(t, map[string]string{"greet": "Say hello to $ARGUMENTS.\n", "taken": "Not this.\n", "forbidden": "Nor this.\n"})
	for typed, c := range map[string]struct{ says, drop string }{
		"/greet Kim":  {"Say hello to Kim.", ""},
		"/taken":      {"/taken", ""},
		"/nothing":    {"/nothing", ""},
		"greet":       {"greet", ""},
		"/forbidden":  {"", "a hook says no"},
		"/forbidden ": {"", "a hook says no"},
	} {
		text, drop := s.heard(t.Context(), agent.InputQueued{Input: "i1", Text: typed})
		switch {
		case c.drop != "":
			if drop == nil || !strings.Contains(drop.Reason, c.drop) {
				t.Errorf("%q is not dropped: %q, %+v", typed, text, drop)
			}
		case drop != nil || !strings.Contains(text, c.says):
			t.Errorf("%q: %q, %+v", typed, text, drop)
		}
	}
}

// The text of a command is that of a command, else of a skill, with secrets masked.
func TestText(t *testing.T) {
	s := rig(t, map[string]string{"greet": "The secret is $ARGUMENTS.\n"})
	for name, want := range map[string]string{"greet": "The *** is Kim.", "other": "the skill other"} {
		if got, err := s.x.Text(t.Context(), "one", name, "Kim"); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := s.x.Text(t.Context(), "two", "greet", ""); agent.ProblemOf(err) == nil {
		t.Errorf("a session that is not open: %v", err)
	}
}

// What can be typed is what is built in, what skills and files bring, and what hides it.
func TestList(t *testing.T) {
	s := rig(t, map[string]string{"greet": "Hello.\n", "model": "Not this.\n"})
	all, err := s.x.List(t.Context(), query.ListCommands{})
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range all {
		if c.Name == "model" && c.Kind == query.CommandBuiltIn && (len(c.Values) != 1 || c.Description != "does model") {
			t.Errorf("the command for models: %+v", c)
		}
		has[c.Name+" "+c.Kind+" "+c.Off] = true
	}
	for _, want := range []string{"greet " + query.CommandCustom + " ", "taken " + query.CommandSkill + " ", "model " + query.CommandCustom + " a built-in command has its name"} {
		if !has[want] {
			t.Errorf("%q is not in the list: %v", want, has)
		}
	}
}

// A command in a text runs only where that needs no question.
func TestUnasked(t *testing.T) {
	for _, c := range []struct {
		origin      string
		soFar, want agent.Verdict
	}{
		{"command:greet", agent.Allow, agent.Pass},
		{"command:greet", agent.AskUser, agent.Deny},
		{"command:greet", agent.Pass, agent.Deny},
		{"", agent.AskUser, agent.Pass},
	} {
		d, err := unasked(t.Context(), agent.Proposal{Origin: c.origin}, agent.Decision{Verdict: c.soFar})
		if err != nil || d.Verdict != c.want {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
	}
}

package read

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/workspace"
)

// fake is servers with two resources, of which one is denied and one cannot be read.
type fake struct{}

func (fake) Addresses() []string { return []string{"s:res://one", "s:res://two", "s:res://with space"} }

func (fake) Mentioned(readings []string) (string, agent.Verdict, bool) {
	switch readings[0] {
	case "s:res://one":
		return "s:res://one", agent.AskUser, true
	case "s:res://two":
		return "s:res://two", agent.Deny, true
	}
	return "", "", false
}

func (fake) Read(_ context.Context, _, name string) (agent.Result, error) {
	if name == "s:res://one" {
		return agent.OK("the first"), nil
	}
	return agent.Result{}, errors.New("gone")
}

// What an input names is read once, and what is not read is said with its reason. Of a session
// that works for another one nothing is read.
func TestInputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "the text\n", "denied.txt": "no\n", ".env": "KEY=1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.New(workspace.Config{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	x := New(Config{
		Plain: true, Typed: func(s string) string { return s }, Verbatim: func(_, input string) bool { return input == "raw" },
		Model:    func(string) agent.ModelInfo { return agent.ModelInfo{} },
		Declared: func(context.Context, *workspace.Workspace, []string, string) []mention.Place { return nil },
		Session: func(_ context.Context, _, name string) (agent.SessionInfo, string, bool) {
			return agent.SessionInfo{ID: name, Title: "a\ntitle"}, "It is done.", name == "0123456789abcdef"
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	place := Place{Workspace: ws, Tracker: ws.NewTracker(nil), Servers: fake{}, Decide: func(p agent.Proposal) agent.Decision {
		if strings.HasSuffix(p.Effects.Reads[0], "denied.txt") {
			return agent.Decision{Verdict: agent.Deny}
		}
		return agent.Decision{Verdict: agent.Allow}
	}}
	b := &plug.Session{ID: "s1", Model: func() string { return "" }, Clean: func(_ context.Context, s string) (string, error) { return s, nil }}
	p, err := x.In(place).Attach(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	const text = "Look at @a.txt and @denied.txt and @.env and @none.txt, and at @s:res://one and @s:res://two ."
	all := p.Extra(t.Context(), plug.Moment{Fresh: []agent.InputAdded{{Input: "1", Text: text}, {Input: "raw", Text: "@a.txt"}}})
	if len(all) != 2 || !strings.Contains(all[0].Text, "the text") || !strings.Contains(all[0].Text, "the first") || len(all[0].From) != 2 || len(all[1].From) != 4 {
		t.Errorf("read: %+v", all)
	}
	if _, seen := place.Tracker.Known(filepath.Join(ws.Root(), "a.txt")); !seen {
		t.Error("the file that was read counts as unseen")
	}
	if got := x.Named(t.Context(), "s1", "See a.txt, and @a.txt."); strings.Count(got, "the text") != 1 {
		t.Errorf("behind a text: %q", got)
	}
	q, err := ask[[]query.Mentioned](t, x, query.Mentions{Session: "s1", Text: "@session:0123456789abcdef"})
	if err != nil || len(q) != 1 || q[0].State != query.MentionAttached {
		t.Errorf("a session: %+v, %v", q, err)
	}
	if list, err := ask[[]string](t, x, query.CompleteMention{Session: "s1", Typed: "s:res"}); err != nil || strings.Join(list, " ") != "s:res://one s:res://two" {
		t.Errorf("completed: %q, %v", list, err)
	}
	p.Close()
	if _, err := ask[[]string](t, x, query.CompleteMention{Session: "s1"}); err == nil {
		t.Error("a session that is closed is asked")
	}
	if p, err := x.In(place).Attach(t.Context(), &plug.Session{ID: "s2", Child: &agent.Child{}}); err != nil || p.Extra != nil {
		t.Errorf("a child reads what it is told: %v", err)
	}
}

func ask[T any](t *testing.T, x *Extension, q agent.Query) (T, error) {
	t.Helper()
	for _, a := range x.Answers() {
		if a.Query.Query() == q.Query() {
			v, err := a.Do(t.Context(), q)
			got, _ := v.(T)
			return got, err
		}
	}
	panic("nobody answers " + q.Query())
}

package agents

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/kernel/plug"
	"dure/internal/tools/catalog"
)

// rig is an extension whose user keeps types in a folder.
func rig(t *testing.T) *Extension {
	t.Helper()
	home := t.TempDir()
	return New(Config{
		Places: func(string) []frontmatter.Place {
			return []frontmatter.Place{{Scope: frontmatter.User, Dir: filepath.Join(home, "agents"), Trusted: true}}
		},
		Runs: func(*plug.Session) string { return "" }, Lets: func(string) []string { return nil },
		Brings: func(*catalog.Catalog, string) func(agent.Spec) bool { return nil },
		Home:   home, Workdir: t.TempDir(), About: func(_, about string) string { return about },
		Project: func(workdir string) (string, bool) { return workdir, true },
	})
}

// A type is added once, is as it should be, and is there from then on.
func TestAdd(t *testing.T) {
	x := rig(t)
	added, err := x.add(t.Context(), query.AddAgent{Name: "Painter", Description: "Paints."})
	if err != nil || added.Path != filepath.Join(x.cfg.Home, "agents", "painter.md") {
		t.Fatalf("added %+v, %v", added, err)
	}
	if i, err := x.check(t.Context(), query.CheckAgent(added)); err != nil || !i.Valid || i.Description != "Paints." {
		t.Errorf("checked: %+v, %v", i, err)
	}
	list, err := x.list(t.Context(), query.ListAgents{Name: "painter"})
	if err != nil || len(list) != 1 || list[0].State != "active" || list[0].Prompt == "" {
		t.Errorf("listed: %+v, %v", list, err)
	}
	for name, want := range map[string]error{"Painter": fs.ErrExist, "a b": nil} {
		_, err := x.add(t.Context(), query.AddAgent{Name: name})
		if p := agent.ProblemOf(err); p == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q is added again: %v", name, err)
		}
	}
	if _, err := x.check(t.Context(), query.CheckAgent{Path: "none.md"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// policy decides always the same.
type policy struct{ verdict agent.Verdict }

func (p policy) Before(agent.Proposal) agent.Decision { return agent.Decision{Verdict: p.verdict} }
func (p policy) Decide(agent.Proposal) agent.Decision { return agent.Decision{Verdict: p.verdict} }

// A child has the tools that its parent has and its type wants, and a mode that is no wider;
// what its parent may not do is denied to it in another process, too.
func TestChild(t *testing.T) {
	x := rig(t)
	modes := map[string]agent.Mode{}
	x.cfg.Clamp = func(session string, mode agent.Mode) agent.Mode {
		if of, ok := modes[session]; ok && mode.Wider(of) {
			return of
		}
		return mode
	}
	open := func(b plug.Session, mode agent.Mode) (*Session, agent.Profile) {
		t.Helper()
		work := agent.Profile{Mode: mode}
		s, err := x.Session(b, x.cfg.Workdir, &work)
		if err != nil {
			t.Fatal(err)
		}
		s.cat, s.pol = catalog.New(catalog.Config{}), policy{agent.Allow}
		s.Cast(func(agent.Spec) bool { return false })
		x.open[b.ID], modes[b.ID] = s, work.Mode
		return s, work
	}
	top, _ := open(plug.Session{ID: "top"}, agent.ModeDefault)
	top.Role.Gives = func(s agent.Spec) bool { return s.Name != "web" }
	child, work := open(plug.Session{SessionOpened: agent.SessionOpened{Parent: "top"}, ID: "child", Child: &agent.Child{Agent: "painter", Tools: []string{"web", "paint"}}}, agent.ModeBypass)
	if work.Mode != agent.ModeDefault || child.Kind() != "painter" {
		t.Errorf("the child is a %q in the mode %s", child.Kind(), work.Mode)
	}
	for tool, want := range map[string]bool{"web": false, "paint": true, "other": false} {
		if got := child.Role.Has(agent.Spec{Name: tool}); got != want {
			t.Errorf("it has %s: %v", tool, got)
		}
	}
	if got := x.chain("child"); len(got) != 2 || got[0] != "main" || got[1] != "painter" {
		t.Errorf("the chain is %v", got)
	}
	for _, c := range []struct {
		parent, tool string
		soFar, want  agent.Verdict
	}{
		{"top", "paint", "", agent.Allow},
		{"top", "paint", agent.AskUser, agent.AskUser},
		{"top", "web", agent.Allow, agent.Deny},
		{"none", "paint", agent.Allow, agent.Deny},
	} {
		if d := x.Decide(c.parent, agent.Proposal{Call: agent.Call{Tool: c.tool}}, agent.Decision{Verdict: c.soFar}); d.Verdict != c.want {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// A type has its own mode where that lets less happen unasked.
func TestNarrower(t *testing.T) {
	for _, c := range []struct{ own, of, want agent.Mode }{
		{"", agent.ModeBypass, agent.ModeBypass},
		{agent.ModePlan, agent.ModeBypass, agent.ModePlan},
		{agent.ModeDontAsk, agent.ModeDefault, agent.ModeDontAsk},
		{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModeAcceptEdits},
		{agent.ModeAcceptEdits, agent.ModeBypass, agent.ModeBypass},
		{agent.ModeBypass, agent.ModePlan, agent.ModePlan},
	} {
		if got := narrower(c.own, c.of); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.own, c.of, got, c.want)
		}
	}
}

// A name of a child is not taken for a path or another session.
func TestIsChildID(t *testing.T) {
	for id, want := range map[string]bool{
		"cabcdefghijklmnopqrstuvwxyz234567": true, "cabcdefghijklmnopqrstuvwxyz23456/": false, "": false, "c": false,
		"xabcdefghijklmnopqrstuvwxyz234567": false,
	} {
		if got := isChildID(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

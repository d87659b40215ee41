package app

import (
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/safety/policy"
)

// Who waits in vain for another program to be done with the settings is told so.
func TestSettingsAreChangedElsewhere(t *testing.T) {
	t.Parallel()
	a := &App{cfg: config.Config{Data: t.TempDir()}}
	unlock, err := a.lockSettings(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.lockSettings(t.Context(), 50*time.Millisecond); err == nil || err.Error() != "another program is changing settings" {
		t.Errorf("the second one: %v", err)
	}
	unlock()
	if unlock, err = a.lockSettings(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// A session that works for another one gets no mode that lets more happen unasked.
func TestModesOfMembers(t *testing.T) {
	t.Parallel()
	var m members
	pol := func(mode agent.Mode) *policy.Policy {
		p, err := policy.New(policy.Config{
			Mode: mode, Dir: "/w", Canonical: func(name string) (string, bool) { return name, true },
			Resolve: func(p string) (string, string, error) { return p, p, nil }, Inside: func(string) bool { return true },
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	top, child := pol(agent.ModeDefault), pol(agent.ModeDefault)
	for _, err := range []error{m.join("top", &member{pol: top}), m.join("child", &member{parent: "top", pol: child})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	set := m.mode("child", child.SetMode)
	if err := set(agent.ModeAcceptEdits); err == nil || child.Mode() != agent.ModeDefault {
		t.Errorf("the child has the mode %s: %v", child.Mode(), err)
	}
	if err := set(agent.ModePlan); err != nil || child.Mode() != agent.ModePlan {
		t.Errorf("the child has the mode %s: %v", child.Mode(), err)
	}
	if err := m.mode("top", top.SetMode)(agent.ModeAcceptEdits); err != nil || child.Mode() != agent.ModePlan {
		t.Errorf("the child has the mode %s: %v", child.Mode(), err)
	}
	if err := set(agent.ModeAcceptEdits); err != nil || child.Mode() != agent.ModeAcceptEdits {
		t.Errorf("the child has the mode %s: %v", child.Mode(), err)
	}
}

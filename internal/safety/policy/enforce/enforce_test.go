package enforce

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
)

// rig is a policy over settings that a test changes.
type rig struct {
	*Extension
	t        *testing.T
	settings policy.Config
	version  int
	allowed  []string
	rows     map[string]agent.SessionInfo
	ready    error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t}
	r.Extension = New(Config{
		Settings: func() (policy.Config, int) { return r.settings, r.version },
		Inert:    func() []query.RuleInfo { return nil },
		Here:     func() (Place, error) { return place(), nil },
		Allowed:  func(string) ([]string, error) { return r.allowed, nil },
		Allow:    func(_, _ string, rules []string) error { r.allowed = append(r.allowed, rules...); return nil },
		Ready:    func(*plug.Session) error { return r.ready },
		Parent:   func(*plug.Session) plug.Stage { return plug.Stage{} },
		Writable: func(string) error { return nil },
		Private:  []string{"/data/sessions"}, Owner: "owner:",
		Row: func(_ context.Context, id string) (agent.SessionInfo, bool, error) {
			row, ok := r.rows[id]
			return row, ok, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	return r
}

func place() Place {
	return Place{
		Config: policy.Config{
			Dir: "/w", Canonical: func(name string) (string, bool) {
				if name == "Read" {
					return "file-system__read", true
				}
				return name, true
			},
			Resolve: func(p string) (string, string, error) { return p, p, nil }, Inside: func(string) bool { return true },
		},
		Protected: func([]string) []string { return nil },
	}
}

// open opens a session that works for another one; "" = it works for none.
func (r *rig) open(id, parent string) *Decider {
	r.t.Helper()
	d, err := r.Open(&plug.Session{SessionOpened: agent.SessionOpened{Parent: parent}, ID: id}, place(), agent.ModeDefault)
	if err == nil {
		err = d.Join(nil)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

func call(tool string) agent.Proposal { return agent.Proposal{Call: agent.Call{Tool: tool}} }

func (r *rig) says(d *Decider, want agent.Verdict) {
	r.t.Helper()
	if got := d.Policy.Decide(call("Deploy")); got.Verdict != want {
		r.t.Errorf("%s: %s (%s), want %s", d.session, got.Verdict, got.Reason, want)
	}
}

// A session that works for another one gets no mode that lets more happen unasked.
func TestModesOfAFamily(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	top, child := r.open("top", ""), r.open("child", "top")
	for _, tt := range []struct {
		d    *Decider
		mode agent.Mode
		ok   bool
		want agent.Mode // of the child
	}{
		{child, agent.ModeAcceptEdits, false, agent.ModeDefault},
		{child, agent.ModePlan, true, agent.ModePlan},
		{top, agent.ModeAcceptEdits, true, agent.ModePlan},
		{child, agent.ModeAcceptEdits, true, agent.ModeAcceptEdits},
		{top, agent.ModeDontAsk, true, agent.ModeDontAsk},
	} {
		if err := tt.d.SetMode(tt.mode); (err == nil) != tt.ok || child.Policy.Mode() != tt.want {
			t.Errorf("%s in %s: the child has the mode %s: %v", tt.d.session, tt.mode, child.Policy.Mode(), err)
		}
	}
	if got := r.Clamp("top", agent.ModeBypass); got != agent.ModeDontAsk {
		t.Errorf("clamped to %s", got)
	}
}

// What is granted and forbidden in a session holds for all that work for it, also for those
// that begin later, and not for the session that it works for.
func TestAFamilyHasOneWord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	top, child := r.open("top", ""), r.open("child", "top")
	if err := top.Grant(agent.RememberSession, []string{"Deploy"}); err != nil {
		t.Fatal(err)
	}
	late := r.open("late", "child")
	for _, d := range []*Decider{top, child, late} {
		r.says(d, agent.Allow)
	}
	if err := top.Revoke(agent.Revoke{Rules: []string{"Deploy"}}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Decider{top, child, late} {
		r.says(d, agent.AskUser)
	}
	deny := query.RuleChange{Session: "child", Verdict: agent.Deny, Change: query.RulesAdded, Rules: []string{"Deploy"}}
	if _, err := r.changeRules(t.Context(), deny); err != nil {
		t.Fatal(err)
	}
	last := r.open("last", "late")
	r.says(top, agent.AskUser)
	for _, d := range []*Decider{child, late, last} {
		r.says(d, agent.Deny)
	}
	deny.Rules = []string{"Read", "("}
	if _, err := r.changeRules(t.Context(), deny); err == nil || len(child.strict) != 1 || len(late.strict) != 1 {
		t.Errorf("a rule that cannot be read: %v, %v", err, child.strict)
	}
	child.Leave()
	if _, err := r.changeRules(t.Context(), query.RuleChange{Session: "child", Verdict: agent.Deny}); err == nil {
		t.Error("a session that is closed takes rules")
	}
}

// Settings that change hold from the next call on, for sessions that somebody keeps them from
// once they may, and then for those that work for such a session.
func TestSettingsAreTakenOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	top, child := r.open("top", ""), r.open("child", "top")
	var may bool
	top.Hold(func(refresh func()) {
		if may {
			refresh()
		}
	})
	gate := func(d *Decider) agent.Verdict {
		t.Helper()
		p, err := d.Attach(t.Context(), &plug.Session{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Gate.Rules.Decide(t.Context(), call("Deploy"), agent.Decision{})
		if err != nil {
			return agent.Deny
		}
		return got.Verdict
	}
	r.settings.Rules, r.version = []policy.Rule{{Text: "Deploy", Verdict: agent.Deny, Source: policy.Source{Layer: policy.User}}}, 1
	if got := gate(child); got != agent.Pass {
		t.Errorf("it holds before it may: %s", got)
	}
	may = true
	for _, d := range []*Decider{child, top} {
		if got := gate(d); got != agent.Deny {
			t.Errorf("%s says %q to what settings forbid", d.session, got)
		}
	}
	r.settings.Rules, r.version, r.ready = nil, 2, errors.New("nobody can look")
	if got := gate(top); got != agent.Deny {
		t.Errorf("with an error the gate says %q", got)
	}
}

// Sessions of a user of a server, and those whose family nobody knows, do not read what
// belongs to all users.
func TestOwnedSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rows = map[string]agent.SessionInfo{"anns": {ID: "anns", Tags: []string{"owner:ann"}}, "nobodys": {ID: "nobodys"}}
	stored := func(parent string, tags ...string) plug.Session {
		return plug.Session{ID: "s", Stored: agent.SessionInfo{ID: "s", Parent: parent, Tags: tags}}
	}
	for name, tt := range map[string]struct {
		s    plug.Session
		want bool
	}{
		"by its opening":     {plug.Session{ID: "s", Open: agent.Open{Owned: true}}, true},
		"by its tag":         {stored("", "owner:ann"), true},
		"by its parent":      {stored("anns"), true},
		"of a lost parent":   {stored("lost"), true},
		"of the operator":    {stored("nobodys"), false},
		"by itself, unowned": {plug.Session{ID: "s"}, false},
		"with another tag":   {stored("", "topic:ann"), false},
	} {
		d, err := r.Open(&tt.s, place(), agent.ModeDefault)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Policy.DeniesRead("/data/sessions/x"); d.Owned != tt.want || got != tt.want {
			t.Errorf("%s: owned %v, denied %v", name, d.Owned, got)
		}
	}
}

package oauth

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/safety/guard"
)

// posts is a tool that needs a token.
type posts struct {
	Binding
	ran int
}

func (p *posts) run(ctx context.Context) agent.Result {
	token, instead := p.Token(ctx)
	if token == nil {
		return instead
	}
	p.ran++
	return agent.OK("posted with " + token.AccessToken.Reveal())
}

// A tool that needs a sign-in does nothing before it. Its call waits, is settled when
// the person has agreed, and the next one runs with the token, which no result shows.
func TestBoundTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	known := &guard.Known{}
	d.cfg.Secret = known.Add
	settled := make(chan agent.Settlement, 1)
	failing := &posts{Binding: Binding{Desk: d, App: w.app(), Scopes: []string{"write"}}}
	waiting := &posts{Binding: failing.Binding}
	waiting.Settle = func(_ context.Context, s agent.Settlement) error {
		settled <- s
		return nil
	}
	run := func(p *posts) agent.Result {
		t.Helper()
		g := guard.New(guard.Config{Patterns: (*guard.Patterns)(nil).With(known)})
		r, err := g.Check(t.Context(), agent.Spec{Name: "slack__post"}, agent.Call{}, p.run(limited(t)))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	address := func(r agent.Result) string {
		t.Helper()
		var out struct {
			Status  string `json:"status"`
			Session string `json:"authSessionId"`
			Message string `json:"message"`
			URL     string `json:"authorizationUrl"`
		}
		if err := json.Unmarshal(r.Output, &out); err != nil || out.Status != "authorization_required" || out.Session == "" || out.Message == "" {
			t.Fatalf("%s: %v", r.Output, err)
		}
		if r.Error == nil || r.Error.Code != agent.ErrOAuthRequired || !strings.Contains(r.Text, out.URL) {
			t.Errorf("the model does not read where: %+v", r)
		}
		return out.URL
	}
	if r := run(failing); r.Status != agent.StatusError || address(r) == "" {
		t.Errorf("%+v", r)
	}
	r := run(waiting)
	if r.Status != agent.StatusPending || !strings.HasPrefix(r.Handle, "auth:") || waiting.ran != 0 {
		t.Fatalf("%+v", r)
	}
	browse(t, address(r))
	s := <-settled
	if s.Handle != r.Handle || s.Result.Failed() || s.Granted == nil || s.Granted.App != "box" || !covers(s.Granted.Scopes, []string{"write"}) {
		t.Errorf("%+v", s)
	}
	r = run(waiting)
	if waiting.ran != 1 || r.Text != "posted with [redacted:sign-in]" {
		t.Errorf("%+v", r)
	}
}

func TestBoundToolThatNobodySignsInFor(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	settled := make(chan agent.Settlement, 1)
	tool := &posts{Binding: Binding{Desk: d, App: w.app(), Settle: func(_ context.Context, s agent.Settlement) error {
		settled <- s
		return nil
	}}}
	if r := tool.run(limited(t)); r.Status != agent.StatusPending {
		t.Fatal(r)
	}
	w.later(consentLimit)
	if s := <-settled; !s.Result.Failed() || s.Granted != nil || !strings.Contains(s.Result.Text, CodeExpired) {
		t.Errorf("%+v", s)
	}
	tool.App.Scopes, tool.Scopes = nil, []string{"write"}
	if r := tool.run(limited(t)); !r.Failed() || tool.ran != 0 {
		t.Errorf("more than the app may: %+v", r)
	}
}

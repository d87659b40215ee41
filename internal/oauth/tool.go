package oauth

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"dure/agent"
)

// A Binding gives a tool the token that it needs, and nothing else of a Desk. A tool
// gets its own when it is registered: what it runs with says nothing of sign-ins.
type Binding struct {
	Desk    *Desk
	App     App
	Scopes  []string // of the tool, or of its export; nil = all of the app's
	Subject string   // who is acting

	// Settle has a call wait for a person: it is answered as pending, and settled
	// when they have agreed or nobody will. nil = such a call fails, and says whom to
	// ask.
	Settle agent.Settle
}

// Token returns the token that a call needs. Without one, instead is what the call
// answers, having done nothing.
func (b Binding) Token(ctx context.Context) (token *Ready, instead agent.Result) {
	r := b.Desk.Token(ctx, Request{App: b.App, Subject: b.Subject, Scopes: b.Scopes})
	switch {
	case r.Ready != nil:
		return r.Ready, agent.Result{}
	case r.Required == nil || b.Settle == nil:
		return nil, r.Refusal()
	}
	return nil, b.pend(*r.Required)
}

// pend answers a call as pending, and has it settled when the sign-in is over.
func (b Binding) pend(q Required) agent.Result {
	handle := "auth:" + rand.Text()[:12]
	refusal := Result{Required: &q}.Refusal()
	d := b.Desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return refusal
	}
	d.wait.Go(func() {
		g, err := d.Await(d.ctx, q.AuthSession)
		if d.ctx.Err() != nil {
			return // the next program finds the sign-in as it is
		}
		st := agent.Settlement{Handle: handle}
		if err != nil {
			st.Result = Result{Error: asError(err)}.Refusal()
		} else {
			st.Result = agent.OK("The user has signed in. Nothing was done yet: call the tool again.")
			st.Granted = &agent.AuthGranted{AuthSession: g.AuthSession, App: g.App, Subject: g.Subject, Scopes: g.Scopes}
		}
		_ = b.Settle(d.ctx, st) // a session that has gone settles its calls itself
	})
	out, _ := json.Marshal(Result{Required: &q}) // texts and times
	return agent.Result{
		Status: agent.StatusPending, Handle: handle, Output: out, Error: refusal.Error,
		Text: refusal.Text + "\nYou are told when they have.",
	}
}

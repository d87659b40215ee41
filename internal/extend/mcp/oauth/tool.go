package oauth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/agent/query"
)

// A Binding gives a tool the token that it needs, and nothing else of a Desk. A tool
// gets its own when it is registered: what it runs with says nothing of sign-ins.
type Binding struct {
	Desk    *Desk
	App     App
	Scopes  []string // of the tool, or of its export; nil = all of the app's
	Subject string   // who is acting
	Refused Secret   // a token that was not taken; it is not returned again

	// Settle has a call wait for a person: it is answered as pending, and settled
	// when they have agreed or nobody will. nil = such a call fails, and says whom to
	// ask.
	Settle agent.Settle
}

// Token returns the token that a call needs. Without one, instead is what the call
// answers, having done nothing.
func (b Binding) Token(ctx context.Context) (token *Ready, instead agent.Result) {
	r := b.Desk.Token(ctx, Request{App: b.App, Subject: b.Subject, Scopes: b.Scopes, Refused: b.Refused})
	switch {
	case r.Ready != nil:
		return r.Ready, agent.Result{}
	case r.Required == nil || b.Settle == nil:
		return nil, r.Refusal()
	}
	return nil, b.pend(*r.Required)
}

// HandleType begins the handles of calls that wait for a person.
const HandleType = "auth:"

// pend answers a call as pending, and has it settled when the sign-in is over. The handle says
// which that is, so that another program can wait for it too.
func (b Binding) pend(q query.SignInRequired) agent.Result {
	handle := HandleType + q.AuthSession + ":" + rand.Text()[:12]
	refusal := Result{Required: &q}.Refusal()
	if !b.Desk.settleThen(handle, q.AuthSession, b.Settle) {
		return refusal
	}
	out, _ := json.Marshal(Result{Required: &q}) // texts and times
	return agent.Result{
		Status: agent.StatusPending, Handle: handle, Output: out, Error: refusal.Error,
		Text: refusal.Text + "\nYou are told when they have.",
	}
}

// settleThen settles a call when a sign-in is over, and reports whether it will: a Desk that is
// closed does not.
func (d *Desk) settleThen(handle, session string, settle agent.Settle) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return false
	}
	d.wait.Go(func() {
		g, err := d.Await(d.ctx, session)
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
		_ = settle(d.ctx, st) // a session that has gone settles its calls itself
	})
	return true
}

// Awaits takes calls up that wait for a sign-in since an earlier program. The desk is made when
// there is one.
func Awaits(desk func() (*Desk, error), settle agent.Settle) func(handle string) bool {
	return func(handle string) bool {
		if !strings.HasPrefix(handle, HandleType) || settle == nil {
			return false
		}
		d, err := desk()
		return err == nil && d.Reclaim(handle, settle)
	}
}

// Reclaim takes up a call that an earlier program has answered as pending, because it waits for
// a person: it is settled as that program would have, at once where the sign-in is over by now.
// It reports whether the call is one, and its sign-in can be looked at.
func (d *Desk) Reclaim(handle string, settle agent.Settle) bool {
	rest, ok := strings.CutPrefix(handle, HandleType)
	id, _, whole := strings.Cut(rest, ":")
	key, err := recordOf(id)
	if !ok || !whole || err != nil {
		return false
	}
	rec, err := d.read(key)
	if err != nil {
		return false
	}
	if s := rec.Session; s != nil && s.ID == id && s.open(d.cfg.Now()) {
		d.attend(key, *s)
	}
	return d.settleThen(handle, id, settle)
}

package connections

import (
	"context"
	"errors"
	"fmt"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/mcp/servers"
	"dure/internal/tools/kit"
)

// signable returns the server of a name, if somebody can sign in to it, and what signs in.
func (x *Extension) signable(name string) (*oauth.Desk, oauth.App, error) {
	k, err := x.find(x.Workdir, name)
	switch {
	case err != nil:
		return nil, oauth.App{}, err
	case k.State != servers.Ready:
		return nil, oauth.App{}, problem(name, fmt.Errorf("it is not used: %s", k.State), "dure mcp get "+name)
	case k.Expanded.Type != servers.HTTP && k.Expanded.Type != servers.SSE:
		return nil, oauth.App{}, problem(name, errors.New("nobody signs in to a program: only to an address"), "dure mcp get "+name)
	}
	d, err := x.Desk()
	return d, app(k.Expanded), err
}

// signIn opens a sign-in to a server, or waits for one that is open. With the address to which
// a browser was sent, on another machine perhaps, it ends the sign-in that is open.
func (x *Extension) signIn(ctx context.Context, q query.SignIn) (s query.SignInState, err error) {
	s.Status = "ready"
	var d *oauth.Desk
	switch {
	case q.Answer != "":
		if d, err = x.Desk(); err == nil {
			err = signInProblem(q.Server, d.Answer(ctx, q.Answer))
		}
	case q.Await != "":
		if d, err = x.Desk(); err == nil {
			_, err = d.Await(ctx, q.Await)
			err = signInProblem(q.Server, err)
		}
	default:
		var to oauth.App
		if d, to, err = x.signable(q.Server); err != nil {
			return s, err
		}
		r := d.Token(ctx, oauth.Request{App: to, Challenge: d.Probe(ctx, to.Resource)})
		switch {
		case r.Error != nil:
			err = signInProblem(q.Server, r.Error)
		case r.Ready == nil:
			s.Status, s.SignInRequired = "authorization_required", r.Required
		}
	}
	return s, err
}

// signOut gives back what a server has granted, and forgets it.
func (x *Extension) signOut(ctx context.Context, q query.SignOut) (query.SignInState, error) {
	d, to, err := x.signable(q.Server)
	if err == nil {
		err = signInProblem(q.Server, d.SignOut(ctx, to, ""))
	}
	return query.SignInState{Status: "signed_out"}, err
}

// signInProblem says why a sign-in came to nothing, in the words of the settings where
// those are the reason.
func signInProblem(name string, err error) error {
	if err == nil {
		return nil
	}
	if p := agent.ProblemOf(err); p != nil {
		return p
	}
	return problem(name, err, "dure mcp login "+kit.Clip(name))
}

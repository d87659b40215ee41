package swarms

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/extend/mcp/oauth"
)

// thePerson is the subject of the grants of who sits at this machine. Those of a conversation
// with others are its own: its name is no word that they could write.
const thePerson = "person"

// signInApp returns the app that a tool signs in with; nil = it needs none. What cannot be is
// told before anything is started.
func (ext *Extension) signInApp(b *bundle.Bundle, dir string, t *bundle.Resource) (*oauth.App, error) {
	spec := t.Spec.(*bundle.Tool)
	ref := spec.Auth.App
	if !ref.Given() {
		return nil, nil
	}
	if err := (exthost.Resource{Runtime: exthost.Runtime(spec.Runtime), Entry: spec.Entry}).Signable(); err != nil {
		return nil, problem(t.ID(), err)
	}
	if ref.Package == "" {
		ref.Package = t.Package
	}
	r, ok := b.Find(ref)
	if !ok {
		return nil, fmt.Errorf("the bundle has no %s", ref.ID())
	}
	s := r.Spec.(*bundle.OAuthApp)
	app := &oauth.App{
		Name: "bundle:" + dir + ":" + r.ID(), Provider: s.Provider, Flow: oauth.Flow(s.Flow), Subjects: oauth.Subjects(s.Subject),
		Endpoints: oauth.Endpoints{
			Authorization: s.Endpoints["authorizationUrl"], Token: s.Endpoints["tokenUrl"],
			Device: s.Endpoints["deviceAuthorizationUrl"], Revocation: s.Endpoints["revocationUrl"],
		},
		Scopes: s.Scopes, Path: s.Callback,
	}
	for _, v := range []struct {
		to   *oauth.Value
		from bundle.Value
	}{{&app.ClientID, s.ClientID}, {&app.ClientSecret, s.ClientSecret}} {
		text, err := b.Resolve(v.from, nil)
		if err != nil {
			return nil, problem(r.ID(), err)
		}
		v.to.Text = text
	}
	wrong := app.Check()
	for _, e := range spec.Exports {
		wrong = append(wrong, oauth.CheckScopes(*app, spec.Auth.Scopes, e.Scopes)...)
	}
	if len(wrong) > 0 {
		return nil, problem(r.ID(), errors.Join(wrong...))
	}
	return app, nil
}

// SignIn signs the person at this machine in to the apps with which tools of a bundle
// sign in, one after the other; name = to that one alone. It tells show about each, and waits.
func (ext *Extension) SignIn(ctx context.Context, path, name string, show func(query.SignInState) error) error {
	b, info, root, err := ext.load(path, false)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := filepath.Clean(root.Name())
	switch {
	case !info.OK:
		return problem(path, errors.New("it has errors"))
	case !ext.cfg.Trusts(dir):
		return untrusted(dir)
	}
	d, err := ext.cfg.Desk()
	if err != nil {
		return err
	}
	var needs []oauth.Request // of each app one, with the scopes of all its tools
	for _, t := range b.Of(bundle.KindTool) {
		app, err := ext.signInApp(b, dir, t)
		if err != nil {
			return err
		}
		auth := t.Spec.(*bundle.Tool).Auth
		if app == nil || name != "" && auth.App.Name != name {
			continue
		}
		i := slices.IndexFunc(needs, func(q oauth.Request) bool { return q.App.Name == app.Name })
		if i < 0 {
			needs = append(needs, oauth.Request{App: *app, Subject: thePerson})
			i = len(needs) - 1
		}
		if auth.Scopes == nil {
			auth.Scopes = app.Scopes
		}
		needs[i].Scopes = append(needs[i].Scopes, auth.Scopes...)
	}
	if len(needs) == 0 {
		return problem(path, errors.New("no tool of it signs in with such an app"))
	}
	for _, q := range needs {
		if err := d.SignIn(ctx, q, show); err != nil {
			return problem(q.App.Provider, err)
		}
	}
	return nil
}

// visited says that others than the person at this machine speak in a session.
func (k *Code) visited(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.subjects[session] = "conversation " + session
}

// follows has a session act for whom the one acts that it works for.
func (k *Code) follows(session, parent string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if parent != "" {
		k.parents[session] = parent
	}
}

// subject is for whom a session acts.
func (k *Code) subject(session string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range len(k.parents) {
		parent, ok := k.parents[session]
		if !ok {
			break
		}
		session = parent
	}
	if s := k.subjects[session]; s != "" {
		return s
	}
	return thePerson
}

// signs returns what signs the calls of a tool in; nil = it needs nobody. A call waits for a
// person where a session has one to tell: one that works for another says whom to ask.
func (r *Session) signs(k *Code, t *bundle.Resource, settle agent.Settle) (exthost.Sign, error) {
	app := k.apps[t.ID()]
	if app == nil {
		return nil, nil
	}
	d, err := r.ext.cfg.Desk()
	if err != nil {
		return nil, err
	}
	spec := t.Spec.(*bundle.Tool)
	return func(ctx context.Context, export string, refused *exthost.Credential) (*exthost.Credential, agent.Result) {
		b := oauth.Binding{Desk: d, App: *app, Scopes: spec.Auth.Scopes, Subject: k.subject(r.instance), Settle: settle}
		if i := slices.IndexFunc(spec.Exports, func(x bundle.Export) bool { return x.Name == export }); i >= 0 && spec.Exports[i].Scopes != nil {
			b.Scopes = spec.Exports[i].Scopes
		}
		if refused != nil {
			b.Refused = oauth.Conceal(refused.Token)
		}
		token, instead := b.Token(ctx)
		if token == nil {
			return nil, instead
		}
		return &exthost.Credential{Token: token.AccessToken.Reveal(), Type: scheme(token.TokenType), Expires: token.ExpiresAt, Scopes: token.Scopes}, instead
	}, nil
}

// scheme is how a token is named where it is shown: servers write its type as they like.
func scheme(kind string) string {
	if strings.EqualFold(kind, "bearer") {
		return "Bearer"
	}
	return kind
}

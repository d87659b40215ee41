package oauth

import (
	"context"
	"fmt"
	"net/url"
	"strings"
)

// refresh renews the grant of a record, under its lock, and keeps what it got
// before anybody uses it. A request that is out is not taken back: the server may
// have put a new refresh token in the place of the old one already.
func (d *Desk) refresh(ctx context.Context, id string, rec record) (record, error) {
	if err := ctx.Err(); err != nil {
		return record{}, &Error{Code: CodeStopped, Message: "renewing a grant: " + err.Error(), err: err}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	old := rec.Grant
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}}
	if old.Resource != "" {
		form.Set("resource", old.Resource)
	}
	r, err := d.post(ctx, old.Server.Token, old.Server, old.Client, form)
	if err != nil {
		return record{}, err
	}
	g, err := r.granted(d.cfg.Now(), old.Scopes)
	if err != nil {
		return record{}, err
	}
	if g.Refresh == "" {
		g.Refresh = old.Refresh
	}
	g.From, g.Resource, g.Server, g.Client = old.From, old.Resource, old.Server, old.Client
	rec.Grant = g
	return rec, d.write(id, rec)
}

// machine gets a token for the client itself.
func (d *Desk) machine(ctx context.Context, a resolved, rec record, want []string, r Request) Result {
	f, err := d.discover(ctx, a.App, r.Challenge)
	if err != nil {
		return failed(err)
	}
	scopes := union(want, r.Challenge.Scopes)
	if rec.Grant != nil {
		scopes = union(rec.Grant.Scopes, scopes)
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if f.resource != "" {
		form.Set("resource", f.resource)
	}
	answer, err := d.post(ctx, f.server.Token, f.server, a.client, form)
	if err != nil {
		return failed(err)
	}
	g, err := answer.granted(d.cfg.Now(), scopes)
	if err != nil {
		return failed(err)
	}
	g.Refresh = "" // of no use: the client has its secret
	g.Resource, g.Server, g.Client = f.resource, f.server, a.client
	rec.fill(a)
	rec.Grant = g
	if err := d.write(a.id, rec); err != nil {
		return failed(err)
	}
	if t, ok := d.usable(rec, want, r); ok {
		return t
	}
	if !covers(g.Scopes, want) {
		return failed(&Error{Code: CodeScope, Message: a.label() + " grants less than it was asked for"})
	}
	return failed(&Error{Code: CodeShort, Message: fmt.Sprintf("tokens of %s are not good for %s", a.label(), r.MinTTL)})
}

func (r *record) fill(a resolved) {
	r.App, r.Label, r.Subject, r.Resource = a.Name, a.label(), a.subject, a.Resource
}

// SignOut gives the grant of an app and a subject back where the server takes that (RFC 7009),
// forgets it in any case, and ends a sign-in that is open. An error of [CodeRevoke] says that it
// is forgotten here, but may be good there still.
func (d *Desk) SignOut(ctx context.Context, a App, subject string) error {
	k, err := d.resolve(a, subject)
	if err != nil {
		return err
	}
	id := k.id
	unlock, err := d.store.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	rec, err := d.read(id)
	if err != nil {
		return err
	}
	g := rec.Grant
	rec.Grant, rec.Session = nil, nil
	if g == nil && rec.Client == nil {
		return d.store.remove(id)
	}
	// It is gone here before anybody else is asked.
	if err := d.write(id, rec); err != nil {
		return err
	}
	if g == nil || g.Server.Revocation == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	for _, t := range []struct{ token, hint string }{{g.Refresh, "refresh_token"}, {g.Access, "access_token"}} {
		if t.token == "" {
			continue
		}
		form := url.Values{"token": {t.token}, "token_type_hint": {t.hint}}
		_, err := d.post(ctx, g.Server.Revocation, g.Server, g.Client, form)
		if err != nil && !isCode(err, "unsupported_token_type") {
			return &Error{Code: CodeRevoke, Message: "the grant is forgotten here, but perhaps not there: " + err.Error(), err: err}
		}
	}
	return nil
}

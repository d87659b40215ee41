package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"dure/agent/query"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// ErrUnknown says that a sign-in is not open: it is over, was replaced, or never was.
var ErrUnknown = &Error{Code: CodeState, Message: "there is no such sign-in, or it is over: begin it anew"}

// ask opens a sign-in, or returns the one that is open. It runs under the lock of
// the record.
func (d *Desk) ask(ctx context.Context, a resolved, rec record, want []string, r Request) Result {
	scopes := union(want, r.Challenge.Scopes)
	if s := rec.Session; s.open(d.cfg.Now()) && covers(s.Scopes, scopes) {
		d.attend(a.id, *s)
		return Result{Required: s.required(rec.Label)}
	}
	if rec.Session != nil { // what was asked for before, and not answered, is asked for again
		scopes = union(scopes, a.known(rec.Session.Scopes))
	}
	f, err := d.discover(ctx, a.App, r.Challenge)
	if err != nil {
		return failed(err)
	}
	if g := rec.Grant; g != nil { // more than before, not something else
		scopes = union(scopes, a.known(g.Scopes))
	}
	if len(scopes) == 0 {
		scopes = f.scopes
	}
	if f.server.Offline && len(a.Scopes) == 0 {
		scopes = union(scopes, []string{"offline_access"})
	}
	rec.fill(a)
	now := d.cfg.Now().UTC()
	s := session{
		ID:      a.id + "." + rand.Text(),
		Scopes:  scopes,
		Created: now, Expires: now.Add(consentLimit),
		Resource: f.resource, Server: f.server,
	}
	open := d.openCode
	if a.Flow == DeviceCode {
		open = d.openDevice
	}
	d.leave(a.id)
	l, err := open(ctx, a, &rec, &s)
	if err == nil {
		rec.Session = &s
		err = d.write(a.id, rec)
	}
	if err != nil {
		l.close()
		return failed(err)
	}
	d.attendWith(a.id, s, l)
	return Result{Required: s.required(rec.Label)}
}

// known returns those of some scopes that the app may still ask for.
func (a App) known(scopes []string) []string {
	if len(a.Scopes) == 0 {
		return scopes
	}
	var all []string
	for _, s := range scopes {
		if covers(a.Scopes, []string{s}) {
			all = append(all, s)
		}
	}
	return all
}

func (s *session) required(label string) *query.SignInRequired {
	message := label + " wants you to sign in"
	if len(s.Scopes) > 0 {
		message += ", and to agree to: " + strings.Join(s.Scopes, ", ")
	}
	return &query.SignInRequired{AuthSession: s.ID, URL: s.URL, UserCode: s.UserCode, ExpiresAt: s.Expires, Message: message}
}

// openCode begins a sign-in in a browser, which comes back to us.
func (d *Desk) openCode(ctx context.Context, a resolved, rec *record, s *session) (*listener, error) {
	l, err := d.listen(a, *rec)
	if err != nil {
		return nil, err
	}
	path := a.Path
	if path == "" {
		path = "/callback"
	}
	s.Redirect = l.address(a.Localhost) + path
	if s.Client, err = d.party(ctx, a, rec, s.Server, s.Redirect); err != nil {
		return l, err
	}
	s.State, s.Verifier = rand.Text(), oauth2.GenerateVerifier()
	c := oauth2.Config{ClientID: s.Client.ID, RedirectURL: s.Redirect, Scopes: s.Scopes, Endpoint: oauth2.Endpoint{AuthURL: s.Server.Authorization}}
	opts := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(s.Verifier)}
	if s.Resource != "" {
		opts = append(opts, oauth2.SetAuthURLParam("resource", s.Resource))
	}
	if covers(s.Scopes, []string{"offline_access"}) { // OpenID Connect ignores it otherwise
		opts = append(opts, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	s.URL = c.AuthCodeURL(s.State, opts...)
	return l, nil
}

// openDevice begins a sign-in on any machine (RFC 8628).
func (d *Desk) openDevice(ctx context.Context, a resolved, rec *record, s *session) (*listener, error) {
	var err error
	if s.Client, err = d.party(ctx, a, rec, s.Server, ""); err != nil {
		return nil, err
	}
	form := url.Values{}
	if len(s.Scopes) > 0 {
		form.Set("scope", strings.Join(s.Scopes, " "))
	}
	if s.Resource != "" {
		form.Set("resource", s.Resource)
	}
	r, err := d.post(ctx, s.Server.Device, s.Server, s.Client, form)
	if err != nil {
		return nil, err
	}
	s.URL = r.Complete
	if s.URL == "" {
		s.URL = r.VerificationURI
	}
	if s.URL == "" {
		s.URL = r.VerificationURL
	}
	bad := r.DeviceCode == "" || len(r.DeviceCode) > maxToken || r.UserCode == "" || len(r.UserCode) > 50 || plain(r.UserCode) != r.UserCode
	if bad || secure(s.URL) != nil {
		return nil, &Error{Code: CodeReply, Message: place(s.Server.Device) + " answers with no code for a person"}
	}
	s.DeviceCode, s.UserCode = r.DeviceCode, r.UserCode
	s.Interval = min(max(time.Duration(r.Interval)*time.Second, time.Second), time.Minute)
	if r.Interval == 0 {
		s.Interval = 5 * time.Second
	}
	if r.ExpiresIn > 0 {
		s.Expires = s.Created.Add(min(time.Duration(r.ExpiresIn)*time.Second, consentLimit))
	}
	return nil, nil
}

// recordOf returns the record to which a sign-in belongs.
func recordOf(session string) (string, error) {
	id, nonce, ok := strings.Cut(session, ".")
	if !ok || !isID(id) || nonce == "" {
		return "", ErrUnknown
	}
	return id, nil
}

func isID(id string) bool {
	return len(id) == 32 && !strings.ContainsFunc(id, func(r rune) bool { return (r < 'a' || r > 'f') && (r < '0' || r > '9') })
}

// Answer ends the sign-in that an address belongs to, to which its browser was sent: a person
// can copy it from there when the browser runs on another machine.
func (d *Desk) Answer(ctx context.Context, redirected string) error {
	u, err := url.Parse(strings.TrimSpace(redirected))
	if err != nil || len(redirected) > maxToken || u.Query().Get("state") == "" {
		return &Error{Code: CodeState, Message: "this is no address of a sign-in: copy all of what the browser shows"}
	}
	ids, err := d.store.list()
	if err != nil {
		return err
	}
	for _, id := range ids {
		rec, rerr := d.read(id)
		if rerr != nil {
			err = rerr
			continue
		}
		if s := rec.Session; s != nil && s.State != "" && subtle.ConstantTimeCompare([]byte(u.Query().Get("state")), []byte(s.State)) == 1 {
			return d.finish(ctx, s.ID, u.Query())
		}
	}
	if err != nil {
		return err
	}
	return ErrUnknown
}

// finish ends a sign-in with what its server has answered. What does not have its
// state changes nothing: whoever guesses cannot end it for the person.
func (d *Desk) finish(ctx context.Context, id string, answer url.Values) error {
	key, err := recordOf(id)
	if err != nil {
		return err
	}
	unlock, err := d.store.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	rec, err := d.read(key)
	if err != nil {
		return err
	}
	s := rec.Session
	if s == nil || s.ID != id || s.Failed != "" || s.State == "" {
		return ErrUnknown
	}
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(s.State)) != 1 {
		return &Error{Code: CodeState, Message: "the answer belongs to another sign-in"}
	}
	if !s.open(d.cfg.Now()) {
		return d.end(key, rec, &Error{Code: CodeExpired, Message: "nobody agreed in time"})
	}
	if err := s.issuer(answer.Get("iss")); err != nil {
		return d.end(key, rec, err)
	}
	if code := answer.Get("error"); code != "" {
		return d.end(key, rec, &Error{Code: errorCode(code), Message: said(s.Server.Authorization, reply{Description: answer.Get("error_description")}, nil)})
	}
	code := answer.Get("code")
	if code == "" || len(code) > maxToken {
		return d.end(key, rec, &Error{Code: CodeReply, Message: "the answer has no code"})
	}
	d.cfg.Secret(code)
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {s.Redirect}, "code_verifier": {s.Verifier}}
	return d.redeem(ctx, key, rec, form)
}

// issuer checks that an answer comes from the server that was asked (RFC 9207).
func (s *session) issuer(iss string) *Error {
	switch {
	case iss == "" && !s.Server.IssParam, iss != "" && iss == s.Server.Issuer:
		return nil
	case iss != "" && s.Server.Issuer == "": // nothing to compare it with
		return nil
	}
	return &Error{Code: CodeIssuer, Message: "the answer comes from another server than was asked"}
}

// redeem changes a code for a grant. Once the request is out it is waited for: a
// code is good once.
func (d *Desk) redeem(ctx context.Context, key string, rec record, form url.Values) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	s := rec.Session
	if s.Resource != "" {
		form.Set("resource", s.Resource)
	}
	r, err := d.post(ctx, s.Server.Token, s.Server, s.Client, form)
	var g *grant
	if err == nil {
		g, err = r.granted(d.cfg.Now(), s.Scopes)
	}
	var e *Error
	switch {
	case err == nil:
	case isCode(err, CodeNetwork), isCode(err, codePending), isCode(err, codeSlower):
		return err // it may go better the next time
	case errors.As(err, &e):
		return d.end(key, rec, e)
	default:
		return err
	}
	g.From, g.Resource, g.Server, g.Client = s.ID, s.Resource, s.Server, s.Client
	rec.Grant, rec.Session = g, nil
	if err := d.write(key, rec); err != nil {
		return err
	}
	d.tell(rec.granted())
	return nil
}

func (r record) granted() Granted {
	return Granted{AuthSession: r.Grant.From, App: r.App, Subject: r.Subject, Scopes: r.Grant.Scopes, At: r.Grant.At}
}

// tell tells once that a sign-in came out well.
func (d *Desk) tell(g Granted) {
	d.mu.Lock()
	told := d.told[g.AuthSession]
	d.told[g.AuthSession] = true
	d.mu.Unlock()
	if !told {
		d.cfg.Granted(g)
	}
}

// end keeps how a sign-in ended, for whoever waits for it.
func (d *Desk) end(key string, rec record, why *Error) error {
	s := *rec.Session
	s.Failed, s.Message = why.Code, why.Message
	s.State, s.Verifier, s.DeviceCode = "", "", ""
	rec.Session = &s
	if why.Code == CodeClient {
		rec.Client = nil // who we were is forgotten there
	}
	if err := d.write(key, rec); err != nil {
		return err
	}
	return why
}

// state says how a sign-in stands: done with what was granted, over with an error,
// or neither.
func (d *Desk) state(id string) (Granted, bool, error) {
	key, err := recordOf(id)
	if err != nil {
		return Granted{}, false, err
	}
	rec, err := d.read(key)
	if err != nil {
		return Granted{}, false, err
	}
	switch s, g := rec.Session, rec.Grant; {
	case g != nil && g.From == id:
		return rec.granted(), true, nil
	case s == nil || s.ID != id:
		return Granted{}, false, ErrUnknown
	case s.Failed != "":
		return Granted{}, false, &Error{Code: s.Failed, Message: s.Message}
	case !s.open(d.cfg.Now()):
		return Granted{}, false, &Error{Code: CodeExpired, Message: fmt.Sprintf("nobody agreed within %s", s.Expires.Sub(s.Created).Round(time.Second))}
	}
	return Granted{}, false, nil
}

// Await waits until a sign-in is over, whoever ends it, and returns what came of it.
func (d *Desk) Await(ctx context.Context, id string) (Granted, error) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		if g, done, err := d.state(id); done || err != nil {
			return g, err
		}
		select {
		case <-ctx.Done():
			return Granted{}, &Error{Code: CodeStopped, Message: "waiting for a sign-in: " + ctx.Err().Error(), err: ctx.Err()}
		case <-d.ctx.Done():
			return Granted{}, &Error{Code: CodeStopped, Message: "waiting for a sign-in: the program ends", err: d.ctx.Err()}
		case <-t.C:
		}
	}
}

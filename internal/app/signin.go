package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/extend/mcp/servers"
	"dure/internal/extend/oauth"
	"dure/internal/frontend/text"
)

// signInWay is how servers are reached at which somebody signs in: as everything else,
// where the network mode lets them be asked, and never where clouds tell a machine its
// secrets.
type signInWay struct {
	app *App
	by  *http.Transport
}

// RoundTrip implements [http.RoundTripper].
func (w signInWay) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.app.reachOf().Check(r.URL); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "dure/"+w.app.opts.Version)
	via, err := w.by.Proxy(r)
	if err == nil && via != nil { // it looks names up itself: what can be known here is checked
		err = hosts.LookedUp(r.Context(), r.URL.Hostname(), true)
	}
	if err != nil {
		return nil, err
	}
	return w.by.RoundTrip(r)
}

// newDesk makes what signs in. It touches nothing before it is needed.
func (a *App) newDesk() (*oauth.Desk, error) {
	by := a.transport.Clone()
	by.DialContext = hosts.Dialer(true)
	by.DisableKeepAlives = true
	say := text.For(a.cfg.Language)
	d, err := oauth.New(oauth.Config{
		Dir: filepath.Join(a.cfg.Data, "grants"), Keys: a.keys(), HTTP: &http.Client{Transport: signInWay{a, by}}, Secret: a.secrets.Add,
		Pages: oauth.Pages{Done: say.Say(text.SignInPage), Failed: say.Say(text.SignInPageFailed), Unknown: say.Say(text.SignInPageUnknown)},
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.desked = d
	return d, err
}

// serverApp is what somebody signs in to who uses a server.
func serverApp(s servers.Server) oauth.App {
	app := oauth.App{Name: "mcp:" + s.Name, Provider: s.Name, Resource: s.URL}
	if o := s.OAuth; o != nil {
		app.ClientID, app.ClientSecret = oauth.Value{Text: o.ClientID}, oauth.Value{Text: o.ClientSecret}
		app.Scopes, app.Metadata, app.Port = o.Scopes, o.MetadataURL, o.CallbackPort
		app.Localhost = o.CallbackPort != 0 // as it is registered for other agents
	}
	return app
}

// signsIn returns what signs the requests to a server in, with what its person has
// granted by dure mcp login; nil for one that is sent a key.
func (a *App) signsIn(s servers.Server) auth.OAuthHandler {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	d, err := a.desk()
	if err != nil {
		a.opts.Logger.Warn("nobody can sign in to a server", "server", s.Name, "error", err)
		return nil
	}
	return &oauth.Bearer{Desk: d, App: serverApp(s), Quiet: true}
}

// signsIn is the same for servers of the session, by the names at which somebody has signed
// in to them.
func (c *connected) signsIn(s servers.Server) auth.OAuthHandler {
	s.Name = c.prefix + s.Name
	return c.app.signsIn(s)
}

// signableServer returns the server of a name, if somebody can sign in to it.
func (a *App) signableServer(name string) (oauth.App, error) {
	k, err := a.findServer(a.opts.Workdir, name)
	switch {
	case err != nil:
		return oauth.App{}, err
	case k.State != servers.Ready:
		return oauth.App{}, serverProblem(name, fmt.Errorf("it is not used: %s", k.State), "dure mcp get "+name)
	case k.Expanded.Type != servers.HTTP && k.Expanded.Type != servers.SSE:
		return oauth.App{}, serverProblem(name, errors.New("nobody signs in to a program: only to an address"), "dure mcp get "+name)
	}
	return serverApp(k.Expanded), nil
}

// SignIn opens a sign-in to a server, tells show about it, and waits until it is over.
// With a token that is good already it does neither.
func (a *App) SignIn(ctx context.Context, name string, show func(oauth.Needed) error) error {
	app, err := a.signableServer(name)
	if err != nil {
		return err
	}
	d, err := a.desk()
	if err != nil {
		return err
	}
	if err := d.SignIn(ctx, oauth.Request{App: app, Challenge: d.Probe(ctx, app.Resource)}, show); err != nil {
		return signInProblem(name, err)
	}
	return nil
}

// AnswerSignIn ends the sign-in that is open with the address to which a browser was
// sent, on another machine perhaps.
func (a *App) AnswerSignIn(ctx context.Context, name, address string) error {
	d, err := a.desk()
	if err != nil {
		return err
	}
	if err := d.Answer(ctx, address); err != nil {
		return signInProblem(name, err)
	}
	return nil
}

// SignOut gives back what a server has granted, and forgets it.
func (a *App) SignOut(ctx context.Context, name string) error {
	app, err := a.signableServer(name)
	if err != nil {
		return err
	}
	d, err := a.desk()
	if err != nil {
		return err
	}
	if err := d.SignOut(ctx, app, ""); err != nil {
		return signInProblem(name, err)
	}
	return nil
}

// signInProblem says why a sign-in came to nothing, in the words of the settings where
// those are the reason.
func signInProblem(name string, err error) error {
	if p := agent.ProblemOf(err); p != nil {
		return p
	}
	return serverProblem(name, err, "dure mcp login "+servers.Clip(name))
}

// awaits takes calls up that wait for a sign-in since an earlier program.
func (a *App) awaits(settle agent.Settle) func(handle string) bool {
	return func(handle string) bool {
		if !strings.HasPrefix(handle, oauth.HandleType) || settle == nil {
			return false
		}
		d, err := a.desk()
		return err == nil && d.Reclaim(handle, settle)
	}
}

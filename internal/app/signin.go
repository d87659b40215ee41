package app

import (
	"net/http"
	"path/filepath"

	"dure/internal/base/hosts"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/frontend/text"
)

// signInWay is how servers are reached at which somebody signs in: as everything else,
// where the network mode lets them be asked, and never where clouds tell a machine its
// secrets.
type signInWay struct {
	app *App
	by  *http.Transport
}

func (a *App) signInWay() http.RoundTripper {
	by := a.transport.Clone()
	by.DialContext, by.DisableKeepAlives = hosts.Dialer(true), true
	return signInWay{a, by}
}

// RoundTrip implements [http.RoundTripper].
func (w signInWay) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.app.reach.Check(r.URL); err != nil {
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
	say := text.For(a.cfg.Language)
	d, err := oauth.New(oauth.Config{
		Dir: filepath.Join(a.cfg.Data, "grants"), Keys: a.keys, HTTP: &http.Client{Transport: a.signInWay()}, Secret: a.secrets.Add,
		Pages: oauth.Pages{Done: say.Say(text.SignInPage), Failed: say.Say(text.SignInPageFailed), Unknown: say.Say(text.SignInPageUnknown)},
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.desked = d
	return d, err
}

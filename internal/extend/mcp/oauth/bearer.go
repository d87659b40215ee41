package oauth

import (
	"context"
	"net/http"
	"strings"

	"golang.org/x/oauth2"

	"dure/agent/query"
)

// A Bearer signs the requests to one resource in. It fits what the MCP SDK asks for
// under the name of auth.OAuthHandler. It waits for nobody: where a person has to
// agree, the request fails with a [RequiredError], and a later one goes through.
type Bearer struct {
	Desk    *Desk
	App     App
	Subject string

	// Quiet opens no sign-in where nobody has signed in yet: whoever wants it asks
	// for it. More scopes for somebody who has are asked for all the same.
	Quiet bool
}

// RequiredError says that a request needs a person to sign in first.
type RequiredError struct{ query.SignInRequired }

func (e *RequiredError) Error() string { return e.Message + ": " + e.URL }

// TokenSource returns a source of the token that is good now; nil when nobody has
// signed in, because the resource may want nobody to. It renews what it must.
func (b *Bearer) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	r := b.Desk.Token(ctx, Request{App: b.App, Subject: b.Subject, quiet: true})
	switch {
	case r.Ready != nil:
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: r.Ready.AccessToken.Reveal(), TokenType: r.Ready.TokenType}), nil
	case r.Error != nil && r.Error.Code != codeNone:
		return nil, r.Error
	}
	return nil, nil
}

// Authorize makes the best of a refusal. It returns nil when there is another token
// than the one that was refused. It closes the body of the answer.
func (b *Bearer) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	c := ParseChallenge(resp.Header)
	if resp.StatusCode == http.StatusForbidden && c.Error != insufficientScope {
		return &Error{Code: CodeDenied, Message: place(req.URL.String()) + " refuses: another sign-in would not change that"}
	}
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		token = ""
	}
	r := b.Desk.Token(ctx, Request{
		App: b.App, Subject: b.Subject, Refused: Conceal(token), Challenge: c,
		quiet: b.Quiet && (token == "" || c.Error != insufficientScope),
	})
	switch {
	case r.Required != nil:
		return &RequiredError{*r.Required}
	case r.Error != nil:
		return r.Error
	}
	return nil
}

package mcp

import (
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// signing signs the requests of the older transport in, which the library leaves to others.
// As with the newer one, a request that is refused is made once more when there is another
// token.
type signing struct {
	web *web
	by  auth.OAuthHandler
}

// RoundTrip implements [http.RoundTripper].
func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	if !sameOrigin(r.URL, s.web.origin) {
		return s.web.RoundTrip(r) // which refuses it: no token goes there
	}
	signed, err := s.sign(r)
	if err != nil {
		return nil, err
	}
	res, err := s.web.RoundTrip(signed)
	if err != nil || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden || r.Body != nil && r.GetBody == nil {
		return res, err
	}
	if err := s.by.Authorize(r.Context(), signed, res); err != nil { // it closes the body
		return nil, err
	}
	if signed, err = s.sign(r); err != nil {
		return nil, err
	}
	if r.GetBody != nil {
		if signed.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return s.web.RoundTrip(signed)
}

// sign returns a request with the token that is good now, if there is one.
func (s signing) sign(r *http.Request) (*http.Request, error) {
	r = r.Clone(r.Context())
	from, err := s.by.TokenSource(r.Context())
	if err != nil || from == nil {
		return r, err
	}
	token, err := from.Token()
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	token.SetAuthHeader(r)
	return r, nil
}

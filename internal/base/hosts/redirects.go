package hosts

import (
	"errors"
	"net/http"
	"net/url"
)

const maxMoves = 5 // redirects

// ErrFar is an address that is not asked.
var ErrFar = errors.New("the network mode does not let it be asked, or it leads on and on")

// Redirects returns the [http.Client.CheckRedirect] of a client that follows a few redirects to
// addresses that may be asked.
func Redirects(may func(*url.URL) bool) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		if len(via) >= maxMoves || !may(r.URL) {
			return ErrFar
		}
		return nil
	}
}

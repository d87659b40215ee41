// Package auth is who may come in over HTTP: the token that clients need, the names and
// origins under which this machine is reached, and the bounds on what is sent and how long
// that may take.
//
// It knows nothing of what is behind it, and starts no goroutines.
package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The bounds of connections.
const (
	MaxHeader = 64 << 10         // bytes
	HeadTime  = 10 * time.Second // for a request to say what it wants
	BodyTime  = 30 * time.Second // ... and to come
	IdleTime  = 2 * time.Minute  // of a connection without a request
)

// MinToken is how long a token has to be that somebody has chosen, in bytes.
const MinToken = 16

// Why nobody is let in.
const (
	NoName      = "host"         // this server has no such name
	NoOrigin    = "origin"       // a page of another origin
	NoToken     = "unauthorized" // the token is missing, or another one
	TooMany     = "too-many"     // requests at once
	TooOften    = "too-often"    // wrong tokens
	TooLarge    = "too-large"    // a body
	Incomplete  = "incomplete"   // a body that has not come to its end
	Unavailable = "unavailable"  // the connection cannot be bounded
)

// A Refusal is why a request is not let in.
type Refusal struct {
	Status int    // of HTTP
	Reason string // one of those above
	Said   string // in English
}

// Door lets requests in, or not. The zero value lets nobody in who has to show a token. Its
// fields are not changed once it is used; it is safe for concurrent use.
type Door struct {
	// Token is what clients have to show.
	Token string

	// Users come in with tokens of their own; nil = there are none.
	Users *Users

	// Hosts says by which names this machine is reached beside those that nobody else has;
	// nil = by none. TLS says that it is reached by it, so that pages of its own say so.
	Hosts func(host string) bool
	TLS   bool

	Logger *slog.Logger // is told who tries wrong tokens; nil = nobody is

	tries throttle

	// Refuse answers whoever is not let in; nil = with a line of text.
	Refuse func(http.ResponseWriter, *http.Request, Refusal)
}

// NewToken returns a token that nobody guesses.
func NewToken() string { return rand.Text() }

// CheckToken says what is wrong with a token that somebody has chosen.
func CheckToken(token string) error {
	switch {
	case len(token) < MinToken:
		return fmt.Errorf("a token has %d characters or more", MinToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("a token is of printable ASCII, without blanks")
	}
	return nil
}

// Listen listens on an address of this machine; one that others reach is refused.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if !IsLoopback(host) {
		return nil, errors.New("others could reach " + addr)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}

// IsLoopback reports whether a host is this machine under a name that nobody else gives.
func IsLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Server returns a server within the bounds, whose requests end with life.
func Server(life context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: HeadTime, IdleTimeout: IdleTime, MaxHeaderBytes: MaxHeader,
		BaseContext: func(net.Listener) context.Context { return life },
	}
}

func (d *Door) refuse(w http.ResponseWriter, r *http.Request, no Refusal) {
	if d.Refuse != nil {
		d.Refuse(w, r, no)
		return
	}
	http.Error(w, no.Said, no.Status)
}

// Names lets nothing through that a page in a browser could have sent, under whatever name
// it has reached this machine.
func (d *Door) Names(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		origin, from := r.Header.Get("Origin"), len(r.Header.Values("Origin"))
		own := "http://"
		if d.TLS {
			own = "https://"
		}
		switch {
		case !IsLoopback(host) && (d.Hosts == nil || !d.Hosts(host)):
			d.refuse(w, r, Refusal{http.StatusForbidden, NoName, "this server has no such name"})
		case from > 1 || from == 1 && origin != own+r.Host, crossed(r):
			d.refuse(w, r, Refusal{http.StatusForbidden, NoOrigin, "pages of other origins have no access"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// crossed reports whether a browser says that a page of another site has sent the request.
func crossed(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site" // another port of this machine
}

// Slots lets so many requests through at once.
func (d *Door) Slots(n int, next http.Handler) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			w.Header().Set("Retry-After", "1")
			d.refuse(w, r, Refusal{http.StatusServiceUnavailable, TooMany, "too many requests at once"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Bearer lets those through who know the token, or one of a user's. An address from which
// wrong ones come has to wait before others are looked at; the right ones are let in, so that
// nobody locks out who comes from the same address. Users that cannot be read are no reason to
// wait.
func (d *Door) Bearer(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(d.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given = strings.TrimSpace(given)
		got := sha256.Sum256([]byte(given))
		bearer, now := strings.EqualFold(scheme, "Bearer"), time.Now()
		if d.Token != "" && bearer && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			next.ServeHTTP(w, r.WithContext(With(r.Context(), User{Scope: Admin})))
			return
		}
		var broken error
		if d.Users != nil && bearer {
			u, known, err := d.Users.who(given)
			if known {
				next.ServeHTTP(w, r.WithContext(d.Users.came(r.Context(), u)))
				return
			}
			if broken = err; err != nil && d.Logger != nil {
				d.Logger.Error("users cannot come in", "error", err)
			}
		}
		if wait := d.tries.waits(r.RemoteAddr, now); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
			d.refuse(w, r, Refusal{http.StatusTooManyRequests, TooOften, "too many wrong tokens came from this address"})
			return
		}
		first := given != "" && broken == nil && d.tries.fail(r.RemoteAddr, now)
		if first && d.Logger != nil {
			d.Logger.Warn("a wrong token was shown", "from", r.RemoteAddr)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="dure"`)
		d.refuse(w, r, Refusal{http.StatusUnauthorized, NoToken, "the token is missing, or another one"})
	})
}

// Body reads a request of up to so many bytes to its end before anything is done with it,
// within a time that is not that of the answer.
func (d *Door) Body(most int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.SetReadDeadline(time.Now().Add(BodyTime)); err != nil {
			d.refuse(w, r, Refusal{http.StatusInternalServerError, Unavailable, "the request cannot be bounded"})
			return
		}
		var data []byte
		err := error(&http.MaxBytesError{Limit: most})
		if r.ContentLength <= most { // else it is not waited for
			data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		}
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			d.refuse(w, r, Refusal{http.StatusRequestEntityTooLarge, TooLarge, fmt.Sprintf("the request is larger than %d bytes", most)})
			return
		}
		if err != nil {
			d.refuse(w, r, Refusal{http.StatusBadRequest, Incomplete, "the request did not come to its end"})
			return
		}
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			d.refuse(w, r, Refusal{http.StatusInternalServerError, Unavailable, "the request cannot be answered"})
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		next.ServeHTTP(w, r)
	})
}

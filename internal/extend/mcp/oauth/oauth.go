// Package oauth signs in: to what tools need, and to MCP servers. It asks a person
// for consent where a server wants that, keeps what was granted to each subject,
// encrypted, renews it and gives it back. It never sends what was granted to one
// app to another, and no error holds a secret or a server's text as it came.
//
// Several programs may have a [Desk] in one folder: one at a time renews a grant,
// under a lock, and the others take what it got. A sign-in that waits is kept, and
// any of them may end it. Each has a goroutine, which listens for its browser or
// asks its server; [Desk.Close] ends them.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"dure/internal/base/keys"
)

// How long things take at most, and how much they say.
const (
	consentLimit = 30 * time.Minute // for a person to sign in
	askLimit     = 30 * time.Second // for one request to a server
	lockLimit    = 2 * time.Minute  // for others to be done with a grant
	defaultTTL   = 30 * time.Second // that a token must still be good for
	maxReply     = 1 << 20          // bytes of an answer of a server
	maxToken     = 16 << 10         // bytes of a token
	maxScopes    = 200
)

// Keys keeps the key with which grants are encrypted.
type Keys interface {
	Get(name string) (key string, place keys.Place, err error)
	Set(name, key string) (keys.Place, error)
}

// Config configures a [Desk].
type Config struct {
	Dir  string       // for grants; its owner's alone
	Keys Keys         // required
	HTTP *http.Client // for servers; nil = a plain one

	Now func() time.Time // nil = time.Now

	// Env returns a variable of the environment, Stored a secret of the user's,
	// for [Value]. nil = there are none.
	Env    func(name string) (string, bool)
	Stored func(name string) (string, error)

	// Granted hears of each sign-in that this Desk has given out, or ended itself,
	// and that came out well, once. It must return soon, and not use the Desk. nil =
	// nobody hears.
	Granted func(Granted)

	// Secret hears of each secret before anything is done with it, so that it can
	// be kept out of what is shown and stored. nil = nobody hears.
	Secret func(string)

	// Pages are what a browser shows after a sign-in; "" = English.
	Pages Pages
}

// Pages are sentences that a browser shows.
type Pages struct {
	Done, Failed, Unknown string
}

// Granted says that a person has agreed to a sign-in. It holds no secret.
type Granted struct {
	AuthSession string    `json:"authSessionId"`
	App         string    `json:"app"`
	Subject     string    `json:"subject,omitempty"`
	Scopes      []string  `json:"scopes,omitempty"`
	At          time.Time `json:"at"`
}

// Desk signs in. It is safe for concurrent use.
type Desk struct {
	cfg   Config
	store store
	fetch *http.Client // follows nothing

	ctx  context.Context // ends with the Desk
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	attended map[string]attendance // to sign-ins, by ID
	told     map[string]bool       // those that came out well; a person's work each, so they stay few
}

// New returns a Desk. It reads and writes nothing yet.
func New(c Config) (*Desk, error) {
	if c.Dir == "" || c.Keys == nil {
		return nil, errors.New("a desk for sign-ins needs a folder and a place for its key")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Secret == nil {
		c.Secret = func(string) {}
	}
	if c.Granted == nil {
		c.Granted = func(Granted) {}
	}
	c.Pages = c.Pages.orEnglish()
	client := http.Client{Timeout: askLimit}
	if c.HTTP != nil {
		client = *c.HTTP
		if client.Timeout == 0 || client.Timeout > askLimit {
			client.Timeout = askLimit
		}
	}
	client.Jar = nil
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d := &Desk{cfg: c, store: store{dir: c.Dir, keys: c.Keys}, fetch: &client, attended: map[string]attendance{}, told: map[string]bool{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d, nil
}

func (p Pages) orEnglish() Pages {
	if p.Done == "" {
		p.Done = "You are signed in. You can close this page and go back to dure."
	}
	if p.Failed == "" {
		p.Failed = "The sign-in did not come about. You can close this page; dure says what to do next."
	}
	if p.Unknown == "" {
		p.Unknown = "This page does not belong to a sign-in that is open."
	}
	return p
}

// Close stops listening and asking, and waits for what is under way. Sign-ins that
// are open stay so: [Desk.Resume] of a later Desk takes them up.
func (d *Desk) Close() {
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()
	d.wait.Wait()
}

// A Request asks for a token.
type Request struct {
	App     App
	Subject string   // who is acting; ignored by an app whose grants are for everyone
	Scopes  []string // nil = all of the app's

	// MinTTL is how long the token must still be good for; 0 = 30 s.
	MinTTL time.Duration

	// Refused is a token that the resource has not taken. It is not returned again.
	Refused Secret

	// Challenge is what the resource said with its refusal.
	Challenge Challenge

	quiet bool // open no sign-in
}

// Token returns a token that is good for a request, renewing it when it must. A
// person who has to agree first is part of the result: the sign-in is open then,
// and the same for everyone who asks for the same or less.
func (d *Desk) Token(ctx context.Context, r Request) Result {
	k, err := d.resolve(r.App, r.Subject)
	if err != nil {
		return failed(err)
	}
	want, err := r.App.wanted(r.Scopes)
	if err == nil && r.Challenge.Error == insufficientScope {
		want, err = r.App.wanted(union(want, r.Challenge.Scopes))
	}
	if err != nil {
		return failed(err)
	}
	if r.MinTTL <= 0 {
		r.MinTTL = defaultTTL
	}
	rec, err := d.read(k.id)
	if err != nil {
		return failed(err)
	}
	if t, ok := d.usable(rec, want, r); ok {
		return t
	}
	if r.quiet && rec.Grant == nil && r.App.Flow != ClientCredentials {
		return failed(errNone)
	}
	unlock, err := d.store.lock(ctx, k.id)
	if err != nil {
		return failed(err)
	}
	defer unlock()
	// Another program may have renewed it meanwhile.
	if rec, err = d.read(k.id); err != nil {
		return failed(err)
	}
	if t, ok := d.usable(rec, want, r); ok {
		return t
	}
	if r.App.Flow == ClientCredentials {
		return d.machine(ctx, k, rec, want, r)
	}
	if rec.Grant != nil && rec.Grant.Refresh != "" && covers(rec.Grant.Scopes, want) {
		fresh, err := d.refresh(ctx, k.id, rec)
		if err == nil {
			rec = fresh
			if t, ok := d.usable(rec, want, r); ok {
				return t
			}
			// The server grants less, or for a shorter time, than what is asked for.
			if covers(rec.Grant.Scopes, want) && rec.Grant.Access != r.Refused.Reveal() {
				return failed(&Error{Code: CodeShort, Message: fmt.Sprintf("tokens of %s are not good for %s", r.App.label(), r.MinTTL)})
			}
		} else if !over(err) {
			return failed(err)
		} else {
			rec.Grant = nil
			if isCode(err, CodeClient) {
				rec.Client = nil // who we were is forgotten there
			}
		}
	}
	if r.quiet {
		return failed(errNone)
	}
	return d.ask(ctx, k, rec, want, r)
}

const codeNone = "no_grant"

var errNone = &Error{Code: codeNone, Message: "nobody has signed in"}

// usable returns the token of a record, if it is good for a request.
func (d *Desk) usable(rec record, want []string, r Request) (Result, bool) {
	g := rec.Grant
	if g == nil || g.Access == "" || g.Access == r.Refused.Reveal() || !covers(g.Scopes, want) {
		return Result{}, false
	}
	if !g.Expires.IsZero() && g.Expires.Before(d.cfg.Now().Add(r.MinTTL)) {
		return Result{}, false
	}
	return Result{Ready: &Ready{AccessToken: Secret{g.Access}, TokenType: g.Type, ExpiresAt: g.Expires, Scopes: g.Scopes}}, true
}

// read reads a record, and makes its secrets known.
func (d *Desk) read(id string) (record, error) {
	rec, err := d.store.read(id)
	if err != nil {
		return record{}, err
	}
	for _, s := range rec.secrets() {
		d.cfg.Secret(s)
	}
	return rec, nil
}

// write writes a record, and makes its secrets known before.
func (d *Desk) write(id string, rec record) error {
	for _, s := range rec.secrets() {
		d.cfg.Secret(s)
	}
	return d.store.write(id, rec)
}

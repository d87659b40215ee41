package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dure/agent/query"
	"dure/internal/base/keys"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(rivalDir); dir != "" {
		rival(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// heard is what a Desk has told.
type heard struct {
	mu      sync.Mutex
	granted []Granted
	secrets map[string]bool
}

func (h *heard) grants() []Granted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.granted)
}

func desk(t *testing.T, w *world, dir string) (*Desk, *heard) {
	t.Helper()
	h := &heard{secrets: map[string]bool{}}
	d, err := New(Config{
		Dir: dir, Keys: keys.Store{Path: filepath.Join(dir, "credentials.json")}, Now: w.clock,
		Granted: func(g Granted) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.granted = append(h.granted, g)
		},
		Secret: func(s string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.secrets[s] = true
		},
		Env: func(name string) (string, bool) { return "machine-secret", name == "MACHINE" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return d, h
}

func (w *world) app() App {
	return App{
		Name: "box", Provider: "Box", ClientID: Value{Text: "dure-client"}, Scopes: []string{"read", "write"},
		Endpoints: Endpoints{Authorization: w.URL + "/authorize", Token: w.URL + "/token", Device: w.URL + "/device", Revocation: w.URL + "/revoke"},
	}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// browse opens an address as a browser does, and returns the last status and text.
func browse(t *testing.T, address string) (int, string) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// redirected returns where a browser would be sent, without going there.
func redirected(t *testing.T, address string) string {
	t.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.Header.Get("Location")
}

func ready(t *testing.T, r Result) Ready {
	t.Helper()
	if r.Ready == nil {
		t.Fatalf("not ready: %+v, %v", r.Required, r.Error)
	}
	return *r.Ready
}

func required(t *testing.T, r Result) query.SignInRequired {
	t.Helper()
	if r.Required == nil {
		t.Fatalf("nobody is asked: %v, %v", r.Ready, r.Error)
	}
	return *r.Required
}

func refused(t *testing.T, r Result, code string) {
	t.Helper()
	if r.Error == nil || r.Error.Code != code {
		t.Fatalf("no %s: %v, %+v, %v", code, r.Ready, r.Required, r.Error)
	}
}

// signIn goes through a sign-in with a browser.
func signIn(t *testing.T, d *Desk, r Request) Ready {
	t.Helper()
	q := required(t, d.Token(limited(t), r))
	if status, text := browse(t, q.URL); status != http.StatusOK || !strings.Contains(text, "signed in") {
		t.Fatalf("the browser shows %d %q", status, text)
	}
	if _, err := d.Await(limited(t), q.AuthSession); err != nil {
		t.Fatal(err)
	}
	return ready(t, d.Token(limited(t), r))
}

// The whole round: nobody has signed in, a person does in a browser, the token is
// renewed with a new refresh token each time, and given back at the end.
func TestRound(t *testing.T) {
	w := newWorld(t)
	d, h := desk(t, w, t.TempDir())
	r := Request{App: w.app(), Scopes: []string{"read"}}

	q := required(t, d.Token(limited(t), r))
	if again := required(t, d.Token(limited(t), r)); again.AuthSession != q.AuthSession || again.URL != q.URL || !again.ExpiresAt.Equal(q.ExpiresAt) {
		t.Errorf("a second sign-in for the same: %+v, %+v", q, again)
	}
	if status, _ := browse(t, q.URL); status != http.StatusOK {
		t.Fatalf("the browser shows %d", status)
	}
	g, err := d.Await(limited(t), q.AuthSession)
	if err != nil || g.App != "box" || !slices.Equal(g.Scopes, []string{"read"}) {
		t.Fatalf("%+v, %v", g, err)
	}
	first := ready(t, d.Token(limited(t), r))
	if first.TokenType != "Bearer" || !first.ExpiresAt.Equal(w.clock().Add(time.Hour)) {
		t.Errorf("%+v", first)
	}
	if again := ready(t, d.Token(limited(t), r)); again.AccessToken != first.AccessToken || w.renewals != 0 {
		t.Error("a good token was renewed")
	}

	for i := range 3 {
		w.later(time.Hour)
		if now := ready(t, d.Token(limited(t), r)); now.AccessToken == first.AccessToken || w.renewals != i+1 {
			t.Errorf("renewal %d: %d", i, w.renewals)
		}
	}
	if w.stolen != 0 || w.logins != 1 {
		t.Errorf("%d refresh tokens came twice, %d sign-ins", w.stolen, w.logins)
	}

	// A token that ends soon is not good for long.
	w.later(50 * time.Minute)
	r.MinTTL = 15 * time.Minute
	if ready(t, d.Token(limited(t), r)); w.renewals != 4 {
		t.Error("a token was good for less than it had to be")
	}
	r.MinTTL = 2 * time.Hour
	refused(t, d.Token(limited(t), r), CodeShort)
	r.MinTTL = 0

	if err := d.SignOut(limited(t), r.App, ""); err != nil {
		t.Fatal(err)
	}
	if len(w.revoked) != 2 || len(w.refresh) != 0 {
		t.Errorf("given back: %d, still good: %d", len(w.revoked), len(w.refresh))
	}
	required(t, d.Token(limited(t), r))

	for _, s := range w.secrets() {
		if strings.HasPrefix(s, "code-") {
			continue
		}
		if !h.secrets[s] {
			t.Errorf("a %.7s was never made known", s)
		}
	}
	if got := h.grants(); len(got) != 1 || got[0].AuthSession != q.AuthSession {
		t.Errorf("told: %+v", got)
	}
}

// Of an answer without the right state nothing comes, and the person can still
// agree.
func TestWrongState(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	q := required(t, d.Token(limited(t), Request{App: w.app()}))
	u, err := url.Parse(redirected(t, q.URL))
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"", "guessed", u.Query().Get("state") + "x"} {
		wrong := *u
		v := wrong.Query()
		v.Set("state", state)
		v.Set("error", "access_denied") // a guess must not end it either
		wrong.RawQuery = v.Encode()
		if status, _ := browse(t, wrong.String()); status != http.StatusBadRequest {
			t.Errorf("state %q: %d", state, status)
		}
		if err := finish(t, d, q.AuthSession, wrong.String()); !isCode(err, CodeState) {
			t.Errorf("state %q: %v", state, err)
		}
	}
	if len(w.forms) != 0 {
		t.Error("a code was used")
	}
	if status, _ := browse(t, u.String()); status != http.StatusOK {
		t.Errorf("the right state: %d", status)
	}
	if err := finish(t, d, q.AuthSession, u.String()); !isCode(err, CodeState) {
		t.Errorf("twice: %v", err)
	}
}

func TestExpiredCode(t *testing.T) {
	w := newWorld(t)
	d, h := desk(t, w, t.TempDir())
	q := required(t, d.Token(limited(t), Request{App: w.app()}))
	back := redirected(t, q.URL)
	w.later(2 * time.Minute)
	status, text := browse(t, back)
	if status != http.StatusBadGateway {
		t.Errorf("the browser shows %d %q", status, text)
	}
	_, err := d.Await(limited(t), q.AuthSession)
	if !isCode(err, CodeGrant) {
		t.Fatal(err)
	}
	for _, s := range w.secrets() { // the server repeats the code in its answer
		if strings.Contains(err.Error(), s) || strings.Contains(text, s) {
			t.Errorf("a secret shows: %v", err)
		}
	}
	next := required(t, d.Token(limited(t), Request{App: w.app()}))
	if next.AuthSession == q.AuthSession {
		t.Error("a sign-in that is over is offered again")
	}
	if len(h.grants()) != 0 {
		t.Error("a grant was told that is none")
	}
}

func TestNobodyAgrees(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	q := required(t, d.Token(limited(t), Request{App: w.app()}))
	back := redirected(t, q.URL)
	w.later(consentLimit)
	if err := finish(t, d, q.AuthSession, back); !isCode(err, CodeExpired) {
		t.Error(err)
	}
	if _, err := d.Await(limited(t), q.AuthSession); !isCode(err, CodeExpired) {
		t.Error(err)
	}
	q = required(t, d.Token(limited(t), Request{App: w.app()}))
	u, err := url.Parse(redirected(t, q.URL))
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"state": {u.Query().Get("state")}, "error": {"access_denied"}, "error_description": {"no\x1b[2J\nway"}}.Encode()
	browse(t, u.String())
	if _, err := d.Await(limited(t), q.AuthSession); !isCode(err, CodeDenied) || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("%q", err)
	}
}

// finish ends a sign-in with an address, whatever that says of its state.
func finish(t *testing.T, d *Desk, session, redirected string) error {
	t.Helper()
	u, err := url.Parse(redirected)
	if err != nil {
		t.Fatal(err)
	}
	return d.finish(limited(t), session, u.Query())
}

// A sign-in that waits outlives the program; another listens for the browser, or
// takes what the person has copied from it.
func TestRestart(t *testing.T) {
	for _, copied := range []bool{false, true} {
		t.Run(fmt.Sprintf("copied=%v", copied), func(t *testing.T) {
			w := newWorld(t)
			dir := t.TempDir()
			d, _ := desk(t, w, dir)
			q := required(t, d.Token(limited(t), Request{App: w.app()}))
			d.Close()
			back := redirected(t, q.URL)
			d, h := desk(t, w, dir)
			if copied {
				if err := d.Answer(limited(t), " "+back+"\n"); err != nil {
					t.Fatal(err)
				}
			} else {
				required(t, d.Token(limited(t), Request{App: w.app()}))
				if status, _ := browse(t, back); status != http.StatusOK {
					t.Fatalf("the browser shows %d", status)
				}
			}
			if _, err := d.Await(limited(t), q.AuthSession); err != nil {
				t.Fatal(err)
			}
			ready(t, d.Token(limited(t), Request{App: w.app()}))
			d.Close()
			if !copied && len(h.grants()) != 1 {
				t.Errorf("told: %v", h.grants())
			}
		})
	}
}

// Grants are each subject's own, and each app's: one of the same name that sends
// secrets elsewhere has no part in them.
func TestWhoseGrants(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	app := w.app()
	app.Subjects = User
	refused(t, d.Token(limited(t), Request{App: app}), CodeApp)
	ann := signIn(t, d, Request{App: app, Subject: "ann"})
	required(t, d.Token(limited(t), Request{App: app, Subject: "bob"}))
	elsewhere := app
	elsewhere.Endpoints.Token = w.URL + "/steal"
	required(t, d.Token(limited(t), Request{App: elsewhere, Subject: "ann"}))
	if again := ready(t, d.Token(limited(t), Request{App: app, Subject: "ann"})); again.AccessToken != ann.AccessToken {
		t.Error("ann has another token")
	}
	if all, err := d.store.list(); err != nil || len(all) != 3 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestMoreScopes(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	signIn(t, d, Request{App: w.app(), Scopes: []string{"read"}})
	more := Request{App: w.app(), Scopes: []string{"write"}}
	q := required(t, d.Token(limited(t), more))
	if u, _ := url.Parse(q.URL); u.Query().Get("scope") != "write read" {
		t.Errorf("asks for %q", u.Query().Get("scope"))
	}
	ready(t, d.Token(limited(t), Request{App: w.app(), Scopes: []string{"read"}})) // still
	browse(t, q.URL)
	both := ready(t, d.Token(limited(t), more))
	if !covers(both.Scopes, []string{"read", "write"}) {
		t.Error(both.Scopes)
	}
	refused(t, d.Token(limited(t), Request{App: w.app(), Scopes: []string{"admin"}}), CodeScope)
}

// A server that does not answer costs no grant; one that knows the grant no more
// has a person asked.
func TestRenewalFails(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	r := Request{App: w.app()}
	signIn(t, d, r)
	w.later(time.Hour)
	w.down = 1
	refused(t, d.Token(limited(t), r), CodeNetwork)
	ready(t, d.Token(limited(t), r))
	clear(w.refresh)
	w.later(time.Hour)
	required(t, d.Token(limited(t), r))
}

func TestRevocationFails(t *testing.T) {
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	r := Request{App: w.app()}
	signIn(t, d, r)
	w.down = 1
	if err := d.SignOut(limited(t), r.App, ""); !isCode(err, CodeRevoke) {
		t.Error(err)
	}
	required(t, d.Token(limited(t), r))
}

func TestDevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, h := desk(t, w, t.TempDir())
	app := w.app()
	app.Flow = DeviceCode
	q := required(t, d.Token(limited(t), Request{App: app}))
	if q.UserCode != "ABCD-EFGH" || q.URL != w.URL+"/verify" || q.ExpiresAt.Sub(w.clock()) != 10*time.Minute {
		t.Errorf("%+v", q)
	}
	w.mu.Lock()
	for _, dev := range w.devices {
		dev.agreed = true
	}
	w.mu.Unlock()
	if _, err := d.Await(limited(t), q.AuthSession); err != nil {
		t.Fatal(err)
	}
	ready(t, d.Token(limited(t), Request{App: app}))
	if err := finish(t, d, q.AuthSession, "http://127.0.0.1/callback?state=&code=x"); !isCode(err, CodeState) {
		t.Errorf("a browser ends what has none: %v", err)
	}
	d.Close()
	if len(h.grants()) != 1 {
		t.Error("nobody was told")
	}
}

func TestDeviceDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, _ := desk(t, w, t.TempDir())
	app := w.app()
	app.Flow = DeviceCode
	q := required(t, d.Token(limited(t), Request{App: app}))
	w.mu.Lock()
	for _, dev := range w.devices {
		dev.refused = true
	}
	w.mu.Unlock()
	if _, err := d.Await(limited(t), q.AuthSession); !isCode(err, CodeDenied) {
		t.Error(err)
	}
}

func TestClientCredentials(t *testing.T) {
	for _, methods := range [][]string{nil, {methodPost}, {methodBasic, methodPost}} {
		w := newWorld(t)
		d, _ := desk(t, w, t.TempDir())
		app := w.app()
		app.Flow, app.ClientSecret = ClientCredentials, Value{Env: "MACHINE"}
		app.Endpoints, app.Issuer = Endpoints{}, w.URL
		w.methods = methods
		r := Request{App: app, Scopes: []string{"read"}}
		first := ready(t, d.Token(limited(t), r))
		if again := ready(t, d.Token(limited(t), r)); again.AccessToken != first.AccessToken {
			t.Error("a good token was not kept")
		}
		w.later(time.Hour)
		if again := ready(t, d.Token(limited(t), r)); again.AccessToken == first.AccessToken {
			t.Error("an old token is given out")
		}
		basic := w.forms[0].Get("basic") != ""
		if basic != (methods == nil || slices.Contains(methods, methodBasic)) {
			t.Errorf("%v: the secret was told in another way", methods)
		}
		app.ClientSecret = Value{Text: "wrong"}
		app.Name = "other"
		refused(t, d.Token(limited(t), Request{App: app}), CodeClient)
		app.ClientSecret = Value{Env: "NOWHERE"}
		refused(t, d.Token(limited(t), Request{App: app}), CodeApp)
	}
}

// Nothing that is kept or shown has a secret in it.
func TestNoSecretShows(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	d, _ := desk(t, w, dir)
	r := Request{App: w.app()}
	q := required(t, d.Token(limited(t), r))
	waiting := d.Token(limited(t), r)
	browse(t, q.URL)
	got := d.Token(limited(t), r)
	ready(t, got)
	js, err := json.Marshal([]any{got, waiting, waiting.Refusal(), got.Refusal()})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %x", *got.Ready, *got.Ready, *got.Ready, got.Ready.AccessToken, got.Ready.AccessToken, got.Ready.AccessToken) + string(js)
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		shown += string(data)
		info, _ := e.Info()
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: others can read it: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range w.secrets() {
		if strings.Contains(shown, s) {
			t.Errorf("a %.7s shows", s)
		}
	}
	if !strings.Contains(string(js), `"status":"authorization_required","authSessionId":"`+q.AuthSession) || !strings.Contains(string(js), `"status":"ready"`) {
		t.Errorf("%s", js)
	}
}

// A file that was changed, put in the place of another, or opened to others is not
// used; and a key that cannot be had is not replaced.
func TestStoreFailsClosed(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	d, _ := desk(t, w, dir)
	r := Request{App: w.app()}
	signIn(t, d, r)
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	try := func(name string, data []byte, mode os.FileMode) {
		if err := os.WriteFile(files[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(files[0], mode); err != nil {
			t.Fatal(err)
		}
		if got := d.Token(limited(t), r); (got.Error == nil || got.Error.Code != CodeStore) && name != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if err := os.Chmod(files[0], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := bytes.Clone(good)
	changed[len(changed)-20] ^= 1
	try("changed", changed, 0o600)
	try("cut", good[:10], 0o600)
	try("empty", nil, 0o600)
	if runtime.GOOS != "windows" {
		try("open to others", good, 0o644)
	}
	try("", good, 0o600)

	other := w.app()
	other.Name = "other"
	k, err := d.resolve(other, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.store.path(k.id), good, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, d.Token(limited(t), Request{App: other}), CodeStore)

	if err := os.Remove(filepath.Join(dir, "credentials.json")); err != nil {
		t.Fatal(err)
	}
	d, _ = desk(t, w, dir)
	refused(t, d.Token(limited(t), r), CodeStore)
	third := w.app()
	third.Name = "third"
	refused(t, d.Token(limited(t), Request{App: third}), CodeStore)
	if _, err := os.Stat(filepath.Join(dir, "credentials.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a new key was made, with which no grant can be read")
	}
}

//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// signInPlace is a server that wants a person to sign in, and where they do. Shown counts the
// requests with the token that it gives.
func signInPlace(t *testing.T) (address string, revoked, shown func() int) {
	n, tokens := 0, atomic.Int64{}
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	say := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer access-of-the-person" {
			tokens.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/about"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/about", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "revocation_endpoint": s.URL + "/revoke",
			"registration_endpoint": s.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) { say(w, map[string]any{"client_id": "we"}) })
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=the-code-of-it&state="+q.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"access_token": "access-of-the-person", "refresh_token": "refresh-of-the-person", "expires_in": 3600, "token_type": "Bearer"})
	})
	mux.HandleFunc("/revoke", func(http.ResponseWriter, *http.Request) { n++ })
	return s.URL + "/mcp", func() int { return n }, func() int { return int(tokens.Load()) }
}

// A person signs in to a server that is named in the settings, here or with what a
// browser elsewhere has shown, and out again. What the server gave is masked from
// then on.
func TestSignInToServer(t *testing.T) {
	t.Parallel()
	address, revoked, _ := signInPlace(t)
	w := newWorld(t, script.Script{}, script.Options{})
	for _, elsewhere := range []bool{false, true} {
		a := w.plain()
		if _, err := client.Query[query.ServerChange](t.Context(), a.Client(), query.AddServer{Scope: "local", Server: "notes", Definition: json.RawMessage(`{"type":"http","url":"` + address + `"}`)}); err != nil && !elsewhere {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		asked := 0
		show := func(q query.SignInState) error {
			asked++
			if q.Status != "authorization_required" {
				t.Errorf("%+v", q)
			}
			if elsewhere {
				return answerSignIn(ctx, a, "notes", follow(t, q.URL))
			}
			resp, err := http.Get(q.URL)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
		for range 2 {
			if err := signIn(ctx, a, "notes", show); err != nil {
				t.Fatal(err)
			}
		}
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		if got := a.Masked("it is access-of-the-person"); strings.Contains(got, "access-of") {
			t.Error(got)
		}
		if err := signOut(ctx, a, "notes"); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(a.Config().Data, "grants", "*"))
		if err != nil || len(files) == 0 {
			t.Error(files, err)
		}
		for _, f := range files {
			if data, err := os.ReadFile(f); err != nil || strings.Contains(string(data), "person") {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	if revoked() != 4 {
		t.Errorf("given back: %d", revoked())
	}
	http.DefaultClient.CloseIdleConnections()
}

// signIn signs in to a server; show sees what a person has to do.
func signIn(ctx context.Context, a *app.App, name string, show func(query.SignInState) error) error {
	s, err := client.Query[query.SignInState](ctx, a.Client(), query.SignIn{Server: name})
	if err != nil || s.SignInRequired == nil {
		return err
	}
	if err := show(s); err != nil {
		return err
	}
	_, err = client.Query[query.SignInState](ctx, a.Client(), query.SignIn{Server: name, Await: s.AuthSession})
	return err
}

func answerSignIn(ctx context.Context, a *app.App, name, address string) error {
	_, err := client.Query[query.SignInState](ctx, a.Client(), query.SignIn{Server: name, Answer: address})
	return err
}

func signOut(ctx context.Context, a *app.App, name string) error {
	_, err := client.Query[query.SignInState](ctx, a.Client(), query.SignOut{Server: name})
	return err
}

// follow returns where an address sends a browser.
func follow(t *testing.T, address string) string {
	t.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	u, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return u.String()
}

// A server of a type of agents is shown the token of the person who has signed in to it, by
// the name that it has in lists; another one of its name and address is shown none.
func TestSignInToServerOfAgent(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"agent:reader:notes": true, "notes": false} {
		t.Run(name, func(t *testing.T) {
			address, _, shown := signInPlace(t)
			w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Done.", Stop: agent.StopEnd} }})
			w.file(filepath.Join(w.home, "dure", "agents", "reader.md"), "---\nname: reader\ndescription: Reads.\nmcpServers:\n  notes:\n    type: http\n    url: "+address+"\n---\nYou read.\n")
			a := w.plain()
			if _, err := client.Query[query.ServerChange](t.Context(), a.Client(), query.AddServer{Scope: "local", Server: "notes", Definition: json.RawMessage(`{"type":"http","url":"` + address + `"}`)}); err != nil {
				t.Fatal(err)
			}
			if err := signIn(t.Context(), a, name, func(q query.SignInState) error { return answerSignIn(t.Context(), a, name, follow(t, q.URL)) }); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Query[query.ServerInfo](t.Context(), a.Client(), query.ChangeServer{Server: "notes", Do: query.ServerDisable}); err != nil {
				t.Fatal(err)
			}
			w.talkTo(w.plain(), agent.Open{Agent: "reader"}).turn("Hello")
			if got := shown() > 0; got != want {
				t.Errorf("it was shown the token: %v", got)
			}
		})
	}
}

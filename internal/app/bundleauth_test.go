//go:build unix

package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app"
	"dure/internal/extend/bundle/inbound"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/models/script"
)

// office signs people in, and has a tool that works for nobody else.
type office struct {
	*httptest.Server
	mu     sync.Mutex
	tokens int
	bad    map[string]bool // tokens that are not taken any more
	calls  []string        // what the tool was called with: its input, and who is meant
	bodies []string
}

func newOffice(t *testing.T) *office {
	o := &office{bad: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/authorize", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, o.redirected(r.URL.String()), http.StatusFound)
	})
	mux.HandleFunc("/token", func(rw http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.tokens++
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"access_token": "very-secret-%d", "refresh_token": "also-secret-%d", "token_type": "bearer", "expires_in": 3600, "scope": "write"}`, o.tokens, o.tokens)
	})
	mux.HandleFunc("/tool", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		by := r.Header.Get("Authorization")
		o.mu.Lock()
		defer o.mu.Unlock()
		o.bodies = append(o.bodies, string(body))
		if !strings.HasPrefix(by, "Bearer very-secret-") || o.bad[by] {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		o.calls = append(o.calls, by)
		fmt.Fprintf(rw, `"posted as %s"`, by)
	})
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// bundle writes a bundle whose agent posts with the tool of the office.
func (o *office) bundle(w *world, subjects, more string) string {
	dir := filepath.Join(w.work, "desk")
	text := `
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: fast }
spec: { provider: anthropic, model: script }
---
apiVersion: agents.example.io/v1alpha1
kind: OAuthApp
metadata: { name: box }
spec:
  provider: The box
  flow: authorizationCode
  subjectMode: ` + subjects + `
  client: { clientId: desk }
  endpoints: { authorizationUrl: "` + o.URL + `/authorize", tokenUrl: "` + o.URL + `/token" }
  scopes: [read, write]
---
apiVersion: agents.example.io/v1alpha1
kind: Tool
metadata: { name: box }
spec:
  runtime: http
  entry: ` + o.URL + `/tool
  auth: { oauthAppRef: { kind: OAuthApp, name: box }, scopes: [write] }
  exports: [{ name: post, parameters: { type: object } }]
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast }, tools: [Tool/box` + more + `] }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: desk }
spec: { entryAgent: Agent/clerk, agents: [Agent/clerk] }
`
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "goondan.yaml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// swarm returns a program that runs the swarm of a bundle.
func (w *world) swarm(dir string, f app.Flags) (*app.App, swarms.Run) {
	w.t.Helper()
	first := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	trustFolder(w.t, first, dir)
	run, err := first.Bundles.Prepare(dir, "")
	if err != nil || !run.Info.OK {
		w.t.Fatalf("%v: %+v", err, run.Info.Problems)
	}
	f.Agents, f.Code = run.Agents, run.Code
	return w.program(options(w.work, w.home, w.model.URL(), f)), run
}

// agree does what a person does who is sent to an address.
func agree(t *testing.T, address string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", address, resp.Status)
	}
}

// redirected is where the office sends a person to who agrees.
func (o *office) redirected(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return err.Error()
	}
	q := u.Query()
	return q.Get("redirect_uri") + "?" + url.Values{"state": {q.Get("state")}, "code": {"c"}}.Encode()
}

// wantedOf is where a call wants somebody to sign in.
func wantedOf(t *testing.T, r agent.Result) (url string) {
	t.Helper()
	var out struct{ Status, AuthorizationURL string }
	if err := json.Unmarshal(r.Output, &out); err != nil || out.Status != "authorization_required" || r.Error == nil || r.Error.Code != agent.ErrOAuthRequired {
		t.Fatalf("%+v %s: %v", r, r.Output, err)
	}
	return out.AuthorizationURL
}

var posting = script.Script{Replies: []script.Reply{
	{When: "posted as", Text: "It is posted."},
	{When: "has signed in", Calls: []script.Call{{ID: "c2", Tool: "box__post", Input: json.RawMessage(`{"n": 2}`)}}},
	{When: "wants you to sign in", Text: "Please sign in."},
	{When: "Post", Calls: []script.Call{{ID: "c1", Tool: "box__post", Input: json.RawMessage(`{"n": 1}`)}}},
}}

// noSecrets reports secrets that the log of a session, or a request to the model, has.
func (w *world) noSecrets(events []agent.Event) {
	w.t.Helper()
	data, err := json.Marshal(events)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range w.model.Requests() {
		data = append(data, r.Body...)
	}
	for _, s := range []string{"very-secret", "also-secret"} {
		if strings.Contains(string(data), s) {
			w.t.Errorf("%s is in the log of the session, or was told to the model", s)
		}
	}
}

// A tool of a bundle that needs a sign-in says so, waits for it over the end of the program, and
// works for its person then; the token reaches its request, and nothing else.
func TestBundleToolWaitsForASignIn(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"in the same program", "in the next program", "between them"} {
		t.Run(when, func(t *testing.T) {
			w, o := newWorld(t, posting, script.Options{}), newOffice(t)
			dir := o.bundle(w, "user", "")
			a, run := w.swarm(dir, app.Flags{Skip: true})
			k := w.talkTo(a, agent.Open{Agent: run.Entry})
			k.turn("Post it.")
			first := all[agent.CallFinished](k.seen)[0].Result
			where := wantedOf(t, first)
			if first.Status != agent.StatusPending || len(o.calls) > 0 {
				t.Fatalf("%+v, %v", first, o.calls)
			}
			id := k.Info.ID
			if when != "in the same program" {
				if err := a.Close(); err != nil {
					t.Fatal(err)
				}
				var other *app.App
				other, _ = w.swarm(dir, app.Flags{Skip: true})
				if when == "between them" {
					if err := answerSignIn(t.Context(), other, "box", o.redirected(where)); err != nil {
						t.Fatal(err)
					}
				}
				k = w.talkTo(other, agent.Open{Session: id, Agent: run.Entry})
				if s := all[agent.CallSettled](k.seen); len(s) > 0 && when == "in the next program" {
					t.Fatalf("a sign-in that can still come was given up: %+v", s)
				}
			}
			if when != "between them" {
				agree(t, where)
			}
			if len(all[agent.AuthGranted](k.seen)) == 0 {
				k.until("the grant", func(e agent.Event) bool { _, ok := e.Body.(agent.AuthGranted); return ok })
			}
			k.until("the end", func(e agent.Event) bool { _, ok := e.Body.(agent.TurnEnded); return ok })
			if s := all[agent.CallSettled](k.seen); len(s) != 1 || s[0].Lost || s[0].Result.Failed() {
				t.Errorf("%+v", s)
			}
			if fmt.Sprint(o.calls) != "[Bearer very-secret-1]" {
				t.Error(o.calls)
			}
			if strings.Contains(strings.Join(o.bodies, ""), "secret") {
				t.Error(o.bodies)
			}
			w.noSecrets(k.seen)
			for _, problem := range verified(t.Context(), k.Client, id) {
				t.Error(problem)
			}
		})
	}
}

// A token that the tool does not take is changed for another one, once.
func TestBundleToolWithAnotherToken(t *testing.T) {
	t.Parallel()
	w, o := newWorld(t, posting, script.Options{}), newOffice(t)
	a, run := w.swarm(o.bundle(w, "global", ""), app.Flags{Skip: true})
	k := w.talkTo(a, agent.Open{Agent: run.Entry})
	k.turn("Post it.")
	agree(t, wantedOf(t, all[agent.CallFinished](k.seen)[0].Result))
	k.until("the grant", func(e agent.Event) bool { _, ok := e.Body.(agent.AuthGranted); return ok })
	k.until("the end", func(e agent.Event) bool { _, ok := e.Body.(agent.TurnEnded); return ok })
	o.mu.Lock()
	o.bad["Bearer very-secret-1"] = true
	o.mu.Unlock()
	other := w.talkTo(a, agent.Open{Agent: run.Entry})
	other.turn("Post it.")
	if got := all[agent.CallFinished](other.seen)[0].Result; got.Failed() || fmt.Sprint(o.calls) != "[Bearer very-secret-1 Bearer very-secret-2]" {
		t.Errorf("%+v, %v", got, o.calls)
	}
	w.noSecrets(append(k.seen, other.seen...))
}

// Who types is told where to sign in, and what came of it when they have.
func TestBundleTerminalSignsIn(t *testing.T) {
	t.Parallel()
	w, o := newWorld(t, posting, script.Options{}), newOffice(t)
	dir := o.bundle(w, "user", "")
	a, run := w.swarm(dir, app.Flags{Skip: true})
	in, typed := io.Pipe()
	said, out := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- a.Bundles.Serve(ctx, dir, "", run, swarms.IO{
			In: in, Out: out, Note: func(query.BundleNote) {},
			SignIn: func(s inbound.SignIn) string { return "OPEN " + s.URL },
		})
	}()
	lines := bufio.NewScanner(said)
	fmt.Fprintln(typed, "Post it.")
	for lines.Scan() {
		if where, ok := strings.CutPrefix(lines.Text(), "OPEN "); ok {
			agree(t, where)
			break
		}
	}
	if !lines.Scan() || lines.Text() != "It is posted." {
		t.Errorf("%q %v", lines.Text(), lines.Err())
	}
	typed.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A person can sign in for the tools of a bundle before anything of it runs, with a folder that
// they trust; what nobody signs in for is not signed in to.
func TestSignInForABundle(t *testing.T) {
	t.Parallel()
	w, o := newWorld(t, posting, script.Options{}), newOffice(t)
	dir := o.bundle(w, "user", "")
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	shown := 0
	agreeing := func(q query.SignInState) error {
		shown++
		agree(t, q.URL)
		return nil
	}
	if err := a.Bundles.SignIn(t.Context(), dir, "", agreeing); err == nil || !strings.Contains(err.Error(), "not trusted") {
		t.Error(err)
	}
	trustFolder(t, a, dir)
	if err := a.Bundles.SignIn(t.Context(), dir, "other", agreeing); err == nil || shown > 0 {
		t.Error(err, shown)
	}
	for range 2 { // the second time there is nothing to do
		if err := a.Bundles.SignIn(t.Context(), dir, "box", agreeing); err != nil {
			t.Fatal(err)
		}
	}
	b, run := w.swarm(dir, app.Flags{Skip: true})
	k := w.talkTo(b, agent.Open{Agent: run.Entry})
	k.turn("Post it.")
	if fmt.Sprint(o.calls) != "[Bearer very-secret-1]" || shown != 1 {
		t.Error(o.calls, shown)
	}
	w.noSecrets(k.seen)
}

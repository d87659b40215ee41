package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/auth"
)

// Users see and use sessions of their own; those of others are not there for them, nor is
// what is for whoever runs the server.
func TestUsersAreApart(t *testing.T) {
	users := auth.OpenUsers(filepath.Join(t.TempDir(), "users.json"))
	tokens := map[string]string{"": secret}
	for name, scope := range map[string]auth.Scope{"ann": auth.Write, "bob": auth.Write, "eve": auth.Read, "root": auth.Admin, "prom": auth.Metrics} {
		token, err := users.Add(name, scope, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = token
	}
	l := newLogs()
	work := t.TempDir()
	s, err := New(Config{Client: client.New(client.Share(l)), Token: secret, Users: users, Version: "1", Workdir: work, Routes: []Route{
		{Method: http.MethodGet, Path: "/others", Serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	ask := func(who, method, path, body string) (int, []byte) {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+tokens[who])
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{httptest.NewRecorder()}
		s.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.Bytes()
	}
	do := func(who, method, path, body string) int {
		status, _ := ask(who, method, path, body)
		return status
	}
	if got := do("ann", http.MethodPost, "/v1/sessions", `{}`); got != http.StatusCreated {
		t.Fatalf("opening: %d", got)
	}
	sent := l.of["s1"].came
	change, ok := sent[len(sent)-1].(agent.Change)
	if !ok || change.Tags == nil || (*change.Tags)[0] != "user:ann" {
		t.Fatalf("the session is nobody's: %+v", sent)
	}
	if got := do("bob", http.MethodPost, "/v1/sessions", `{"scratch":true,"schema":{},"at":0}`); got != http.StatusCreated {
		t.Fatalf("opening: %d", got)
	}
	l.mu.Lock()
	l.of["c1"], l.of["c2"] = &log{parent: "s1"}, &log{parent: "c1"} // agents of ann
	l.of["t1"] = &log{tags: []string{"user:an", "user:annie", "xuser:ann"}}
	l.mu.Unlock()
	for _, tt := range []struct {
		who, method, path, body string
		want                    int
	}{
		{"", "GET", "/v1/sessions/s1", "", 200},
		{"", "GET", "/v1/sessions/s2", "", 200},
		{"", "GET", "/v1/sessions/t1", "", 200},
		{"root", "GET", "/v1/sessions/s1", "", 200},
		{"root", "GET", "/v1/sessions/s2", "", 200},
		{"root", "POST", "/v1/queries/system", "{}", 200},
		{"ann", "GET", "/v1/sessions/s1", "", 200},
		{"ann", "GET", "/v1/sessions/c1", "", 200},
		{"ann", "GET", "/v1/sessions/c2/events?follow=false", "", 200},
		{"ann", "GET", "/v1/sessions/s1/events?follow=false", "", 200},
		{"ann", "GET", "/v1/sessions/s1/diff", "", 200},
		{"ann", "POST", "/v1/sessions/s1/commands/prompt", `{"text":"x"}`, 200},
		{"ann", "POST", "/v1/queries/session", `{"name":"s1"}`, 200},
		{"ann", "POST", "/v1/queries/context", `{"session":"s1"}`, 200},
		{"ann", "POST", "/v1/queries/context", `{"session":"s2"}`, 404},
		{"ann", "POST", "/v1/queries/context", `{}`, 403},
		{"ann", "POST", "/v1/queries/commands", `{"session":"s1","workdir":"/"}`, 403},
		{"ann", "POST", "/v1/queries/models", `{"local":true}`, 200},
		{"ann", "POST", "/v1/queries/system", `{}`, 403},
		{"ann", "GET", "/v1/sessions/s2", "", 404},
		{"ann", "GET", "/v1/sessions/t1", "", 404},
		{"bob", "GET", "/v1/sessions/s2", "", 200},
		{"bob", "GET", "/v1/sessions/c2", "", 404},
		{"bob", "GET", "/v1/sessions/s1", "", 404},
		{"bob", "GET", "/v1/sessions/s1/events?follow=false", "", 404},
		{"bob", "POST", "/v1/sessions/s1/commands/prompt", `{"text":"x"}`, 404},
		{"bob", "POST", "/v1/sessions/s1/close", `{}`, 404},
		{"bob", "POST", "/v1/sessions/s1/fork", `{}`, 404},
		{"bob", "POST", "/v1/sessions", `{"session":"s1"}`, 404},
		{"bob", "DELETE", "/v1/sessions/s1", "", 404},
		{"bob", "POST", "/v1/queries/session", `{"name":"s1"}`, 404},
		{"bob", "POST", "/v1/queries/context", `{"session":"s1"}`, 404},
		{"bob", "POST", "/v1/queries/usage", `{}`, 403},
		{"bob", "POST", "/v1/queries/decisions", `{}`, 403},
		{"bob", "POST", "/v1/sessions", `{"mode":"bypassPermissions"}`, 403},
		{"bob", "POST", "/v1/sessions", `{"workdir":"/"}`, 403},
		{"bob", "POST", "/v1/sessions", `{"takeover":true}`, 403},
		{"bob", "GET", "/others", "", 403},
		{"", "GET", "/others", "", 204},
		{"eve", "POST", "/v1/sessions", `{}`, 403},
		{"eve", "GET", "/v1/about", "", 200},
		{"prom", "GET", "/v1/about", "", 403},
		{"prom", "GET", "/v1/sessions", "", 403},
	} {
		if got := do(tt.who, tt.method, tt.path, tt.body); got != tt.want {
			t.Errorf("%q %s %s %s: %d, want %d", tt.who, tt.method, tt.path, tt.body, got, tt.want)
		}
	}
	for _, body := range []string{`{"name":"s"}`, `{"name":"the title"}`, `{"workdir":"/w"}`} {
		if status, data := ask("bob", http.MethodPost, "/v1/queries/session", body); status != http.StatusNotFound || strings.Contains(string(data), "s1") {
			t.Errorf("bob finds with %s: %d %s", body, status, data)
		}
	}
	for who, want := range map[string]string{"": "c1 c2 s1 s2 t1", "root": "c1 c2 s1 s2 t1", "ann": "s1", "bob": "s2", "eve": ""} {
		for _, path := range []string{"/v1/sessions", "/v1/queries/sessions"} {
			method := http.MethodGet
			if strings.Contains(path, "queries") {
				method = http.MethodPost
			}
			var list agent.SessionList
			_, data := ask(who, method, path, "{}")
			if err := json.Unmarshal(data, &list); err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			var ids []string
			for _, i := range list.Sessions {
				ids = append(ids, i.ID)
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("%s: %q sees %q, want %q", path, who, got, want)
			}
		}
	}
	if err := users.Remove("eve"); err != nil {
		t.Fatal(err)
	}
	if got := do("eve", "GET", "/v1/about", ""); got != http.StatusUnauthorized {
		t.Errorf("a user who was removed: %d", got)
	}
}

// What users send is kept to what is theirs.
func TestMayCommand(t *testing.T) {
	ann := auth.With(t.Context(), auth.User{Name: "ann", Scope: auth.Write})
	info := agent.SessionInfo{Tags: []string{"user:ann", "a"}}
	c, err := mayCommand(ann, info, agent.Change{Tags: &[]string{"user:bob", "b"}})
	if err != nil || strings.Join(*c.(agent.Change).Tags, " ") != "b user:ann" {
		t.Errorf("%+v %v", c, err)
	}
	c, err = mayCommand(ann, info, agent.Resolve{ID: "x", Decision: agent.Decision{By: "user:bob"}})
	if err != nil || c.(agent.Resolve).Decision.By != "user:ann" {
		t.Errorf("%+v %v", c, err)
	}
	for _, c := range []agent.Command{agent.Change{Mode: agent.ModeBypass}, agent.Resolve{Remember: agent.RememberAlways}} {
		if _, err := mayCommand(ann, info, c); err == nil {
			t.Errorf("%+v is let through", c)
		}
	}
}

// What users may set when they open a session is decided for each field, and what they may
// ask for each query: whoever adds one decides about it.
func TestEverythingIsDecided(t *testing.T) {
	fields := reflect.TypeFor[agent.Open]()
	for f := range fields.Fields() {
		if _, ok := openings[f.Name]; !ok {
			t.Errorf("nobody has decided whether users may open sessions with %s", f.Name)
		}
	}
	if len(openings) != fields.NumField() {
		t.Errorf("%d fields are decided, of %d", len(openings), fields.NumField())
	}
	var locals int
	for _, name := range query.Queries() {
		access := query.AccessTo(name)
		may := access.Users
		if access.Local != "" {
			locals++
		}
		if access.Local != "" && (may != nil || access.Guarded) {
			t.Errorf("%s is local, and something else", name)
		}
		asked, _, _ := query.QueryTypes(name)
		for _, field := range may {
			if f, ok := asked.FieldByName(field); !ok || field == "Session" && f.Type.Kind() != reflect.String {
				t.Errorf("%s has no field %s", name, field)
			}
		}
		if may != nil && access.Guarded {
			t.Errorf("%s is guarded", name)
		}
	}
	if locals > 12 {
		t.Errorf("%d queries are local, of at most 12", locals)
	}
}

// What was decided holds: each field that users may not set is refused, whatever else is said.
func TestMayOpen(t *testing.T) {
	work := t.TempDir()
	s := &Server{cfg: Config{Workdir: work}}
	ann, root := auth.With(t.Context(), auth.User{Name: "ann", Scope: auth.Write}), auth.With(t.Context(), auth.User{Scope: auth.Admin})
	for f := range reflect.TypeFor[agent.Open]().Fields() {
		var o agent.Open
		set := reflect.ValueOf(&o).Elem().FieldByName(f.Name)
		switch set.Kind() {
		case reflect.Bool:
			set.SetBool(true)
		case reflect.Int, reflect.Int64:
			set.SetInt(1)
		case reflect.String:
			set.SetString("default")
		default:
			set.Set(reflect.MakeSlice(set.Type(), 1, 1))
		}
		if f.Name == "Workdir" {
			o.Workdir = work
		}
		if err := s.mayOpen(ann, o); (err == nil) != openings[f.Name] {
			t.Errorf("%s: %v", f.Name, err)
		}
		if err := s.mayOpen(root, o); err != nil {
			t.Errorf("whoever runs the server, %s: %v", f.Name, err)
		}
	}
	for _, o := range []agent.Open{{Mode: agent.ModeBypass}, {Workdir: filepath.Dir(work)}, {Workdir: filepath.Join(work, "nothing")}, {Workdir: work + "x"}} {
		if s.mayOpen(ann, o) == nil {
			t.Errorf("%+v is let through", o)
		}
	}
}

// A server without a token of its own lets users in, and nobody who shows none.
func TestUsersAlone(t *testing.T) {
	users := auth.OpenUsers(filepath.Join(t.TempDir(), "users.json"))
	token, err := users.Add("ann", auth.Read, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Client: client.New(newLogs()), Users: users, Version: "1", TLS: true, Hosts: func(h string) bool { return h == "dure.example" }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	for auth, want := range map[string]int{"": 401, "Bearer": 401, "Bearer ": 401, "Bearer " + secret: 401, "Basic " + token: 401, token: 401, "Bearer " + token: 200} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://dure.example/v1/about", nil)
		r.Header["Authorization"] = []string{auth}
		w := &deadlines{httptest.NewRecorder()}
		if s.Handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, want %d", auth, w.Code, want)
		}
	}
	if _, err := New(Config{Client: client.New(newLogs()), Version: "1"}); err == nil {
		t.Error("nobody could come in, or everybody")
	}
}

// A reader whose user is removed reads no more, and the others go on.
func TestReadersOfRemovedUsers(t *testing.T) {
	users := auth.OpenUsers(filepath.Join(t.TempDir(), "users.json"))
	l := newLogs()
	s, err := New(Config{Client: client.New(client.Share(l)), Users: users, Version: "1", Workdir: t.TempDir(), beat: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := map[string]*bufio.Reader{}
	for name, id := range map[string]string{"ann": "a1", "bob": "b1"} {
		token, err := users.Add(name, auth.Read, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		l.of[id] = &log{tags: []string{"user:" + name}, open: true}
		l.mu.Unlock()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/v1/sessions/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		read[name] = bufio.NewReader(res.Body)
	}
	beats := func(name string) {
		t.Helper()
		for n := 0; n < 3; {
			line, err := read[name].ReadString('\n')
			if err != nil {
				t.Fatalf("the reader of %s: %v", name, err)
			}
			if line == ":\n" {
				n++
			}
		}
	}
	beats("ann")
	beats("bob")
	if err := users.Remove("ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := users.Add("ann", auth.Read, time.Now()); err != nil { // with another token
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, read["ann"]); err != nil {
		t.Errorf("the reader of a user who was removed: %v", err)
	}
	beats("bob")
}

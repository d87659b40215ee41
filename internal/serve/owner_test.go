package serve

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/door"
)

// Users see and use sessions of their own; those of others are not there for them, nor is
// what is for whoever runs the server.
func TestUsersAreApart(t *testing.T) {
	users := door.OpenUsers(filepath.Join(t.TempDir(), "users.json"))
	tokens := map[string]string{"": secret}
	for name, scope := range map[string]door.Scope{"ann": door.Write, "bob": door.Write, "eve": door.Read, "prom": door.Metrics} {
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
	do := func(who, method, path, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+tokens[who])
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{httptest.NewRecorder()}
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	if got := do("ann", http.MethodPost, "/v1/sessions", `{}`); got != http.StatusCreated {
		t.Fatalf("opening: %d", got)
	}
	sent := l.of["s1"].came
	change, ok := sent[len(sent)-1].(agent.Change)
	if !ok || change.Tags == nil || (*change.Tags)[0] != "user:ann" {
		t.Fatalf("the session is nobody's: %+v", sent)
	}
	// The logs of the test keep no tags, so nobody but the owner of the server knows it now.
	for _, tt := range []struct {
		who, method, path, body string
		want                    int
	}{
		{"", "GET", "/v1/sessions/s1", "", 200},
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
	if err := users.Remove("eve"); err != nil {
		t.Fatal(err)
	}
	if got := do("eve", "GET", "/v1/about", ""); got != http.StatusUnauthorized {
		t.Errorf("a user who was removed: %d", got)
	}
}

// What users send is kept to what is theirs.
func TestMayCommand(t *testing.T) {
	ann := door.With(t.Context(), door.User{Name: "ann", Scope: door.Write})
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

package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/auth"
)

// fuzzed is a server without a network, with the session s.
func fuzzed(f *testing.F) (*Server, *logs) {
	f.Helper()
	l := newLogs()
	s, err := New(Config{Client: client.New(l), Token: secret, Version: "1", Workdir: f.TempDir(), Files: noFiles})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.end)
	l.of["s"] = &log{tags: []string{"user:ann"}}
	return s, l
}

// answered sends a request as it is, with the token.
func (s *Server) answered(t *testing.T, method, target string, body []byte) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/", strings.NewReader(string(body)))
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	w := &deadlines{httptest.NewRecorder()}
	s.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// sound looks whether an answer is one that the server gives on purpose.
func sound(t *testing.T, status int, data []byte) {
	t.Helper()
	switch {
	case status == http.StatusOK || status == http.StatusCreated:
		return
	case status < 400 || status >= 500:
		t.Errorf("%d %s", status, data)
	}
	var p Problem
	if err := json.Unmarshal(data, &p); err != nil || p.Code == "" || p.Status != status {
		t.Errorf("%d is no problem: %v %s", status, err, data)
	}
}

// FuzzCommand has any bytes be a command: it is refused, or comes to the session as what it
// says.
func FuzzCommand(f *testing.F) {
	s, l := fuzzed(f)
	for _, name := range agent.Commands() {
		f.Add(name, []byte("{}"))
	}
	f.Add("prompt", []byte(`{"id":"1","text":"hello","blocks":[{"type":"text","text":"x"}],"later":true}`))
	f.Add("resolve", []byte(`{"id":"ap","decision":{"verdict":"allow"},"remember":"always"}`))
	f.Add("change", []byte(`{"mode":"bypassPermissions","tags":["user:bob"]}`))
	f.Add("..", []byte(`{`))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		if strings.Contains(name, "?") {
			return // what stands behind it is no name
		}
		l.of["s"].came, l.of["s"].tags = nil, []string{"user:ann"}
		status, data := s.answered(t, http.MethodPost, "/v1/sessions/s/commands/"+name, body)
		sound(t, status, data)
		if came := l.of["s"].came; len(came) > 1 || (len(came) == 1) != (status == http.StatusOK) || len(came) == 1 && came[0].Command() != name {
			t.Errorf("%d, and %v came", status, came)
		}
		c, err := agent.DecodeCommand(name, body)
		if err != nil {
			return
		}
		ann := auth.With(t.Context(), auth.User{Name: "ann", Scope: auth.Write})
		c, err = mayCommand(ann, agent.SessionInfo{ID: "s", Tags: []string{"user:ann"}}, c)
		if err != nil {
			return
		}
		switch c := c.(type) {
		case agent.Change:
			if c.Mode == agent.ModeBypass {
				t.Error("a user has everything happen")
			}
			if c.Tags != nil && (owners(*c.Tags) != 1 || !slices.Contains(*c.Tags, "user:ann")) {
				t.Errorf("a session is given away: %q", *c.Tags)
			}
		case agent.Resolve:
			if c.Remember == agent.RememberAlways || c.Decision.By != "user:ann" {
				t.Errorf("a user decides for others: %+v", c)
			}
		}
	})
}

// owners counts those among tags.
func owners(tags []string) (n int) {
	for _, t := range tags {
		if strings.HasPrefix(t, ownerTag) {
			n++
		}
	}
	return n
}

// FuzzOpen has any bytes be an opening, of whoever runs the server and of a user: it is
// refused, or what is opened is what they may.
func FuzzOpen(f *testing.F) {
	s, l := fuzzed(f)
	for _, body := range []string{
		"{}", `{"session":"s"}`, `{"fork":"s","at":1}`, `{"new":"x","workdir":"/","mode":"bypassPermissions"}`, `{"takeover":true}`, `{"lend":true}`,
		`{"schema":{},"lane":"cron","added":["/"],"setup":"init","after":"s","max_steps":-1}`, `{"Workdir":".."}`, "[", `{} {}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		status, data := s.answered(t, http.MethodPost, "/v1/sessions", body)
		sound(t, status, data)
		l.forget(s)
		r := httptest.NewRequestWithContext(auth.With(t.Context(), auth.User{Name: "ann", Scope: auth.Write}), http.MethodPost, "/v1/sessions", strings.NewReader(string(body)))
		w := httptest.NewRecorder()
		Route{Answer: s.open, Status: http.StatusCreated}.answer(w, r)
		sound(t, w.Code, w.Body.Bytes())
		if o := l.last; w.Code == http.StatusCreated && (o.Takeover || o.Lend || o.New != "" || o.Mode == agent.ModeBypass || o.Setup != "" || len(o.Added) > 0 ||
			o.Workdir != "" && !within(s.cfg.Workdir, o.Workdir)) {
			t.Errorf("a user opens %+v", o)
		}
		l.forget(s)
	})
}

// forget leaves the sessions that were opened, so that there are never many.
func (l *logs) forget(s *Server) {
	for id := range l.of {
		_, _ = s.users.part(context.Background(), id, "") // it only forgets
		if id != "s" {
			delete(l.of, id)
		}
	}
	l.of["s"].open, l.of["s"].events, l.last = false, nil, agent.Open{}
}

// FuzzPath has anything be an address, and a path in a folder: what is let through stays in
// the folder.
func FuzzPath(f *testing.F) {
	s, _ := fuzzed(f)
	for _, p := range []string{
		"a", "../a", "/etc/passwd", `..\a`, "a/../../b", "a//b", "\x00", "\xff", "C:/a", "a/.", "%2e%2e/a", "/v1/sessions/s/file", "/v1/sessions/../s", "//", "", ".",
		"/v1/sessions/s/events?follow=false&after=-1", "/v1/sessions/s/files?path=%2e%2e", "/v1/sessions?limit=x&before=y", "NUL", "a:b", "v1/sessions", "*",
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, given string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		q := r.URL.Query()
		q.Set("path", given)
		r.URL.RawQuery = q.Encode()
		name, err := local(r)
		if err == nil && (!filepath.IsLocal(filepath.FromSlash(name)) || path.IsAbs(name) || path.Clean(name) != name || strings.ContainsFunc(name, unicode.IsControl) ||
			strings.Contains(name, `\`) || len(name) > 4096) {
			t.Errorf("%q is let through as %q", given, name)
		}
		if strings.HasPrefix(given, "/v1/sessions/s/events") && !strings.Contains(given, "follow=false") {
			return // it would last
		}
		status, data := s.answered(t, http.MethodGet, given, nil)
		if status >= 500 && !strings.Contains(string(data), "no files") || status < 200 || status >= 300 && status < 400 {
			t.Errorf("%q: %d %s", given, status, data)
		}
	})
}

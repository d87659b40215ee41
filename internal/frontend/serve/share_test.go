package serve

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/internal/frontend/auth"
)

// count is how many of a kind a user has.
func (s *shares) count(name string, k kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has := s.of[name]; has != nil {
		return has[k]
	}
	return 0
}

// crowd is a rig with users.
type crowd struct {
	*rig
	tokens map[string]string // "" = that of the server
}

func crowded(t *testing.T, names ...string) *crowd {
	t.Helper()
	users := auth.OpenUsers(filepath.Join(t.TempDir(), "users.json"))
	c := &crowd{tokens: map[string]string{"": secret}}
	for _, name := range names {
		token, err := users.Add(name, auth.Write, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c.tokens[name] = token
	}
	c.rig = start(t, func(cfg *Config) {
		cfg.Users = users
		cfg.Routes = []Route{
			{Method: "GET", Path: "/v1/panic", Name: "panic", Summary: "Fails.", Scope: auth.Read, Serve: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
			{Method: "POST", Path: "/v1/turn", Name: "turn", Summary: "Is a turn.", Scope: auth.Write, Stream: true, In: Closing{}, Serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		}
	})
	return c
}

// as asks as a user, and returns the status, and the body.
func (c *crowd) as(who, method, path, body string) (int, string) {
	c.t.Helper()
	r := c.request(method, path, body)
	r.Header.Set("Authorization", "Bearer "+c.tokens[who])
	status, data := c.do(r)
	return status, string(data)
}

// full wants a user to be told that they have as many as they may.
func (c *crowd) full(who, method, path, body string) {
	c.t.Helper()
	if status, data := c.as(who, method, path, body); status != http.StatusServiceUnavailable || !strings.Contains(data, `"code":"too-many"`) {
		c.t.Errorf("%s %s of %s, who has all there is for them: %d %s", method, path, who, status, data)
	}
}

// served wants a user to be answered.
func (c *crowd) served(who, method, path, body string, want int) {
	c.t.Helper()
	if status, data := c.as(who, method, path, body); status != want {
		c.t.Errorf("%s %s of %q: %d, want %d: %s", method, path, who, status, want, data)
	}
}

// all takes all of a kind for a user but so many.
func (c *crowd) all(who string, k kind, but int) (give func()) {
	c.t.Helper()
	var gives []func()
	for range most[k].n - but {
		g, err := c.server.shares.take(who, k)
		if err != nil {
			c.t.Fatal(err)
		}
		gives = append(gives, g)
	}
	return func() {
		for _, g := range gives {
			g()
			g() // another time it is nothing
		}
	}
}

// A user who sends all requests that they may, and whose bodies never come, holds nobody else
// up, and is served again when they have gone. What fails is given back, too.
func TestShareOfRequests(t *testing.T) {
	c := crowded(t, "ann", "bob")
	n := most[ofRequests].n
	head := "POST /v1/queries/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + c.tokens["ann"] + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
	var closes []func() error
	for range n {
		closes = append(closes, c.raw(head).Close)
	}
	until(t, "all of them are there", func() bool { return c.server.shares.count("ann", ofRequests) == n })
	c.full("ann", "GET", "/v1/about", "")
	c.served("bob", "GET", "/v1/about", "", 200)
	c.served("", "GET", "/v1/about", "", 200)
	c.served("ann", "GET", "/healthz", "", 200)
	for _, f := range closes {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	until(t, "they have gone", func() bool { return c.server.shares.count("ann", ofRequests) == 0 })
	for range n + 1 {
		r := c.request("GET", "/v1/panic", "")
		r.Header.Set("Authorization", "Bearer "+c.tokens["ann"])
		if res, err := c.http.Do(r); err == nil {
			res.Body.Close()
			t.Fatalf("a request that fails is answered: %d", res.StatusCode)
		}
	}
	until(t, "what fails has gone", func() bool { return c.server.shares.count("ann", ofRequests) == 0 })
	c.served("ann", "GET", "/v1/about", "", 200)
}

// Readers of events count for whoever they are of, as long as they are connected.
func TestShareOfReaders(t *testing.T) {
	c := crowded(t, "ann", "bob")
	for _, who := range []string{"ann", "bob"} {
		c.logs.mu.Lock()
		c.logs.of[who] = &log{open: true, tags: []string{"user:" + who}}
		c.logs.mu.Unlock()
	}
	defer c.all("ann", ofReaders, 1)()
	auth := func(who string) []string { return []string{"Authorization", "Bearer " + c.tokens[who]} }
	s := c.read("/v1/sessions/ann/events", auth("ann")...)
	c.full("ann", "GET", "/v1/sessions/ann/events?follow=false", "")
	c.read("/v1/sessions/bob/events", auth("bob")...)
	c.served("ann", "GET", "/v1/sessions/ann", "", 200)
	s.close()
	until(t, "the reader has gone", func() bool { return c.server.shares.count("ann", ofReaders) == most[ofReaders].n-1 })
	c.read("/v1/sessions/ann/events", auth("ann")...)
}

// Turns that requests wait for count for themselves.
func TestShareOfTurns(t *testing.T) {
	c := crowded(t, "ann", "bob")
	give := c.all("ann", ofTurns, 0)
	c.full("ann", "POST", "/v1/turn", "{}")
	c.served("ann", "GET", "/v1/about", "", 200)
	c.served("bob", "POST", "/v1/turn", "{}", 204)
	give()
	for range 2 * most[ofTurns].n {
		c.served("ann", "POST", "/v1/turn", "{}", 204)
	}
}

// A user has so many openings of sessions that they have not closed, and all users together so
// many. What was not opened is not counted, and the end of the server gives all back.
func TestShareOfOpenings(t *testing.T) {
	c := crowded(t, "ann", "bob")
	give := c.all("ann", ofOpenings, 1)
	c.logs.mu.Lock()
	c.logs.of["owned"] = &log{open: true, tags: []string{"user:ann"}}
	c.logs.mu.Unlock()
	c.served("ann", "POST", "/v1/sessions", `{"session":"owned"}`, 409)
	c.served("ann", "POST", "/v1/sessions", `{"session":"none"}`, 404)
	status, data := c.as("ann", "POST", "/v1/sessions", `{"title":"x"}`)
	if status != 201 {
		t.Fatalf("%d %s", status, data)
	}
	id := "s2" // the second that there is
	c.full("ann", "POST", "/v1/sessions", `{}`)
	c.full("ann", "POST", "/v1/sessions", `{"session":"`+id+`"}`)
	c.full("ann", "POST", "/v1/sessions/"+id+"/fork", `{"at":1}`)
	c.served("ann", "GET", "/v1/sessions/"+id, "", 200)
	c.served("bob", "POST", "/v1/sessions", `{}`, 201)
	c.served("", "POST", "/v1/sessions", `{"session":"`+id+`"}`, 201)
	c.served("ann", "POST", "/v1/sessions/"+id+"/close", `{}`, 200)
	c.served("ann", "POST", "/v1/sessions", `{"session":"`+id+`"}`, 201)
	c.full("ann", "POST", "/v1/sessions", `{}`)
	c.served("ann", "DELETE", "/v1/sessions/"+id+"?force=true", "", 200)
	c.served("ann", "POST", "/v1/sessions", `{}`, 201)
	give()

	var gives []func()
	for i := range maxOpenings - 2 { // ann and bob have one each
		g, err := c.server.shares.take(fmt.Sprint("user", i), ofOpenings)
		if err != nil {
			t.Fatalf("opening %d of all users: %v", i, err)
		}
		gives = append(gives, g)
	}
	c.full("bob", "POST", "/v1/sessions", `{}`)
	for _, g := range gives {
		g()
	}
	c.served("bob", "POST", "/v1/sessions", `{}`, 201)
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	if n := len(c.server.shares.of); n != 0 || c.server.shares.openings != 0 {
		t.Errorf("at the end %d users have something left: %v", n, c.server.shares.openings)
	}
}

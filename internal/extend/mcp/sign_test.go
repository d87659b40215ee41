package mcp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"dure/internal/extend/mcp/servers"
)

// grants is somebody who has signed in, with a token that is to be renewed.
type grants struct {
	mu     sync.Mutex
	token  string // "" = nobody has
	next   string // after a refusal
	spoken int    // refusals
}

func (g *grants) TokenSource(context.Context) (oauth2.TokenSource, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" {
		return nil, nil
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: g.token}), nil
}

func (g *grants) Authorize(_ context.Context, _ *http.Request, res *http.Response) error {
	res.Body.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.spoken++; g.next == "" {
		return errors.New("somebody has to agree")
	}
	g.token, g.next = g.next, ""
	return nil
}

// The older transport signs in as the newer one does: a token that is refused is renewed
// once, a call that is on its way goes out again, and nobody else sees a token.
func TestSigningInOverTheOlderTransport(t *testing.T) {
	for name, tt := range map[string]struct {
		kind  string
		who   *grants
		state State
	}{
		"signed in":               {servers.SSE, &grants{token: "good"}, Connected},
		"renewed":                 {servers.SSE, &grants{token: "old", next: "good"}, Connected},
		"nobody":                  {servers.SSE, &grants{}, NeedsAuth},
		"refused":                 {servers.SSE, &grants{token: "old", next: "bad"}, NeedsAuth},
		"signed in, said as http": {servers.HTTP, &grants{token: "good"}, Connected},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			h := sdk.NewSSEHandler(hangUp(t, each), nil)
			var mu sync.Mutex
			good := "good"
			def := overNet(r, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				fits := q.Header.Get("Authorization") == "Bearer "+good
				mu.Unlock()
				if !fits {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				h.ServeHTTP(w, q)
			}))
			def.Type = tt.kind
			who := tt.who
			s := r.open(Config{Servers: []servers.Server{def}, HTTP: plainHTTP(t), Auth: func(servers.Server) auth.OAuthHandler { return who }})
			if st := state(s, def.Name); st.State != tt.state {
				t.Fatalf("it is %s: %s", st.State, st.Problem)
			}
			if tt.state != Connected || tt.kind != servers.SSE {
				return
			}
			mu.Lock()
			good = "better"
			mu.Unlock()
			who.mu.Lock()
			who.next = "better"
			who.mu.Unlock()
			if res := run(t, s, "mcp__every__echo", `{"text":"hello"}`); !strings.Contains(res.Text, "hello") {
				t.Errorf("%+v", res)
			}
		})
	}
}

package mcpserve

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/frontend/auth"
)

// bringing sends a header with each request.
type bringing struct{ token string }

func (b bringing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

const secret = "a-token-of-the-test"

func served(t *testing.T, s *Server) (host string) {
	t.Helper()
	l, err := auth.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, secret) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// Nobody comes in without the token, nor a page of another origin or under another name.
func TestWhoComesIn(t *testing.T) {
	t.Parallel()
	s, _ := bare(t)
	host := served(t, s)
	_, port, _ := net.SplitHostPort(host)
	for _, tt := range []struct {
		name   string
		header map[string]string
		path   string
		body   string
		want   int
	}{
		{name: "the client", want: 200},
		{name: "its own origin", header: map[string]string{"Origin": "http://" + host}, want: 200},
		{name: "localhost", header: map[string]string{"Host": "localhost:" + port}, want: 200},
		{name: "no token", header: map[string]string{"Authorization": ""}, want: 401},
		{name: "another token", header: map[string]string{"Authorization": "Bearer " + secret + "x"}, want: 401},
		{name: "another scheme", header: map[string]string{"Authorization": "Basic " + secret}, want: 401},
		{name: "another origin", header: map[string]string{"Origin": "http://evil.example"}, want: 403},
		{name: "another port", header: map[string]string{"Origin": "http://127.0.0.1:1"}, want: 403},
		{name: "a page without origin", header: map[string]string{"Origin": "null"}, want: 403},
		{name: "another name", header: map[string]string{"Host": "evil.example:" + port}, want: 403},
		{name: "nearly localhost", header: map[string]string{"Host": "localhost.evil.example"}, want: 403},
		{name: "another path", path: "/other", want: 404},
		{name: "too large", body: strings.Repeat("x", maxLine+1), want: 413},
		{name: "junk", body: "{", want: 400},
	} {
		path, body := Path, hello
		if tt.path != "" {
			path = tt.path
		}
		if tt.body != "" {
			body = tt.body
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+secret)
		for k, v := range tt.header {
			if k == "Host" {
				r.Host = v
			} else if r.Header.Set(k, v); v == "" {
				r.Header.Del(k)
			}
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		said, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d: %.200s", tt.name, res.StatusCode, tt.want, said)
		}
	}
}

// Both forms of the protocol are spoken, and in both a person is asked on the way.
func TestServedOverHTTP(t *testing.T) {
	for _, version := range []string{"2025-11-25", ""} {
		s, _ := bare(t)
		host := served(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes"}}, nil
			},
		})
		cs, err := c.Connect(ctx, &mcp.StreamableClientTransport{
			Endpoint: "http://" + host + Path, HTTPClient: &http.Client{Transport: bringing{secret}}, DisableStandaloneSSE: true,
		}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		r, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "asks"})
		if err != nil || len(r.Content) != 1 || r.Content[0].(*mcp.TextContent).Text != "yes" {
			t.Errorf("protocol %q: %+v, %v", version, r, err)
		}
		if version == "" && cs.InitializeResult().ProtocolVersion != newestForm {
			t.Errorf("they speak %s", cs.InitializeResult().ProtocolVersion)
		}
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
	}
}

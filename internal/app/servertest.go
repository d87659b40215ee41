package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/safety/workspace"
)

// testTime bounds the test of a server, whatever its definition says.
const testTime = 2 * time.Minute

// ServerTest is what a server has answered that was connected to see whether it does.
type ServerTest struct {
	Name         string        `json:"name"`
	Title        string        `json:"title,omitempty"` // as it calls itself, with its version
	Protocol     string        `json:"protocol,omitempty"`
	Milliseconds int64         `json:"milliseconds"` // until it was connected and had listed what it has
	Tools        []ServerOffer `json:"tools"`
	Prompts      []ServerOffer `json:"prompts"`
	Resources    []ServerOffer `json:"resources"` // templates too
	Left         []string      `json:"left,omitempty"`
}

// ServerOffer is one thing that a server has.
type ServerOffer struct {
	Name        string `json:"name"` // as sessions have it
	Description string `json:"description,omitempty"`
}

// TestServer connects a server as a session would, lists what it has, and ends it.
func (a *App) TestServer(ctx context.Context, name string) (t ServerTest, err error) {
	k, err := a.findServer(a.opts.Workdir, name)
	if err != nil {
		return t, err
	}
	if k.State != servers.Ready {
		fixes := map[servers.State]string{
			servers.Waiting: "dure mcp approve " + name, servers.Changed: "dure mcp approve " + name, servers.Rejected: "dure mcp approve " + name,
			servers.Off: "dure mcp enable " + name, servers.Untrusted: "dure trust",
		}
		return t, serverProblem(name, errors.New(cmp.Or(k.Why, "it is not used: "+string(k.State))), cmp.Or(fixes[k.State], "dure mcp get "+name))
	}
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir, Extra: a.cfg.AddDirs})
	if err != nil {
		return t, workspace.Problem(a.opts.Workdir, err)
	}
	box, _ := a.boxes.Box(ws.Root(), a.opts.Workdir, nil)
	defer func() { err = errors.Join(err, box.Close()) }()
	c := &connected{app: a, workdir: a.opts.Workdir, box: box, ws: ws}
	c.set = mcp.New(mcp.Config{
		Servers: []servers.Server{k.Expanded}, Start: c.start, HTTP: c.client, Headers: c.headers, Auth: a.signsIn,
		Roots: func() []string { return append([]string{ws.Root()}, a.cfg.AddDirs...) },
		// Servers offer more to whoever lets them ask; nothing is asked here.
		Elicit: func(context.Context, mcp.Elicitation) (mcp.Reply, error) { return mcp.Reply{Action: mcp.Decline}, nil },
		Ask: func(context.Context, string, agent.Question) (agent.Answer, error) {
			return agent.Answer{}, errors.New("no model is asked in a test")
		},
		OnChange: func(string) {}, Clean: a.patterns.Redact, Log: a.opts.Logger, Version: a.opts.Version,
	})
	defer c.set.Close()
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	begun := time.Now()
	c.set.Connect()
	waited := c.set.Wait(ctx)
	st := c.set.Status()[0]
	if st.State != mcp.Connected {
		why := cmp.Or(st.Problem, "it does not answer")
		if waited != nil && ctx.Err() == context.DeadlineExceeded {
			why = "it has not answered in " + testTime.String()
		}
		fix := "dure mcp get " + name
		if st.State == mcp.NeedsAuth {
			fix = "dure mcp login " + name
		}
		return t, serverProblem(name, errors.New(why), fix)
	}
	t = ServerTest{Name: name, Title: st.Title, Protocol: st.Protocol, Milliseconds: time.Since(begun).Milliseconds(), Left: st.Left}
	t.Tools, t.Prompts, t.Resources = offersOf(c.set)
	return t, nil
}

// offersOf lists what the servers of a set have.
func offersOf(set *mcp.Set) (tools, prompts, resources []ServerOffer) {
	tools, prompts, resources = []ServerOffer{}, []ServerOffer{}, []ServerOffer{}
	for _, t := range set.Tools() {
		tools = append(tools, ServerOffer{t.Spec().Name, t.Spec().Description})
	}
	for _, p := range set.Prompts() {
		prompts = append(prompts, ServerOffer{strings.TrimSpace(p.Command + " " + promptHint(p)), p.Description})
	}
	for _, r := range slices.Concat(set.Resources(), set.Templates()) {
		resources = append(resources, ServerOffer{r.URI, r.Description})
	}
	return tools, prompts, resources
}

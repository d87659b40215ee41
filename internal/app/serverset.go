package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

const (
	awaitServers = 5 * time.Second  // of a run that nobody watches, for the first answers of servers
	helperTime   = 10 * time.Second // of a command that prints headers
	maxHeaders   = 64 << 10         // bytes of what it prints
)

// connected is the servers of one session, and of all that work for it. It is safe for
// concurrent use.
type connected struct {
	app     *App
	workdir string
	session string // for which they are connected
	asks    bool   // somebody is there to be asked
	reach   agent.Reach
	person  agent.Reach               // of the session in which somebody is asked
	record  func(...agent.Body) error // puts news into the log of that session
	pol     *policy.Policy
	box     *sandbox.Box
	ws      *workspace.Workspace
	set     *mcp.Set
	prefix  string // of the names under which they are known outside of the session
	awaits  bool   // nobody types here while they are connected
	awaited sync.Once
	begins  sync.Once
	begun   chan struct{} // is closed when the session may be reached

	setting sync.Mutex        // held while servers are set
	dynamic map[string]string // those that were set while the session runs, by name, with the hash of each; guarded by setting

	mu       sync.Mutex
	over     bool                         // guarded by mu
	catalogs map[string]*catalog.Catalog  // by session; guarded by mu
	withheld map[string]map[string]string // tools that say something else than before, with their prints; by server; guarded by mu
	sampled  map[string]int               // questions to the model, by server; guarded by mu
	granted  map[string]bool              // servers that may ask the model; guarded by mu
	news     map[string]*serverNews       // what people were told and asked, by server; guarded by mu
}

// connections are the servers of the sessions that are open.
type connections struct {
	mu   sync.Mutex
	open map[string]*connected // by session; guarded by mu
}

// serversOf returns the servers of a session that is open; nil = it has none.
func (a *App) serversOf(session string) *connected {
	a.servers.mu.Lock()
	defer a.servers.mu.Unlock()
	return a.servers.open[session]
}

// serverPlace is the session that servers are connected for, and where it works.
type serverPlace struct {
	plug.Session
	box     *sandbox.Box
	ws      *workspace.Workspace
	workdir string
	pol     *policy.Policy
}

// newConnected are servers of a session that nothing is connected of yet.
func (a *App) newConnected(b serverPlace) *connected {
	return &connected{
		app: a, workdir: b.workdir, session: b.ID, asks: b.Open.Approver, reach: b.Reach, person: b.Reach, record: b.Record, pol: b.pol, box: b.box, ws: b.ws, begun: make(chan struct{}),
		catalogs: map[string]*catalog.Catalog{}, withheld: map[string]map[string]string{}, sampled: map[string]int{}, granted: map[string]bool{}, news: map[string]*serverNews{},
	}
}

// connect begins to connect the servers of a session; what works for one has its servers.
// It waits for none of them. nil = there are none.
func (a *App) connect(b serverPlace, cat *catalog.Catalog) *connected {
	if b.Open.Edit {
		return nil
	}
	c := a.serversOf(b.Parent)
	if c == nil && b.Child != nil {
		return nil
	}
	if c == nil {
		var list []servers.Server
		known, _ := a.serversIn(b.workdir)
		for _, k := range known {
			if k.State == servers.Ready && k.Agent == "" {
				list = append(list, k.Expanded)
			}
		}
		if len(list) == 0 && a.opts.Host == nil { // who embeds us may add some later
			return nil
		}
		c = a.newConnected(b)
		c.awaits = a.opts.Host.embeds(list)
		c.set = mcp.New(c.config(list))
	}
	a.servers.mu.Lock()
	if a.servers.open == nil {
		a.servers.open = map[string]*connected{}
	}
	a.servers.open[b.ID] = c
	a.servers.mu.Unlock()
	c.mu.Lock()
	c.catalogs[b.ID] = cat
	c.mu.Unlock()
	for _, s := range c.set.Status() {
		c.changed(s.Server.Name)
	}
	c.set.Connect()
	return c
}

// config is what servers of the session are connected with.
func (c *connected) config(list []servers.Server) mcp.Config {
	a := c.app
	return mcp.Config{
		Servers: list, Start: c.start, HTTP: c.client, Headers: c.headers, Auth: c.signsIn,
		Roots: func() []string { return append([]string{c.ws.Root()}, a.cfg.AddDirs...) },
		Dial:  a.opts.Host.dial, Trusted: ownServer, Elicit: c.elicit, Elicited: c.finished, Ask: c.sampler(),
		Clean: a.patterns.Redact, OnChange: c.changed,
		Log: a.opts.Logger, Version: a.opts.Version,
	}
}

// leave ends the part of a session; with the one that they were connected for, the servers
// end.
func (c *connected) leave(id string, child bool) {
	if c == nil {
		return
	}
	a := c.app
	a.servers.mu.Lock()
	delete(a.servers.open, id)
	a.servers.mu.Unlock()
	c.mu.Lock()
	delete(c.catalogs, id)
	c.over = c.over || !child
	c.mu.Unlock()
	if !child {
		c.set.Close()
	}
}

// extra lets servers ask from the first request on, and waits for them once, before that
// of a run that nobody watches.
func (c *connected) extra(ctx context.Context, _ plug.Moment) []agent.ContextAdded {
	if c == nil {
		return nil
	}
	c.begins.Do(func() { close(c.begun) })
	if c.awaits || c.app.opts.Flags.AwaitServers {
		c.awaited.Do(func() {
			ctx, cancel := context.WithTimeout(ctx, awaitServers)
			defer cancel()
			_ = c.set.Wait(ctx) // what comes later is there for a later request
			c.takeAll()
		})
	}
	return nil
}

// takeAll takes over what all servers offer now: news of it may be on its way.
func (c *connected) takeAll() {
	for _, st := range c.set.Status() {
		if st.State == mcp.Connected {
			c.changed(st.Server.Name)
		}
	}
}

// changed takes the tools over that a server offers now. A tool that says something else
// of itself than when it was first seen is left out until somebody agrees.
func (c *connected) changed(server string) {
	tools, prints := []agent.Tool{}, map[string]string{}
	for _, t := range c.set.Tools() {
		if own, ok := t.(*mcp.Tool); ok && own.Server() == server {
			tools = append(tools, t)
			prints[own.Remote()] = own.Print()
		}
	}
	if c.embedded(server) { // it is as the host wants it to be, which is what embeds us
		clear(prints)
	}
	held := c.compare(c.prefix+server, prints)
	tools = slices.DeleteFunc(tools, func(t agent.Tool) bool {
		own, ok := t.(*mcp.Tool)
		return ok && held[own.Remote()] != ""
	})
	c.mu.Lock()
	notes := c.hear(server, held)
	c.takeOver(server, tools, held)
	c.mu.Unlock()
	c.note(notes)
}

// embedded reports whether a server is inside of the embedding program.
func (c *connected) embedded(server string) bool {
	return slices.ContainsFunc(c.set.Status(), func(s mcp.Status) bool { return s.Server.Name == server && s.Server.Type == servers.SDK })
}

// takeOver gives the sessions the tools of a server. It is called with mu.
func (c *connected) takeOver(server string, tools []agent.Tool, held map[string]string) {
	c.withheld[server] = held
	for _, cat := range c.catalogs {
		for _, r := range cat.Set(catalog.MCP, c.prefix+server, tools) {
			c.app.opts.Logger.Info("tool of a server", "server", server, "tool", r.Name, "problem", r.Err)
		}
		for _, e := range cat.List() {
			if e.Source == catalog.MCP && e.From == c.prefix+server && e.Own != e.Spec.Name {
				c.app.opts.Logger.Info("tool of a server has another name: its own was taken", "server", server, "tool", e.Own, "name", e.Spec.Name)
			}
		}
	}
}

// compare returns the tools that are not as they were when they were first seen, and
// remembers those that are new.
func (c *connected) compare(server string, now map[string]string) (held map[string]string) {
	held = map[string]string{}
	if len(now) == 0 {
		return held
	}
	store := c.app.serverStore()
	before, err := store.Of(c.workdir)
	if err == nil {
		for _, name := range before.Differ(server, now) {
			held[name] = now[name]
		}
		added := before.New(server, now)
		if len(added) > 0 || !maps.Equal(held, before.Seen[server]) {
			err = store.Change(c.workdir, func(ch *servers.Choices) error {
				ch.Withhold(server, held)
				return ch.Accept(server, added)
			})
		}
	}
	if err != nil { // nobody can tell what they were
		c.app.opts.Logger.Warn("remembering the tools of a server", "server", server, "error", err)
		for name, print := range now {
			held[name] = print
		}
	}
	return held
}

// agree takes tools as they are now that are left out.
func (c *connected) agree(server string) (n int, err error) {
	c.mu.Lock()
	held := c.withheld[server]
	c.mu.Unlock()
	if len(held) == 0 {
		return 0, nil
	}
	if err := c.app.serverStore().Change(c.workdir, func(ch *servers.Choices) error {
		ch.Withhold(server, nil)
		return ch.Accept(server, held)
	}); err != nil {
		return 0, serverProblem(server, err, "dure mcp list")
	}
	c.changed(server)
	return len(held), nil
}

// start starts the program of a server: confined, unless its user has said otherwise, and
// with the public network.
func (c *connected) start(ctx context.Context, s servers.Server, errs io.Writer) (io.ReadWriteCloser, error) {
	env := c.app.commandEnv()
	for name, v := range s.Env {
		env = append(env, name+"="+v) // of two, the last counts
	}
	dir := c.workdir
	if s.Dir != "" {
		_, resolved, err := c.ws.Resolve(s.Dir)
		if err != nil {
			return nil, fmt.Errorf("the folder %s: %w", s.Dir, err)
		}
		dir = resolved
	}
	p, err := c.box.Start(ctx, sandbox.Cmd{
		Argv: append([]string{s.Command}, s.Args...), Dir: dir, Env: env, PipeIn: true, PipeOut: true, Err: errs,
		Grant: sandbox.Grant{Hosts: []string{"*"}}, Unconfined: s.Unconfined,
	})
	if err != nil {
		return nil, err
	}
	return talker{p}, nil
}

// client reaches servers over the network, as far as the network mode lets it.
func (c *connected) client(s servers.Server) (*http.Client, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	if !c.app.near(u) {
		return nil, fmt.Errorf("the network mode %s does not let %s be reached", c.app.cfg.Network.Mode, u.Hostname())
	}
	if c.app.cfg.Network.Mode == config.External {
		return &http.Client{Transport: c.app.transport}, nil
	}
	return &http.Client{Transport: nearby{c.app}}, nil
}

// nearby is a transport for the other network modes: redirects lead nowhere else.
type nearby struct{ app *App }

// RoundTrip sends a request, if the network mode lets it.
func (n nearby) RoundTrip(r *http.Request) (*http.Response, error) {
	if !n.app.near(r.URL) {
		return nil, fmt.Errorf("the network mode %s does not let %s be reached", n.app.cfg.Network.Mode, r.URL.Hostname())
	}
	return n.app.transport.RoundTrip(r)
}

// headers runs the command of a server that prints headers.
func (c *connected) headers(ctx context.Context, s servers.Server) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	var out bounded
	argv := []string{"sh", "-c", s.HeadersHelper}
	exit, err := c.box.Run(ctx, sandbox.Cmd{
		Argv: argv, Dir: c.workdir, Out: &out, Grant: sandbox.Grant{Hosts: []string{"*"}}, Unconfined: ownServer(s),
		Env: append(c.app.commandEnv(), "CLAUDE_CODE_MCP_SERVER_NAME="+s.Name, "CLAUDE_CODE_MCP_SERVER_URL="+s.URL),
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

// changeServer does what somebody has typed in a session. What is not connected there, as
// it was not used when the session began, is used from the next session on.
func (a *App) changeServer(ctx context.Context, q query.ChangeServer) (query.ServerInfo, error) {
	c, workdir := a.serversOf(q.Session), a.folderOf(q.Session, "")
	has := c != nil && slices.ContainsFunc(c.set.Status(), func(s mcp.Status) bool { return s.Server.Name == q.Server })
	var err error
	switch q.Do {
	case "approve":
		_, err = a.approveServer(workdir, q.Server, true)
	case "enable", "disable":
		if _, err = a.switchServer(workdir, q.Server, q.Do == "enable"); err == nil && has {
			if err = c.set.Disable(q.Server); q.Do == "enable" {
				err = c.set.Enable(q.Server)
			}
			c.changed(q.Server)
		}
	case "reconnect":
		if !has {
			if _, err = a.findServer(workdir, q.Server); err == nil {
				err = serverProblem(q.Server, errors.New("this session has not begun with it"), "begin another session: /clear")
			}
			break
		}
		if err = c.set.Reconnect(ctx, q.Server); err != nil {
			err = serverProblem(q.Server, err, "dure mcp get "+q.Server)
		}
	default:
		err = serverProblem(q.Server, fmt.Errorf("nothing is called %q", servers.Clip(q.Do)), "write enable, disable, reconnect or approve")
	}
	if err != nil {
		return query.ServerInfo{}, err
	}
	r := a.listServers(query.ListServers{Session: q.Session})
	if i := slices.IndexFunc(r.Servers, func(s query.ServerInfo) bool { return s.Name == q.Server }); i >= 0 {
		return r.Servers[i], nil
	}
	return query.ServerInfo{}, noServer(q.Server, nil)
}

// states says how it stands with the connections.
func (c *connected) states(list []query.ServerInfo) {
	if c == nil {
		return
	}
	c.takeAll()
	words := map[mcp.State]string{mcp.Pending: "connecting", mcp.Connected: "connected", mcp.Failed: "failed", mcp.NeedsAuth: "login", mcp.Disabled: "off"}
	for _, st := range c.set.Status() {
		i := slices.IndexFunc(list, func(s query.ServerInfo) bool { return s.Name == st.Server.Name })
		if i < 0 {
			continue
		}
		s := &list[i]
		s.State, s.Why, s.Title = words[st.State], st.Problem, st.Title
		s.Tools, s.Prompts, s.Resources, s.Left = st.Tools, st.Prompts, st.Resources+st.Templates, st.Left
		c.mu.Lock()
		for name := range c.withheld[s.Name] {
			s.Withheld = append(s.Withheld, name)
		}
		c.mu.Unlock()
		slices.Sort(s.Withheld)
	}
}

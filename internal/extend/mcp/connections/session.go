package connections

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
	"dure/internal/tools/catalog"
	"dure/internal/tools/kit"
)

// awaitServers is how long a run that nobody watches waits for the first answers of servers.
const awaitServers = 5 * time.Second

// Session is the servers of one session: those that it has with all that work for it, and
// those of its own type of agents.
type Session struct {
	x           *Extension
	b           plug.Session
	shared, own *Servers // nil = there are none
}

// Open begins to connect the servers of a session, and those that its type of agents defines;
// "" = that defines none. What works for a session has its servers. It waits for none of them.
func (x *Extension) Open(b plug.Session, kind string, p Place) *Session {
	s := &Session{x: x, b: b}
	if b.Open.Edit {
		return s
	}
	s.shared = x.connect(b, p)
	if kind != "" && b.ID != "" {
		s.own = x.connectOwn(b, kind, p)
	}
	return s
}

// Points are what the servers add to the session.
func (s *Session) Points() plug.Points {
	return plug.Points{Extra: func(ctx context.Context, _ plug.Moment) []agent.ContextAdded {
		s.shared.await(ctx)
		s.own.await(ctx)
		return nil
	}}
}

// Close ends the session's part of the servers; with the session that they were connected for,
// they end.
func (s *Session) Close() {
	if s.own != nil {
		s.own.set.Close()
	}
	if s.shared != nil {
		s.shared.leave(s.b.ID, s.b.Child != nil)
	}
}

// Brings reports whether a tool is one of the servers of the type of agents.
func (s *Session) Brings() func(agent.Spec) bool {
	if s.own == nil {
		return func(agent.Spec) bool { return false }
	}
	var owners []string
	for _, st := range s.own.set.Status() {
		owners = append(owners, s.own.prefix+st.Server.Name)
	}
	return func(spec agent.Spec) bool {
		e, ok := s.own.Catalog.Get(spec.Name)
		return ok && e.Source == catalog.MCP && slices.Contains(owners, e.From)
	}
}

// Servers are the servers of one session, and of all that work for it. They are safe for
// concurrent use. Those of a session without any are nil, and have nothing.
type Servers struct {
	x       *Extension
	b       plug.Session // for which they are connected
	Place                // of that session
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
	news     map[string]*news             // what people were told and asked, by server; guarded by mu
}

func (x *Extension) servers(b plug.Session, p Place) *Servers {
	return &Servers{
		x: x, b: b, Place: p, begun: make(chan struct{}), dynamic: map[string]string{},
		catalogs: map[string]*catalog.Catalog{}, withheld: map[string]map[string]string{}, sampled: map[string]int{},
		granted: map[string]bool{}, news: map[string]*news{},
	}
}

// connect begins to connect the servers of a session, or gives it those of the one that it
// works for. nil = there are none.
func (x *Extension) connect(b plug.Session, p Place) *Servers {
	c := x.Of(b.Parent)
	if c == nil {
		if b.Child != nil {
			return nil
		}
		var list []servers.Server
		known, _ := x.Known(b.Workdir)
		for _, k := range known {
			if k.State == servers.Ready && k.Agent == "" {
				list = append(list, k.Expanded)
			}
		}
		if len(list) == 0 && x.Host == nil { // who embeds us may add some later
			return nil
		}
		c = x.servers(b, p)
		c.awaits = x.Host.embeds(list)
		c.set = mcp.New(c.config(list))
	}
	x.mu.Lock()
	x.open[b.ID] = c
	x.mu.Unlock()
	c.mu.Lock()
	c.catalogs[b.ID] = p.Catalog
	c.mu.Unlock()
	for _, s := range c.set.Status() {
		c.changed(s.Server.Name)
	}
	c.set.Connect()
	return c
}

// unusedWhy says why a server is not used; of the other states, its own reason does.
var unusedWhy = map[servers.State]string{
	servers.Waiting: "it waits for your yes", servers.Changed: "it is not as it was when you said yes to it", servers.Rejected: "you have said no to it",
	servers.Untrusted: "the folder is not trusted", servers.Off: "it is switched off",
}

// connectOwn begins to connect the servers that a type of agents defines itself, for one
// session, with which they end. It notes which of them are not used. nil = there are none.
func (x *Extension) connectOwn(b plug.Session, kind string, p Place) *Servers {
	var list []servers.Server
	known, _ := x.Known(b.Workdir)
	for _, k := range known {
		switch name := kit.Clip(k.Name); {
		case !strings.EqualFold(k.Agent, kind) || k.State == servers.Hidden:
		case k.State == servers.Ready:
			one := k.Expanded
			one.Name = strings.TrimPrefix(k.Name, agentPrefix(kind))
			list = append(list, one)
		default:
			note := agent.Note{Level: "warn", Code: "servers", Text: "the server " + name + ": " + cmp.Or(unusedWhy[k.State], k.Why) + "; dure mcp get " + name}
			if err := b.Record(note); err != nil {
				x.Logger.Warn("noting a server that is not used", "session", b.ID, "error", err)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	c := x.servers(b, p)
	c.prefix, c.awaits, c.catalogs[b.ID] = agentPrefix(kind), true, p.Catalog
	c.set = mcp.New(c.config(list))
	c.set.Connect()
	return c
}

// leave ends the part of a session.
func (c *Servers) leave(id string, child bool) {
	c.x.mu.Lock()
	delete(c.x.open, id)
	c.x.mu.Unlock()
	c.mu.Lock()
	delete(c.catalogs, id)
	c.over = c.over || !child
	c.mu.Unlock()
	if !child {
		c.set.Close()
	}
}

// await lets servers ask from the first request on, and waits for them once, before that of a
// run that nobody watches.
func (c *Servers) await(ctx context.Context) {
	if c == nil {
		return
	}
	c.begins.Do(func() { close(c.begun) })
	if c.awaits || c.x.Await {
		c.awaited.Do(func() { c.settle(ctx) })
	}
}

// settle waits a little for servers that are being connected, and takes over what they offer.
// What comes later is there for a later request.
func (c *Servers) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, awaitServers)
	defer cancel()
	_ = c.set.Wait(ctx)
	c.takeAll()
}

// takeAll takes over what all servers offer now: news of it may be on its way.
func (c *Servers) takeAll() {
	for _, st := range c.set.Status() {
		if st.State == mcp.Connected {
			c.changed(st.Server.Name)
		}
	}
}

// status says how it stands with a server; ok is false for one that is not connected here.
func (c *Servers) status(server string) (st mcp.Status, ok bool) {
	if c == nil {
		return st, false
	}
	all := c.set.Status()
	i := slices.IndexFunc(all, func(s mcp.Status) bool { return s.Server.Name == server })
	if i < 0 {
		return st, false
	}
	return all[i], true
}

// tools are the tools of a server.
func (c *Servers) tools(server string) (all []*mcp.Tool) {
	for _, t := range c.set.Tools() {
		if own, ok := t.(*mcp.Tool); ok && own.Server() == server {
			all = append(all, own)
		}
	}
	return all
}

// tool is the tool of a server that has it by a name; nil = it has none.
func (c *Servers) tool(server, remote string) *mcp.Tool {
	for _, t := range c.tools(server) {
		if t.Remote() == remote {
			return t
		}
	}
	return nil
}

// changed takes the tools over that a server offers now. A tool that says something else
// of itself than when it was first seen is left out until somebody agrees.
func (c *Servers) changed(server string) {
	all, prints := c.tools(server), map[string]string{}
	if st, _ := c.status(server); st.Server.Type != servers.SDK { // such is as the host wants it to be
		for _, t := range all {
			prints[t.Remote()] = t.Print()
		}
	}
	held := c.compare(c.prefix+server, prints)
	tools := []agent.Tool{}
	for _, t := range all {
		if held[t.Remote()] == "" {
			tools = append(tools, t)
		}
	}
	c.mu.Lock()
	notes := c.hear(server, held)
	c.takeOver(server, tools, held)
	c.mu.Unlock()
	c.note(notes)
}

// takeOver gives the sessions the tools of a server. It is called with mu.
func (c *Servers) takeOver(server string, tools []agent.Tool, held map[string]string) {
	c.withheld[server] = held
	for _, cat := range c.catalogs {
		for _, r := range cat.Set(catalog.MCP, c.prefix+server, tools) {
			c.x.Logger.Info("tool of a server", "server", server, "tool", r.Name, "problem", r.Err)
		}
		for _, e := range cat.List() {
			if e.Source == catalog.MCP && e.From == c.prefix+server && e.Own != e.Spec.Name {
				c.x.Logger.Info("tool of a server has another name: its own was taken", "server", server, "tool", e.Own, "name", e.Spec.Name)
			}
		}
	}
}

// compare returns the tools that are not as they were when they were first seen, and
// remembers those that are new.
func (c *Servers) compare(server string, now map[string]string) (held map[string]string) {
	held = map[string]string{}
	if len(now) == 0 {
		return held
	}
	before, err := c.x.store.Of(c.b.Workdir)
	if err == nil {
		for _, name := range before.Differ(server, now) {
			held[name] = now[name]
		}
		added := before.New(server, now)
		if len(added) > 0 || !maps.Equal(held, before.Seen[server]) {
			err = c.x.store.Change(c.b.Workdir, func(ch *servers.Choices) error {
				ch.Withhold(server, held)
				return ch.Accept(server, added)
			})
		}
	}
	if err != nil { // nobody can tell what they were
		c.x.Logger.Warn("remembering the tools of a server", "server", server, "error", err)
		maps.Copy(held, now)
	}
	return held
}

// agree takes tools as they are now that are left out.
func (c *Servers) agree(server string) (n int, err error) {
	c.mu.Lock()
	held := c.withheld[server]
	c.mu.Unlock()
	if len(held) == 0 {
		return 0, nil
	}
	if err := c.x.store.Change(c.b.Workdir, func(ch *servers.Choices) error {
		ch.Withhold(server, nil)
		return ch.Accept(server, held)
	}); err != nil {
		return 0, problem(server, err, "dure mcp list")
	}
	c.changed(server)
	return len(held), nil
}

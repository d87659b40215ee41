package connections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/near"
	"dure/internal/extend/mcp"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// list answers what servers there are.
func (x *Extension) list(q query.ListServers) query.ServerReport {
	known, faults := x.Known(cmp.Or(q.Workdir, x.Folder(q.Session)))
	r := query.ServerReport{Servers: []query.ServerInfo{}}
	for _, k := range known {
		r.Servers = append(r.Servers, info(k))
	}
	x.Of(q.Session).states(r.Servers)
	for _, f := range faults {
		r.Faults = append(r.Faults, query.ServerFault{Source: at(f.Path, f.Line, f.Column), Server: f.Server, Message: f.What, Fix: f.Fix})
	}
	return r
}

func at(path string, line, column int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d:%d", path, line, column)
}

func info(k servers.Known) query.ServerInfo {
	env, headers := k.Names()
	if !filepath.IsAbs(k.Source) {
		k.Line = 0
	}
	return query.ServerInfo{
		Name: k.Name, Type: k.Type, Run: k.Shown(), Env: env, Headers: headers, Vars: k.Vars,
		Scope: k.Scope, Source: at(k.Source, k.Line, k.Column), Hash: k.Hash, State: string(k.State), Why: k.Why,
	}
}

// states says how it stands with the connections.
func (c *Servers) states(list []query.ServerInfo) {
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

// Findings says which servers the sessions of this folder have, if anybody names some.
func (x *Extension) Findings(context.Context) []query.Finding {
	known, faults := x.Known(x.Workdir)
	l := query.Findings{Group: query.Configured}
	var ready, waiting []string
	for _, k := range known {
		switch k.State {
		case servers.Ready:
			ready = append(ready, kit.Clip(k.Name))
		case servers.Waiting, servers.Changed:
			waiting = append(waiting, kit.Clip(k.Name))
		case servers.Broken:
			l.Add("mcp", query.Warn, "mcp.broken", "name", kit.Clip(k.Name), "error", k.Why)
		}
	}
	if len(ready) > 0 {
		l.Add("mcp", query.Good, "mcp.ok", "list", strings.Join(ready, ", "))
	}
	if len(waiting) > 0 {
		l.Add("mcp", query.Warn, "mcp.waiting", "list", strings.Join(waiting, ", "))
	}
	for _, f := range faults {
		l.Add("mcp", query.Warn, "settings.note", "text", f.Error())
	}
	return l.List
}

// Notes says which servers of the program's folder wait for a yes, and what is wrong with
// others.
func (x *Extension) Notes() (notes []agent.Note) {
	for _, f := range x.Findings(context.Background()) {
		var text string
		switch f.Code {
		case "mcp.broken":
			text = "the server " + f.Args["name"] + ": " + f.Args["error"]
		case "mcp.waiting":
			text = "servers of this folder wait for your yes: " + f.Args["list"] + "; dure mcp approve NAME"
		case "settings.note":
			text = f.Args["text"]
		default:
			continue
		}
		notes = append(notes, agent.Note{Level: "warn", Code: "servers", Text: text})
	}
	return notes
}

// find returns the server of a name that counts in a folder.
func (x *Extension) find(workdir, name string) (servers.Known, error) {
	known, _ := x.Known(workdir)
	var names []string
	for _, k := range known {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return servers.Known{}, unknown(name, names)
}

func unknown(name string, names []string) error {
	fix := "dure mcp list"
	if like := near.Nearest(name, names); like != "" {
		fix = "dure mcp get " + like
	}
	return problem(name, errors.New("there is no such server"), fix)
}

func problem(name string, err error, fix string) error {
	name = kit.Clip(name)
	return &agent.Problem{
		Code: agent.ProblemServer, Message: fmt.Sprintf("server %s: %v", name, err), Fix: fix, Err: err,
		Args: map[string]string{"name": name, "error": err.Error(), "fix": fix},
	}
}

// testTime limits the test of a server, whatever its definition says.
const testTime = 2 * time.Minute

// test connects a server as a session would, lists what it has, and ends it.
func (x *Extension) test(ctx context.Context, q query.TestServer) (t query.ServerTest, err error) {
	name := q.Server
	k, err := x.find(x.Workdir, name)
	if err != nil {
		return t, err
	}
	if k.State != servers.Ready {
		fixes := map[servers.State]string{
			servers.Waiting: "dure mcp approve " + name, servers.Changed: "dure mcp approve " + name, servers.Rejected: "dure mcp approve " + name,
			servers.Off: "dure mcp enable " + name, servers.Untrusted: "dure trust",
		}
		return t, problem(name, errors.New(cmp.Or(k.Why, "it is not used: "+string(k.State))), cmp.Or(fixes[k.State], "dure mcp get "+name))
	}
	ws, err := workspace.New(workspace.Config{Root: x.Workdir, Extra: x.AddDirs})
	if err != nil {
		return t, workspace.Problem(x.Workdir, err)
	}
	box := x.Box(ws)
	defer func() { err = errors.Join(err, box.Close()) }()
	m := x.servers(plug.Session{SessionOpened: agent.SessionOpened{Workdir: x.Workdir}}, Place{Box: box, Workspace: ws}).config([]servers.Server{k.Expanded})
	// Servers offer more to whoever lets them ask; nothing is asked here.
	m.Elicit = func(context.Context, mcp.Elicitation) (plug.ElicitReply, error) {
		return plug.ElicitReply{Action: mcp.Decline}, nil
	}
	m.Ask = func(context.Context, string, agent.Question) (agent.Answer, error) {
		return agent.Answer{}, errors.New("no model is asked in a test")
	}
	m.Dial, m.Trusted, m.Elicited, m.OnChange = nil, nil, nil, func(string) {}
	set := mcp.New(m)
	defer set.Close()
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	begun := time.Now()
	set.Connect()
	waited := set.Wait(ctx)
	st := set.Status()[0]
	if st.State != mcp.Connected {
		why, fix := cmp.Or(st.Problem, "it does not answer"), "dure mcp get "+name
		if waited != nil && ctx.Err() == context.DeadlineExceeded {
			why = "it has not answered in " + testTime.String()
		}
		if st.State == mcp.NeedsAuth {
			fix = "dure mcp login " + name
		}
		return t, problem(name, errors.New(why), fix)
	}
	t = query.ServerTest{
		Name: name, Title: st.Title, Protocol: st.Protocol, Milliseconds: time.Since(begun).Milliseconds(), Left: st.Left,
		Tools: []query.ServerOffer{}, Prompts: []query.ServerOffer{}, Resources: []query.ServerOffer{},
	}
	for _, o := range set.Tools() {
		t.Tools = append(t.Tools, query.ServerOffer{Name: o.Spec().Name, Description: o.Spec().Description})
	}
	for _, p := range set.Prompts() {
		t.Prompts = append(t.Prompts, query.ServerOffer{Name: strings.TrimSpace(p.Command + " " + promptHint(p)), Description: p.Description})
	}
	for _, r := range slices.Concat(set.Resources(), set.Templates()) {
		t.Resources = append(t.Resources, query.ServerOffer{Name: r.URI, Description: r.Description})
	}
	return t, nil
}

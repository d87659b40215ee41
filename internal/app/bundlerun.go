package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/cron"
	"dure/internal/extend/bundle"
	"dure/internal/extend/inbound"
	"dure/internal/extend/oauth"
	"dure/internal/extend/swarm"
)

// BundleRun is how a swarm of a bundle is run: with types of agents for the program, and what
// its sessions begin as.
type BundleRun struct {
	Info   query.BundleInfo
	Agents string // see swarm.ParseNamed
	Entry  string // name of the entry agent among them
	Steps  int    // of a turn
	Code   *BundleCode
}

// RunBundle returns how a swarm of a bundle is run; "" = the one named default, or the only
// one. The folder of the bundle has to be trusted: its prompts are read by a model that has
// tools. Where Info is not OK, the rest is empty.
func (a *App) RunBundle(path, name string) (BundleRun, error) {
	if err := a.restoreBundle(path); err != nil {
		return BundleRun{}, err
	}
	b, list, root, err := a.loadBundle(path, false)
	if err != nil {
		return BundleRun{}, err
	}
	defer root.Close()
	run := BundleRun{Info: b.Report(list)}
	run.Info.Path = path
	if !run.Info.OK {
		return run, nil
	}
	if dir := filepath.Clean(root.Name()); !a.trustsBundle(dir) {
		return run, untrusted(dir)
	}
	one := b.Swarm(name)
	if one == nil {
		return run, &agent.Problem{
			Code: agent.ProblemBundle, Message: "it cannot be told which swarm is meant",
			Fix: "name one with --swarm",
		}
	}
	_, file, err := a.bundlePlace(path)
	if err != nil {
		return run, bundleProblem(path, err)
	}
	s := one.Spec.(*bundle.Swarm)
	types := map[string]map[string]any{}
	code := &BundleCode{
		dir: filepath.Clean(root.Name()), file: file, agents: map[string]*bundle.Effective{}, locks: b.Locks, apps: map[string]*oauth.App{},
		ran: map[string]string{}, subjects: map[string]string{}, parents: map[string]string{},
	}
	for _, ref := range s.Agents {
		d, err := a.bundleAgent(b, ref, s, code)
		if err != nil {
			return run, err
		}
		types[agentName(ref)] = d
		code.agents[agentName(ref)], _ = b.Agent(ref)
	}
	data, err := json.Marshal(types)
	if err != nil {
		return run, fmt.Errorf("writing the agents of a bundle: %w", err)
	}
	run.Agents, run.Entry, run.Steps = string(data), agentName(s.Entry), s.MaxSteps
	run.Code = code
	return run, code.pin(a, b, one)
}

func untrusted(dir string) error {
	return &agent.Problem{
		Code: agent.ProblemBundle, Message: "the folder of the bundle is not trusted",
		Fix: "look at it, then: dure trust " + dir,
	}
}

// trustsBundle reports whether a folder, or one that it lies in, is trusted.
func (a *App) trustsBundle(dir string) bool {
	if _, ok := a.trust.Project(dir); ok {
		return true
	}
	rel, err := filepath.Rel(a.opts.Workdir, dir)
	return err == nil && filepath.IsLocal(rel) && a.trust.Trusts(a.opts.Workdir)
}

// bundleAgent returns the fields of a type of agents.
func (a *App) bundleAgent(b *bundle.Bundle, ref bundle.Ref, s *bundle.Swarm, code *BundleCode) (map[string]any, error) {
	e, ok := b.Agent(ref)
	if !ok {
		return nil, fmt.Errorf("the bundle has no %s", ref.ID())
	}
	tools := []string{}
	for _, t := range e.Tools {
		spec := t.Spec.(*bundle.Tool)
		app, err := a.signInApp(b, code.dir, t)
		if err != nil {
			return nil, err
		}
		code.apps[t.ID()] = app
		if spec.Kit {
			continue
		}
		if spec.Runtime == bundle.RuntimeBuiltin {
			tools = append(tools, spec.Entry)
			continue
		}
		if spec.Runtime == bundle.RuntimeMCP {
			if err := a.usableServer(code.dir, t, spec.Entry); err != nil {
				return nil, err
			}
		}
	}
	for _, x := range e.Extensions {
		if err := runs(x, x.Spec.(*bundle.Extension).Runtime, bundle.RuntimeNode, bundle.RuntimeProcess, bundle.RuntimeBuiltin); err != nil {
			return nil, err
		}
	}
	var others []string
	for _, o := range s.Agents {
		if o.ID() != ref.ID() {
			others = append(others, agentName(o))
		}
	}
	if ref.ID() == s.Entry.ID() && len(others) > 0 {
		tools = append(tools, "Agent("+strings.Join(others, ", ")+")", swarm.HandoffTool, swarm.CoordinateTool, "task__output", "task__stop")
	}
	d := map[string]any{
		"description": "agent " + ref.Name + " of a bundle", "prompt": cmp.Or(strings.TrimSpace(e.Prompt), "You are the agent "+ref.Name+"."),
		"tools": tools, "maxTurns": s.MaxSteps,
	}
	if m, ok := e.Model.Spec.(*bundle.Model); ok && m.Model != "" {
		d["model"] = m.Model
	}
	return d, nil
}

// unrunnable is a part of a bundle that has code of its own.
func unrunnable(id, runtime string) error {
	return &agent.Problem{
		Code: agent.ProblemBundle, Message: fmt.Sprintf("%s has code of its own (%s), which dure bundle run does not start", id, runtime),
		Fix: "use another runtime, such as node, process or builtin",
	}
}

// agentName is what an agent of a bundle is called among the types of agents: its name, and
// where that has other characters than those have, a mark that tells it from others.
func agentName(r bundle.Ref) string {
	if swarm.BadName(r.Name) == "" {
		return r.Name
	}
	plain := strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '-'
	}, r.Name), "-")
	sum := fnv.New64a()
	sum.Write([]byte(r.Name))
	const most = 40 // characters
	return strings.Trim("agent-"+plain[:min(len(plain), most)], "-") + "-" + hex.EncodeToString(sum.Sum(nil))
}

// BundleSignIn is what a person has to do before a tool can work for them.
type BundleSignIn = inbound.SignIn

// BundleIO is what the connections of a bundle are served with.
type BundleIO struct {
	In    io.Reader
	Out   io.Writer
	Clean func(string) string
	// SignIn says what a person has to do before a tool can work for them.
	SignIn func(BundleSignIn) string
	// Note is told what begins and what fails. It may be called from several goroutines.
	Note func(query.BundleNote)
}

// ServeBundle runs the connections of a bundle until all have ended or ctx is done; where it
// has none, a terminal. The program was made with the agents of [App.RunBundle].
func (a *App) ServeBundle(ctx context.Context, path, name string, run BundleRun, with BundleIO) (err error) {
	b, list, root, err := a.loadBundle(path, false)
	if err != nil {
		return err
	}
	defer root.Close()
	if bundle.Failed(list) {
		return bundleProblem(path, errors.New("it was changed while it was started"))
	}
	of, dir, visited := b.Swarm(name), filepath.Clean(root.Name()), map[string]bool{}
	out, err := a.connectorCode(b, of, run.Code)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	lines, err := a.connections(b, of, out, with)
	if err != nil {
		return err
	}
	here := bundle.Ref{Kind: bundle.KindSwarm, Name: of.Name}
	for _, l := range lines {
		visited[l.name] = l.visitors
	}
	route := func(connection string, m bundle.Message) (bundle.Goal, error) {
		if connection == "" { // the terminal of a bundle without connections
			return bundle.Goal{Swarm: here, Agent: of.Spec.(*bundle.Swarm).Entry, Key: bundle.Key(lineKey)}, nil
		}
		g, err := b.Route(connection, m)
		if err == nil && visited[connection] {
			run.Code.visited(g.Session(dir))
		}
		return g, err
	}
	r := inbound.NewRouter(inbound.Config{
		Client: a.Client(), Bundle: dir, Logger: a.opts.Logger, Route: route,
		Progressed: func(session string, p agent.CrewProgressed) {
			with.Note(query.BundleNote{Session: session, Progress: &p})
		},
		Open: func(g bundle.Goal) agent.Open {
			return agent.Open{Workdir: a.opts.Workdir, Agent: agentName(g.Agent), MaxSteps: run.Steps, Title: "bundle " + g.Agent.Name}
		},
	})
	defer r.Close()
	defer func() {
		if ctx.Err() != nil {
			a.parkBundle(bundle.Sessions(dir, here))
		}
	}()
	left, err := a.cutShort(ctx, bundle.Sessions(dir, here))
	if err != nil {
		return err
	}
	again := resumed{a: a, router: r, with: with, left: left, dir: dir, route: route}
	if slices.ContainsFunc(lines, func(l line) bool { return l.visitors }) {
		again.visited = run.Code.visited
	}
	return again.serve(ctx, lines)
}

// serve runs the connections until all have ended, and the turns that went on before them.
func (r *resumed) serve(ctx context.Context, lines []line) error {
	var all sync.WaitGroup
	ended := make([]error, len(lines))
	for i, l := range lines {
		first := func() {}
		if l.typed {
			first = r.before(ctx, l.name)
		}
		all.Go(func() {
			first()
			ended[i] = inbound.Supervise(ctx, l.most, func(ctx context.Context, well func()) error {
				c, where, err := l.start(well)
				if err != nil {
					return err
				}
				r.with.Note(query.BundleNote{Connection: l.name, Where: where})
				return c.Run(ctx, func(ctx context.Context, m bundle.Message) (*inbound.Delivery, error) {
					d, err := r.router.Deliver(ctx, l.name, m)
					if err != nil && l.visitors { // whoever has sent it is not told why
						r.with.Note(query.BundleNote{Connection: l.name, Undelivered: err.Error()})
					}
					return d, err
				})
			}, func(err error, n int, wait time.Duration) {
				r.with.Note(query.BundleNote{Connection: l.name, Error: err.Error(), Failures: n, Wait: wait, Disabled: n == l.most})
			})
		})
	}
	r.rest(ctx, &all)
	all.Wait()
	return errors.Join(ended...)
}

// lineKey names the conversation of a terminal that no connection speaks of.
const lineKey = "terminal"

// line is a connection that can be started.
type line struct {
	name     string // "" = the terminal of a bundle without connections
	typed    bool   // it is the terminal
	visitors bool   // others than the person at this machine speak through it
	start    func(well func()) (c inbound.Connector, where string, err error)
	most     int // failures in a row, after which it is not started again; 0 = it always is
}

// connections returns those that lead to a swarm. What is wrong with the values of one is
// told before any of them is started.
func (a *App) connections(b *bundle.Bundle, to *bundle.Resource, out *bringers, with BundleIO) ([]line, error) {
	terminal := func(name string) line {
		return line{name: name, typed: true, start: func(well func()) (inbound.Connector, string, error) {
			return &inbound.Terminal{In: with.In, Out: with.Out, Clean: with.Clean, SignIn: with.SignIn, Well: well}, "", nil
		}}
	}
	var lines []line
	typed := false
	for _, r := range b.Of(bundle.KindConnection) {
		c := r.Spec.(*bundle.Connection)
		if !leads(r, to) {
			continue
		}
		from, ok := b.Find(c.Connector)
		if !ok {
			continue // loading tells of it
		}
		spec := from.Spec.(*bundle.Connector)
		config, err := resolvedOf(b, c.Config)
		secrets, serr := resolvedOf(b, c.Secrets)
		if err = errors.Join(err, serr); err != nil {
			return nil, bundleProblem(r.Name, err)
		}
		values := maps.Clone(config)
		maps.Copy(values, secrets)
		var l line
		switch {
		case spec.Runtime != bundle.RuntimeBuiltin:
			l, err = out.connector(r.Name, from, config, secrets)
		case spec.Entry == bundle.Terminal:
			if typed {
				return nil, bundleProblem(r.Name, errors.New("there is one terminal, and two connections take its lines"))
			}
			typed, l = true, terminal(r.Name)
		case spec.Entry == bundle.Webhook:
			l, err = webhook(r.Name, values)
		case spec.Entry == bundle.Schedule:
			l, err = scheduled(r.Name, values)
		}
		if err != nil {
			return nil, bundleProblem(r.Name, err)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		lines = []line{terminal("")}
	}
	return lines, nil
}

// resolvedOf returns values of a connection.
func resolvedOf(b *bundle.Bundle, values map[string]bundle.Value) (map[string]string, error) {
	all := map[string]string{}
	for name, v := range values {
		s, err := b.Resolve(v, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = s
	}
	return all, nil
}

// webhook listens on this machine alone: what others are to reach stands in front of it.
func webhook(name string, values map[string]string) (line, error) {
	if err := onlyThese(values, "address", "path", "answer", bundle.SigningSecret); err != nil {
		return line{}, err
	}
	address := cmp.Or(values["address"], "127.0.0.1:0")
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return line{}, fmt.Errorf("%q is no address of this machine alone, such as 127.0.0.1:8080", address)
	}
	const least = 16
	if len(values[bundle.SigningSecret]) < least {
		return line{}, fmt.Errorf("%s has to have at least %d bytes", bundle.SigningSecret, least)
	}
	path := cmp.Or(values["path"], "/")
	return line{name: name, visitors: true, start: func(well func()) (inbound.Connector, string, error) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, "", fmt.Errorf("listening for a webhook: %w", err)
		}
		where := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: path}
		return &inbound.Webhook{Listener: l, Secret: []byte(values[bundle.SigningSecret]), Path: path, Answer: values["answer"] == "true", Now: time.Now, Well: well}, where.String(), nil
	}}, nil
}

func scheduled(name string, values map[string]string) (line, error) {
	if err := onlyThese(values, "cron", "timeZone", "text"); err != nil {
		return line{}, err
	}
	zone, err := time.LoadLocation(cmp.Or(values["timeZone"], "Local"))
	if err != nil {
		return line{}, fmt.Errorf("the time zone %q is not known", values["timeZone"])
	}
	when, err := cron.Parse(values["cron"], zone)
	if err != nil {
		return line{}, err
	}
	if strings.TrimSpace(values["text"]) == "" {
		return line{}, errors.New("text is missing: what is sent at these times")
	}
	return line{name: name, most: inbound.MostFailures, start: func(well func()) (inbound.Connector, string, error) {
		return &inbound.Schedule{When: when, Text: values["text"], Now: time.Now, Well: well}, when.Next(time.Now()).Format(time.RFC3339), nil
	}}, nil
}

// onlyThese refuses values that mean nothing to a connector.
func onlyThese(values map[string]string, names ...string) error {
	for name := range values {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s means nothing here; there are: %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

package swarms

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/inbound"
	"dure/internal/extend/mcp/oauth"
)

// Run is how a swarm of a bundle is run: with types of agents for the program, and what
// its sessions begin as.
type Run struct {
	Info   query.BundleInfo
	Agents string // see swarm.ParseNamed
	Entry  string // name of the entry agent among them
	Steps  int    // of a turn
	Code   *Code
}

// Prepare returns how a swarm of a bundle is run; "" = the one named default, or the only
// one. The folder of the bundle has to be trusted: its prompts are read by a model that has
// tools. Where Info is not OK, the rest is empty.
func (ext *Extension) Prepare(path, name string) (Run, error) {
	if err := ext.restore(path); err != nil {
		return Run{}, err
	}
	b, info, root, err := ext.load(path, false)
	if err != nil {
		return Run{}, err
	}
	defer root.Close()
	run := Run{Info: info}
	if !info.OK {
		return run, nil
	}
	if dir := filepath.Clean(root.Name()); !ext.cfg.Trusts(dir) {
		return run, untrusted(dir)
	}
	one := b.Swarm(name)
	if one == nil {
		return run, &agent.Problem{
			Code: agent.ProblemBundle, Message: "it cannot be told which swarm is meant",
			Fix: "name one with --swarm",
		}
	}
	_, file, err := ext.place(path)
	if err != nil {
		return run, problem(path, err)
	}
	s := one.Spec.(*bundle.Swarm)
	types := map[string]map[string]any{}
	code := &Code{
		dir: filepath.Clean(root.Name()), file: file, agents: map[string]*bundle.Effective{}, locks: b.Locks, apps: map[string]*oauth.App{},
		ran: map[string]string{}, subjects: map[string]string{}, parents: map[string]string{},
	}
	for _, ref := range s.Agents {
		d, err := ext.agentType(b, ref, s, code)
		if err != nil {
			return run, err
		}
		types[ext.agentName(ref)] = d
		code.agents[ext.agentName(ref)], _ = b.Agent(ref)
	}
	data, err := json.Marshal(types)
	if err != nil {
		return run, fmt.Errorf("writing the agents of a bundle: %w", err)
	}
	run.Agents, run.Entry, run.Steps = string(data), ext.agentName(s.Entry), s.MaxSteps
	run.Code = code
	return run, code.pin(ext, b, one)
}

func untrusted(dir string) error {
	return &agent.Problem{
		Code: agent.ProblemBundle, Message: "the folder of the bundle is not trusted",
		Fix: "look at it, then: dure trust " + dir,
	}
}

// agentType returns the fields of a type of agents.
func (ext *Extension) agentType(b *bundle.Bundle, ref bundle.Ref, s *bundle.Swarm, code *Code) (map[string]any, error) {
	e, ok := b.Agent(ref)
	if !ok {
		return nil, fmt.Errorf("the bundle has no %s", ref.ID())
	}
	tools := []string{}
	for _, t := range e.Tools {
		spec := t.Spec.(*bundle.Tool)
		app, err := ext.signInApp(b, code.dir, t)
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
			if err := ext.cfg.UsableServer(code.dir, t.ID(), spec.Entry); err != nil {
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
			others = append(others, ext.agentName(o))
		}
	}
	if ref.ID() == s.Entry.ID() && len(others) > 0 {
		tools = append(tools, "Agent("+strings.Join(others, ", ")+")")
		tools = append(tools, ext.cfg.EntryTools...)
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

// agentName is what an agent of a bundle is called among the types of agents: its name, and
// where that has other characters than those have, a mark that tells it from others.
func (ext *Extension) agentName(r bundle.Ref) string {
	if ext.cfg.IsName(r.Name) {
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

// IO is what the connections of a bundle are served with.
type IO struct {
	In    io.Reader
	Out   io.Writer
	Clean func(string) string
	// SignIn says what a person has to do before a tool can work for them.
	SignIn func(inbound.SignIn) string
	// Note is told what begins and what fails. It may be called from several goroutines.
	Note func(query.BundleNote)
}

// Serve runs the connections of a bundle until all have ended or ctx is done; where it
// has none, a terminal. The program was made with the agents of [Extension.Prepare].
func (ext *Extension) Serve(ctx context.Context, path, name string, run Run, with IO) (err error) {
	b, info, root, err := ext.load(path, false)
	if err != nil {
		return err
	}
	defer root.Close()
	if !info.OK {
		return problem(path, errors.New("it was changed while it was started"))
	}
	of, dir, visited := b.Swarm(name), filepath.Clean(root.Name()), map[string]bool{}
	out, err := ext.connectorCode(b, of, run.Code)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	lines, err := ext.connections(b, of, out, with)
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
		Client: ext.cfg.Client(), Bundle: dir, Logger: ext.cfg.Logger, Route: route,
		Progressed: func(session string, p agent.CrewProgressed) {
			with.Note(query.BundleNote{Session: session, Progress: &p})
		},
		Open: func(g bundle.Goal) agent.Open {
			return agent.Open{Workdir: ext.cfg.Workdir, Agent: ext.agentName(g.Agent), MaxSteps: run.Steps, Title: "bundle " + g.Agent.Name}
		},
	})
	defer r.Close()
	defer func() {
		if ctx.Err() != nil {
			ext.cfg.Park(func(id string) bool { return strings.HasPrefix(id, bundle.Sessions(dir, here)) })
		}
	}()
	left, err := ext.cutShort(ctx, bundle.Sessions(dir, here))
	if err != nil {
		return err
	}
	again := resumed{ext: ext, router: r, with: with, left: left, dir: dir, route: route}
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

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/catalog"
	"dure/internal/exthost"
	"dure/internal/sandbox"
)

const (
	serverCount = 10
	serverTools = 20 // of each server

	startRatio   = 1.3 // a start with servers, to one without: nobody waits for them
	catalogMS    = 2
	workerCallMS = 1
	workerMS     = 120 // bundling, starting and loading a module, and its first call
)

// lists is what was measured of a session with servers.
type lists struct {
	Millis float64 `json:"ms"`     // until the session was open
	Answer float64 `json:"answer"` // ... and had its first answer
	All    float64 `json:"all"`    // ... and all tools were there
}

// toolLists measures what many tools of servers take, where nobody calls them.
func toolLists(b *bench) ([]Figure, error) {
	srv, err := serve(talk("Hello."), true)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	times := map[int][]lists{}
	for range max(5, b.runs) {
		for _, n := range []int{0, serverCount} { // in turns, so that both meet the same machine
			home, err := b.home()
			if err != nil {
				return nil, err
			}
			_, l, err := child[lists](b.ctx, home, environ(home, srv.url()), "lists", home, strconv.Itoa(n))
			if err != nil {
				return nil, err
			}
			times[n] = append(times[n], l)
			if err := os.RemoveAll(home); err != nil {
				return nil, err
			}
		}
	}
	open := func(l lists) float64 { return l.Millis }
	bare, with := over(times[0], open), over(times[serverCount], open)
	_, built, err := child[took](b.ctx, b.scratch, environ(b.scratch, ""), "catalog", b.scratch)
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "start, until something can be typed", Unit: "ms", Spread: with},
		{What: "to the same without servers", Unit: "×", Aim: startRatio, Spread: ratio(with, bare.Min)},
		{What: "until all of them are there", Unit: "ms", Spread: over(times[serverCount], func(l lists) float64 { return l.All })},
		{What: "catalog built", Unit: "ms", Aim: catalogMS, Spread: exactly(built.Millis)},
	}, nil
}

func over(all []lists, figure func(lists) float64) Spread {
	var v []float64
	for _, l := range all {
		v = append(v, figure(l))
	}
	return spreadOf(v)
}

// listsChild opens a session with servers, has it answer once, and waits for their tools.
func listsChild(args []string) (any, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	named := map[string]any{}
	for i := range n {
		named[fmt.Sprintf("s%d", i)] = map[string]any{"command": self, "args": []string{serverArg, "tools"}, "unconfined": true}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": named})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	begun := time.Now()
	a, err := app.New(app.Options{
		Flags: app.Flags{Model: scripted, Servers: []string{string(data)}}, Environ: os.Environ(), UserHome: os.Getenv("HOME"), Workdir: args[0], Version: "bench",
	})
	if err != nil {
		return nil, err
	}
	out, err := listed(ctx, a.Client(), n, begun)
	return out, closing(a, err)
}

func listed(ctx context.Context, c client.Client, n int, begun time.Time) (out lists, err error) {
	since := func() float64 { return time.Since(begun).Seconds() * 1000 }
	s, err := c.Open(ctx, agent.Open{Approver: true})
	if err != nil {
		return out, err
	}
	out.Millis = since()
	if err := s.Send(ctx, agent.Prompt{Text: "Hello."}); err != nil {
		return out, err
	}
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			return out, err
		}
		if end, ok := e.Body.(agent.TurnEnded); ok {
			if end.Reason != agent.EndDone {
				return out, fmt.Errorf("the turn ended: %s", end.Reason)
			}
			break
		}
	}
	out.Answer = since()
	for {
		r, err := client.Query[agent.ServerReport](ctx, c, agent.ListServers{Session: s.Info.ID})
		if err != nil {
			return out, err
		}
		count := 0
		for _, s := range r.Servers {
			count += s.Tools
		}
		if count == n*serverTools {
			out.All = since()
			return out, nil
		}
		select {
		case <-ctx.Done():
			return out, fmt.Errorf("%d tools are there: %w", count, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// catalogChild builds the catalog of a step anew, and says how long the fastest took.
func catalogChild([]string) (any, error) {
	sets := make([][]agent.Tool, serverCount)
	for i := range sets {
		for j := range serverTools {
			sets[i] = append(sets[i], described{agent.Spec{
				Name: fmt.Sprintf("mcp__s%d__t%d", i, j), Description: strings.Repeat("what it does ", 40),
				Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}}}`),
			}})
		}
	}
	best := time.Duration(0)
	for range 50 {
		begun := time.Now()
		c := catalog.New(catalog.Config{})
		if err := c.Register(described{agent.Spec{Name: catalog.Search}}, catalog.BuiltIn, ""); err != nil {
			return nil, err
		}
		c.Defer(catalog.Deferral{On: true, Room: 60_000})
		for i, tools := range sets {
			c.Set(catalog.MCP, strconv.Itoa(i), tools)
		}
		if s := c.Step(nil); len(s.Specs())+len(s.Named()) <= serverCount*serverTools {
			return nil, errors.New("tools are missing")
		}
		if took := time.Since(begun); best == 0 || took < best {
			best = took
		}
	}
	return took{Millis: best.Seconds() * 1000}, nil
}

// described is a tool that is only described.
type described struct{ spec agent.Spec }

func (d described) Spec() agent.Spec { return d.spec }

func (described) Plan(context.Context, agent.ToolContext, agent.Call) (agent.Effects, error) {
	return agent.Effects{}, nil
}

func (described) Run(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) {
	return agent.OK(""), nil
}

// worker measures what a tool of a bundle takes that runs in Node.js.
func worker(b *bench) ([]Figure, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		if required("node") {
			return nil, errors.New("node is required and not installed")
		}
		return nil, skipped("node is not installed")
	}
	var first, later []float64
	for range max(5, b.runs) {
		f, l, err := workerCalls(b.ctx, b.scratch, node)
		if err != nil {
			return nil, err
		}
		first, later = append(first, f), append(later, l)
	}
	return []Figure{
		{What: "first call: bundled, started, loaded", Unit: "ms", Aim: workerMS, Spread: spreadOf(first)},
		{What: "a call after it", Unit: "ms", Aim: workerCallMS, Spread: spreadOf(later)},
	}, nil
}

// workerCalls returns what the first call of a new worker took, and each of many after it.
func workerCalls(ctx context.Context, scratch, node string) (first, later float64, err error) {
	root, err := os.MkdirTemp(scratch, "bundle-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(root)
	if err := os.WriteFile(filepath.Join(root, "a.ts"), []byte("export const handlers = { do: (ctx, input) => input.n + 1 };\n"), 0o600); err != nil {
		return 0, 0, err
	}
	box := sandbox.New(sandbox.Config{})
	defer box.Close()
	h := exthost.New(exthost.Config{
		Box: box, Root: root, Dir: root, Env: []string{"PATH=" + os.Getenv("PATH")}, Node: func() (string, error) { return node, nil },
	})
	defer h.Close()
	tools, err := h.Tools(exthost.Resource{Name: "a", Runtime: exthost.Node, Entry: "a.ts", Exports: []exthost.Export{{Name: "do", Spec: agent.Spec{Name: "a__do"}}}})
	if err != nil {
		return 0, 0, err
	}
	const n = 200
	for i := range n + 1 {
		begun := time.Now()
		r, err := tools[0].Run(ctx, agent.ToolContext{ToolCallID: "c"}, agent.Call{ID: "c", Tool: "a__do", Input: json.RawMessage(`{"n":1}`)})
		if err != nil || string(r.Output) != "2" {
			return 0, 0, fmt.Errorf("calling the worker: %s %w", r.Text, err)
		}
		if ms := time.Since(begun).Seconds() * 1000; i == 0 {
			first = ms
		} else {
			later += ms / n
		}
	}
	return first, later, nil
}

// serverArg makes this program a server of the Model Context Protocol on its input and output.
const serverArg = "-server"

// serveTools answers as such a server does, with tools that nobody calls.
func serveTools([]string) error {
	var tools []map[string]any
	for i := range serverTools {
		tools = append(tools, map[string]any{
			"name": fmt.Sprintf("t%d", i), "description": strings.Repeat("what it does ", 40),
			"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"path": map[string]string{"type": "string"}}},
		})
	}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return err
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": q.ID}
		switch {
		case q.ID == nil:
			continue
		case q.Method == "initialize":
			answer["result"] = map[string]any{
				"protocolVersion": q.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": "bench", "version": "1"},
			}
		case q.Method == "tools/list":
			answer["result"] = map[string]any{"tools": tools}
		case q.Method == "ping":
			answer["result"] = map[string]any{}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "there is no such method"}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return in.Err()
}

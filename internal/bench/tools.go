package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
)

const (
	serverCount = 10
	serverTools = 20 // of each server

	startRatio = 1.3 // a start with servers, to one without: nobody waits for them
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
	return []Figure{
		{What: "start, until something can be typed", Unit: "ms", Spread: with},
		{What: "to the same without servers", Unit: "×", Aim: startRatio, Spread: ratio(with, bare.Min)},
		{What: "until all of them are there", Unit: "ms", Spread: over(times[serverCount], func(l lists) float64 { return l.All })},
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
		r, err := client.Query[query.ServerReport](ctx, c, query.ListServers{Session: s.Info.ID})
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

// serverArg makes this program a server of the Model Context Protocol on its input and output.
const serverArg = "-server"

// serveTools answers as such a server does, with tools that nobody calls.
func serveTools(arguments) error {
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

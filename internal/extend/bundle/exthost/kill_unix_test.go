//go:build unix

package exthost

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dure/agent"
)

const mortal = `import { writeSync } from "node:fs";
	let waiting = 0;
	export const handlers = {
		pid: () => process.pid,
		wait: () => { waiting++; return new Promise(() => {}); },
		all: async (ctx, i) => { while (waiting < i.n) await new Promise((r) => setTimeout(r, 1)); return waiting; },
		half: () => { writeSync(1, '{"jsonrpc":'); return new Promise(() => {}); },
		quit: () => process.exit(1),
	};`

func mortalTool(t testing.TB, h *Host, name string) agent.Tool {
	return tool(t, h, Resource{Name: "m", Runtime: Node, Entry: "m.js", Exports: []Export{{Name: name, Spec: agent.Spec{Name: "m__" + name}}}})
}

// Every call of a worker that is killed is answered, once, and the next one is served.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"m.js": mortal}), withNode(t))
	const n = 20
	for range 3 {
		pid, err := strconv.Atoi(string(run(t, t.Context(), mortalTool(t, h, "pid"), `{}`).Output))
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan agent.Result, n)
		var all sync.WaitGroup
		for range n {
			all.Go(func() { results <- run(t, t.Context(), mortalTool(t, h, "wait"), `{}`) })
		}
		wantOutput(t, run(t, t.Context(), mortalTool(t, h, "all"), `{"n":20}`), "20")
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		for range n {
			wantError(t, <-results, agent.ErrTool, "is gone: it was ended by")
		}
	}
}

// A message that never ends is none.
func TestHalfAMessage(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"m.js": mortal}), withNode(t))
	half := make(chan agent.Result, 1)
	wantOutput(t, run(t, t.Context(), mortalTool(t, h, "all"), `{"n":0}`), "0")
	go func() { half <- run(t, t.Context(), mortalTool(t, h, "half"), `{}`) }()
	late := time.After(patience)
	for { // whatever is said next belongs to it
		r := run(t, t.Context(), mortalTool(t, h, "all"), `{"n":0}`)
		select {
		case r := <-half:
			wantError(t, r, agent.ErrTool, "belongs to its messages")
			wantOutput(t, run(t, t.Context(), mortalTool(t, h, "all"), `{"n":0}`), "0")
			return
		case <-late:
			t.Fatalf("the worker goes on: %+v", r)
		default:
		}
	}
}

// A worker that keeps ending is started with pauses that grow, until one works.
func TestPauses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	h := host(t, bundle(t, map[string]string{"m.js": mortal}), withNode(t), func(c *Config) {
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	quit, pid := mortalTool(t, h, "quit"), mortalTool(t, h, "pid")
	for range freeStarts {
		wantError(t, run(t, t.Context(), quit, `{}`), agent.ErrTool, "exit code 1")
	}
	wantError(t, run(t, t.Context(), quit, `{}`), agent.ErrTool, "5 times in a row, and is started again in 1s")
	pass(time.Second)
	wantError(t, run(t, t.Context(), quit, `{}`), agent.ErrTool, "exit code 1")
	wantError(t, run(t, t.Context(), quit, `{}`), agent.ErrTool, "6 times in a row, and is started again in 2s")
	pass(2 * time.Second)
	if r := run(t, t.Context(), pid, `{}`); r.Failed() {
		t.Fatal(r.Text)
	}
	wantError(t, run(t, t.Context(), quit, `{}`), agent.ErrTool, "exit code 1")
	if r := run(t, t.Context(), pid, `{}`); r.Failed() {
		t.Errorf("what works is forgotten: %s", r.Text)
	}
	if wait := (&slot{host: h, fails: 100, since: now}).pause(); wait != lastPause {
		t.Errorf("paused for %v", wait)
	}
}

// Whatever a worker says, it is a message or an error.
func FuzzWire(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"result":null}` + "\n")
	f.Add(`{"jsonrpc":"2.0","method":"log","params":{"text":"x"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"code":"E"}}}` + "\n")
	f.Add(`{"jsonrpc":"2.0","id":-1}` + "\n{}\n")
	f.Fuzz(func(t *testing.T, said string) {
		const most = 1 << 10
		heard := 0
		w := newWire(most, func(m message) {
			if heard++; m.Method == "" {
				t.Error("a message without a name was passed on")
			}
		})
		answer, id, err := w.ask(context.Background(), "ping", struct{}{})
		if err != nil || id != 1 {
			t.Fatal(id, err)
		}
		if err := w.read(strings.NewReader(said)); err == nil {
			t.Error("it read on behind the end")
		}
		select {
		case m := <-answer:
			if v, err := m.value(); err == nil && len(v) > 0 && !json.Valid(v) {
				t.Errorf("answered with %q", v)
			}
		default:
		}
		if lines := strings.Count(said, "\n"); heard > lines {
			t.Errorf("%d messages in %d lines", heard, lines)
		}
	})
}

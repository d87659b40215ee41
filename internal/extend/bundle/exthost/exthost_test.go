package exthost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(prooftest.Many{M: m}) }

// patience is how long a test waits for what has to come.
const patience = 60 * time.Second

// bundle makes a folder of files.
func bundle(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// host returns a host of a bundle that runs in a box of its own.
func host(t testing.TB, root string, more ...func(*Config)) *Host {
	t.Helper()
	box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
	t.Cleanup(func() { _ = box.Close() })
	c := Config{
		Box: box, Root: root, Dir: root, Env: []string{"PATH=" + os.Getenv("PATH")},
		Limits: Limits{Call: patience, Start: patience, Hook: patience},
	}
	for _, f := range more {
		f(&c)
	}
	h := New(c)
	t.Cleanup(h.Close)
	return h
}

// withNode has a host run modules.
func withNode(t testing.TB) func(*Config) {
	node := prooftest.Program(t, "node")
	return func(c *Config) { c.Node = func() (string, error) { return node, nil } }
}

// tool returns the only tool of a resource.
func tool(t testing.TB, h *Host, r Resource) agent.Tool {
	t.Helper()
	if len(r.Exports) == 0 {
		r.Exports = []Export{{Name: "do", Spec: agent.Spec{Name: r.Name + "__do"}}}
	}
	tools, err := h.Tools(r)
	if err != nil {
		t.Fatal(err)
	}
	return tools[0]
}

// run calls a tool, which always has a result.
func run(t testing.TB, ctx context.Context, tl agent.Tool, in string) agent.Result {
	t.Helper()
	c := agent.Call{ID: "call-1", Tool: tl.Spec().Name, Input: json.RawMessage(in)}
	tc := agent.ToolContext{
		AgentName: "root", InstanceKey: "s1", TurnID: "t1", ToolCallID: c.ID, Workdir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
		Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "now"}, {Type: agent.CallBlock, Call: &c}}},
	}
	r, err := tl.Run(ctx, tc, c)
	if err != nil {
		t.Fatalf("a tool that is not ours returned an error: %v", err)
	}
	return r
}

func wantOutput(t testing.TB, r agent.Result, want string) {
	t.Helper()
	if r.Status != agent.StatusOK || string(r.Output) != want {
		t.Fatalf("got %s %s %q, want %s", r.Status, r.Output, r.Text, want)
	}
}

func wantError(t testing.TB, r agent.Result, code agent.ErrorCode, part string) {
	t.Helper()
	if r.Error == nil || r.Error.Code != code || !strings.Contains(r.Error.Message, part) {
		t.Fatalf("got %s %q %+v, want %s with %q", r.Status, r.Text, r.Error, code, part)
	}
}

const typed = `
import type { ToolHandler } from "@goondan/core";
import { readFileSync } from "node:fs";
import { twice } from "./lib/twice.js";
enum Kind { A = 3 }
export const handlers: Record<string, ToolHandler> = {
  do: async (ctx, input) => ({ n: twice(input.n as number) + Kind.A, ctx: Object.keys(ctx).sort(), calls: ctx.message.toolCalls.length }),
  "calc.add": (_ctx, { a, b }) => a + b,
  text: () => "plain",
  none: () => undefined,
};
export default {};
`

func TestModules(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{
		"tools/a.ts": typed, "tools/lib/twice.ts": "export const twice = (n: number): number => n * 2;",
		"old.js":                              "export default { do: (ctx, i) => ({ old: i.n }) };",
		"single.js":                           "export default async () => 7;",
		"npm.mjs":                             "import p, { q } from 'pack'; import s from '@at/scope/sub'; export const handlers = { do: () => [p, q, s] };",
		"node_modules/pack/package.json":      `{"exports": {".": {"require": "./no.cjs", "import": "./m.mjs"}}}`,
		"node_modules/pack/m.mjs":             "export default 'p'; export const q = 'q';",
		"node_modules/@at/scope/sub/index.js": "module.exports = require('path').basename('/x/s');",
		"where.ts":                            "export const handlers = { do: () => import.meta.url };",
	}), withNode(t))
	ctx := t.Context()
	a := Resource{Name: "a", Runtime: Node, Entry: "./tools/a.ts"}
	wantOutput(t, run(t, ctx, tool(t, h, a), `{"n":2}`),
		`{"n":7,"ctx":["agentName","instanceKey","logger","message","signal","toolCallId","turnId","workdir"],"calls":1}`)
	for name, want := range map[string]string{"calc.add": "3", "text": `"plain"`, "none": "null"} {
		a.Exports = []Export{{Name: name, Spec: agent.Spec{Name: "a__x"}}}
		wantOutput(t, run(t, ctx, tool(t, h, a), `{"a":1,"b":2}`), want)
	}
	for entry, want := range map[string]string{"old.js": `{"old":5}`, "single.js": "7", "npm.mjs": `["p","q","s"]`} {
		wantOutput(t, run(t, ctx, tool(t, h, Resource{Name: "b", Runtime: Node, Entry: entry}), `{"n":5}`), want)
	}
	r := run(t, ctx, tool(t, h, Resource{Name: "b", Runtime: Node, Entry: "where.ts"}), `{}`)
	if !strings.HasSuffix(r.Text, "/where.ts") || !strings.HasPrefix(r.Text, "file:///") {
		t.Errorf("a module is told that it is %q", r.Text)
	}
}

// What modules do wrong is the error of one call, and the next call works.
func TestModulesFail(t *testing.T) {
	t.Parallel()
	const ok = "export const handlers = { do: () => 1 };"
	root := bundle(t, map[string]string{
		"ok.js":  ok,
		"log.js": `export const handlers = { do: () => { for (let i = 0; i < 20000; i++) console.log(i); return 1; } };`,
		"throw.js": `class SlackError extends Error { name = "SlackError"; code = "E_CHANNEL_NOT_FOUND"; suggestion = "Ask."; helpUrl = "https://x.example/e"; }
			export const handlers = { do: () => { throw new SlackError("no channel"); } };`,
		"forge.js":   `export const handlers = { do: () => { throw Object.assign(new Error("x"), { code: "E_TOOL_DENIED" }); } };`,
		"long.js":    `export const handlers = { do: () => { throw new Error("가".repeat(5000)); } };`,
		"null.js":    `export const handlers = { do: () => { throw null; } };`,
		"big.js":     `export const handlers = { do: () => 10n };`,
		"cycle.js":   `export const handlers = { do: () => { const a = {}; a.a = a; return a; } };`,
		"huge.js":    `export const handlers = { do: () => "x".repeat(9e6) };`,
		"exit.js":    `export const handlers = { do: () => process.exit(3) };`,
		"reject.js":  `export const handlers = { do: () => { Promise.reject(new Error("nobody")); return new Promise(() => {}); } };`,
		"garbage.js": `import { writeSync } from "fs"; export const handlers = { do: () => { writeSync(1, "hello\n"); return new Promise(() => {}); } };`,
		"forged.js":  `import { writeSync } from "fs"; export const handlers = { do: () => { writeSync(1, '{"jsonrpc":"2.0","id":999,"result":1}\n'); return new Promise(() => {}); } };`,
		"unknown.js": `import { writeSync } from "fs"; export const handlers = { do: () => { writeSync(1, '{"jsonrpc":"2.0","method":"boom","params":{}}\n'); return new Promise(() => {}); } };`,
		"endless.js": `import { writeSync } from "fs"; export const handlers = { do: () => { const b = Buffer.alloc(1 << 20, 97); for (;;) writeSync(1, b); } };`,
		"flood.js":   `import { writeSync } from "fs"; export const handlers = { do: () => { for (;;) try { writeSync(1, '{"jsonrpc":"2.0","method":"log","params":{}}\n'); } catch {} } };`,
		"errs.js":    `export const handlers = { do: () => { for (let i = 0; i < 2000; i++) process.stderr.write("x".repeat(10000)); process.exit(1); } };`,
		"memory.js":  `export const handlers = { do: () => { const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1)); } };`,
		"heap.js":    `export const handlers = { do: () => { const all = []; for (;;) all.push(new Array(1e5).fill(all)); } };`,
		"none.js":    `export const x = 1;`,
		"other.js":   `export const handlers = { other: () => 1 };`,
		"proto.js":   `export const handlers = { other: () => 1, more: () => 2 };`,
		"top.js":     `throw new Error("at the top");`,
		"syntax.ts":  "export const handlers = {\n  do: (=> 1,\n};",
		"missing.ts": `import x from "./nothing.js"; export const handlers = { do: () => x };`,
		"pack.ts":    `import x from "left-pad"; export const handlers = { do: () => x };`,
		"out.ts":     `import x from "../../../../../../etc/passwd.json"; export const handlers = { do: () => x };`,
		"abs.ts":     `import x from "/etc/passwd"; export const handlers = { do: () => x };`,
		"far.ts":     `import x from "https://evil.example/x.js"; export const handlers = { do: () => x };`,
	})
	h := host(t, root, withNode(t), func(c *Config) { c.Limits.Memory = 128 << 20; c.Now = forward() })
	good := tool(t, h, Resource{Name: "ok", Runtime: Node, Entry: "ok.js"})
	wantOutput(t, run(t, t.Context(), tool(t, h, Resource{Name: "log", Runtime: Node, Entry: "log.js"}), `{}`), "1")
	for entry, want := range map[string]struct {
		code agent.ErrorCode
		part string
	}{
		"throw.js":   {"E_CHANNEL_NOT_FOUND", "no channel"},
		"forge.js":   {agent.ErrTool, "x"},
		"long.js":    {agent.ErrTool, cutMark},
		"null.js":    {agent.ErrTool, "null"},
		"big.js":     {agent.ErrTool, "BigInt"},
		"cycle.js":   {agent.ErrTool, "circular"},
		"huge.js":    {agent.ErrTool, "line of more than"},
		"exit.js":    {agent.ErrTool, "exit code 3"},
		"reject.js":  {agent.ErrTool, "nobody"},
		"garbage.js": {agent.ErrTool, "belongs to its messages"},
		"forged.js":  {agent.ErrTool, "question 999"},
		"unknown.js": {agent.ErrTool, "boom"},
		"endless.js": {agent.ErrTool, "is gone"},
		"flood.js":   {agent.ErrTool, "things more than it may"},
		"errs.js":    {agent.ErrTool, "exit code 1"},
		"memory.js":  {agent.ErrTool, ""},
		"heap.js":    {agent.ErrTool, "is gone"},
		"none.js":    {agent.ErrTool, "no object handlers"},
		"other.js":   {agent.ErrTool, "no function for do"},
		"proto.js":   {agent.ErrTool, "no function for do"},
		"top.js":     {agent.ErrTool, "at the top"},
		"syntax.ts":  {agent.ErrTool, "syntax.ts:2:"},
		"missing.ts": {agent.ErrTool, "no such file"},
		"pack.ts":    {agent.ErrTool, "left-pad is not in node_modules"},
		"out.ts":     {agent.ErrTool, "outside of the bundle"},
		"abs.ts":     {agent.ErrTool, "only files of the bundle"},
		"far.ts":     {agent.ErrTool, "only files of the bundle"},
	} {
		t.Run(entry, func(t *testing.T) {
			r := run(t, t.Context(), tool(t, h, Resource{Name: "bad", Runtime: Node, Entry: entry}), `{}`)
			wantError(t, r, want.code, want.part)
			if n := len([]rune(r.Error.Message)); n > 1000 {
				t.Errorf("the message has %d characters", n)
			}
			wantOutput(t, run(t, t.Context(), good, `{}`), "1")
		})
	}
}

// forward is a clock in which any pause is over by the next time that it is read.
func forward() func() time.Time {
	var mu sync.Mutex
	at := time.Unix(1e9, 0)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Hour)
		return at
	}
}

const slow = `let begun = false, seen = false;
	const until = async (f) => { while (!f()) await new Promise((r) => setTimeout(r, 1)); };
	export const handlers = {
		do: (ctx) => { begun = true; return new Promise(() => ctx.signal.addEventListener("abort", () => (seen = true))); },
		begun: () => until(() => begun), wait: () => until(() => seen), seen: () => seen, hang: () => { for (;;); } };`

func export(t testing.TB, h *Host, name string, limit time.Duration) agent.Tool {
	return tool(t, h, Resource{Name: "s", Runtime: Node, Entry: "slow.js", Exports: []Export{{Name: name, Spec: agent.Spec{Name: "s__" + name, Limit: limit}}}})
}

// A call that is given up leaves the others alone if the worker still answers.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"slow.js": slow}), withNode(t), func(c *Config) { c.Limits.Alive = patience })
	wantOutput(t, run(t, t.Context(), export(t, h, "seen", 0), `{}`), "false")
	ctx, cancel := context.WithCancel(t.Context())
	given, other := make(chan agent.Result, 1), make(chan agent.Result, 1)
	go func() { given <- run(t, ctx, export(t, h, "do", 0), `{}`) }()
	go func() { other <- run(t, t.Context(), export(t, h, "wait", 0), `{}`) }()
	wantOutput(t, run(t, t.Context(), export(t, h, "begun", 0), `{}`), "null")
	cancel()
	wantError(t, <-given, agent.ErrAborted, "canceled")
	wantOutput(t, <-other, "null")
	wantOutput(t, run(t, t.Context(), export(t, h, "seen", 0), `{}`), "true")
	wantError(t, run(t, ctx, export(t, h, "seen", 0), `{}`), agent.ErrAborted, "canceled")
}

// A worker that does not answer any more is ended, and the next call has a new one.
func TestHung(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"slow.js": slow}), withNode(t), func(c *Config) { c.Limits.Alive = 200 * time.Millisecond })
	wantOutput(t, run(t, t.Context(), export(t, h, "seen", 0), `{}`), "false")
	wantError(t, run(t, t.Context(), export(t, h, "hang", 100*time.Millisecond), `{}`), agent.ErrTimeout, "given up after 100ms")
	wantOutput(t, run(t, t.Context(), export(t, h, "seen", 0), `{}`), "false")
}

// A module is loaded anew when one of its files changes, or one that was missing comes.
func TestReload(t *testing.T) {
	t.Parallel()
	root := bundle(t, map[string]string{
		"a.ts":     `import { v } from "./lib/v"; let n = 0; export const handlers = { do: () => [v, ++n], slow: async () => { await new Promise((r) => setTimeout(r, 200)); return v; } };`,
		"lib/v.js": "export const v = 1;",
	})
	var asked []string
	h := host(t, root, withNode(t), func(c *Config) {
		c.Approve = func(entry, hash string) error {
			asked = append(asked, entry+" "+hash)
			if len(asked) == 4 {
				return errors.New("it was not agreed to")
			}
			return nil
		}
	})
	a := tool(t, h, Resource{Name: "a", Runtime: Node, Entry: "a.ts"})
	wantOutput(t, run(t, t.Context(), a, `{}`), "[1,1]")
	wantOutput(t, run(t, t.Context(), a, `{}`), "[1,2]")
	slow := make(chan agent.Result)
	go func() {
		tl := tool(t, h, Resource{Name: "a", Runtime: Node, Entry: "a.ts", Exports: []Export{{Name: "slow", Spec: agent.Spec{Name: "a__slow"}}}})
		slow <- run(t, context.WithoutCancel(t.Context()), tl, `{}`)
	}()
	wantOutput(t, <-slow, "1")
	write(t, filepath.Join(root, "lib/v.js"), "export const v = 2;")
	wantOutput(t, run(t, t.Context(), a, `{}`), "[2,1]")
	write(t, filepath.Join(root, "lib/v.ts"), "export const v: number = 3;") // comes before .js
	wantOutput(t, run(t, t.Context(), a, `{}`), "[3,1]")
	write(t, filepath.Join(root, "lib/v.ts"), "export const v = ;")
	wantError(t, run(t, t.Context(), a, `{}`), agent.ErrTool, "lib/v.ts:1:18")
	write(t, filepath.Join(root, "lib/v.ts"), "export const v = 4;")
	wantError(t, run(t, t.Context(), a, `{}`), agent.ErrTool, "not agreed to")
	if len(asked) != 4 || asked[0] == asked[1] {
		t.Errorf("asked %q", asked)
	}
}

// An executable that was changed is not run without being agreed to, whoever changed it.
func TestApprovingExecutables(t *testing.T) {
	t.Parallel()
	root := bundle(t, map[string]string{"x": "#!/bin/sh\necho 1\n"})
	first := ""
	h := host(t, root, func(c *Config) {
		c.Approve = func(entry, hash string) error {
			if first = cmp.Or(first, hash); entry != "x" || hash != first {
				return errors.New("it was not agreed to")
			}
			return nil
		}
	})
	x := tool(t, h, Resource{Name: "x", Runtime: Process, Entry: "./x"})
	wantOutput(t, run(t, t.Context(), x, `{}`), "1")
	wantOutput(t, run(t, t.Context(), x, `{}`), "1")
	write(t, filepath.Join(root, "x"), "#!/bin/sh\necho 2\n")
	wantError(t, run(t, t.Context(), x, `{}`), agent.ErrTool, "not agreed to")
}

func TestAnswersLater(t *testing.T) {
	t.Parallel()
	const code = `import { pending } from "dure";
		export const handlers = {
			do: (ctx, i) => { const p = pending("build-1", "it builds"); setTimeout(() => i.fail ? p.reject(new Error("broken")) : p.resolve({ ok: 1 }), i.wait); return p; },
			now: () => { const p = pending("x"); p.resolve(7); p.resolve(8); return p; },
			data: () => ({ __async: true, handle: "h" }),
			die: () => process.exit(1) };`
	settled := make(chan agent.Settlement, 8)
	h := host(t, bundle(t, map[string]string{"a.js": code}), withNode(t), func(c *Config) {
		c.Settle = func(_ context.Context, s agent.Settlement) error { settled <- s; return nil }
	})
	export := func(name string) agent.Tool {
		return tool(t, h, Resource{Name: "a", Runtime: Node, Entry: "a.js", Exports: []Export{{Name: name, Spec: agent.Spec{Name: "a__" + name}}}})
	}
	r := run(t, t.Context(), export("do"), `{"wait":1}`)
	if r.Status != agent.StatusPending || r.Handle != "code:call-1:build-1" || r.Text != "it builds" {
		t.Fatalf("%+v", r)
	}
	s := <-settled
	wantOutput(t, s.Result, `{"ok":1}`)
	if s.Handle != r.Handle {
		t.Errorf("settled %s", s.Handle)
	}
	run(t, t.Context(), export("do"), `{"wait":1,"fail":true}`)
	wantError(t, (<-settled).Result, agent.ErrTool, "broken")
	run(t, t.Context(), export("now"), `{}`)
	wantOutput(t, (<-settled).Result, "7")
	wantOutput(t, run(t, t.Context(), export("data"), `{}`), `{"__async":true,"handle":"h"}`)
	run(t, t.Context(), export("do"), `{"wait":1e9}`)
	wantError(t, run(t, t.Context(), export("die"), `{}`), agent.ErrTool, "exit code 1")
	wantError(t, (<-settled).Result, agent.ErrLost, "exit code 1")
	if len(settled) > 0 {
		t.Errorf("settled twice: %+v", <-settled)
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "sh")
	root := bundle(t, map[string]string{
		"echo":   "#!/bin/sh\nread line\necho \"$line\" | sed 's/.*\"input\":\\({[^}]*}\\).*/\\1/'\n",
		"dir":    "#!/bin/sh\nprintf '\"%s\"' \"$DURE_IDEMPOTENCY_KEY$NODE_OPTIONS\"\n",
		"bad":    "#!/bin/sh\necho hello\n",
		"fail":   "#!/bin/sh\necho oh >&2; exit 4\n",
		"says":   "#!/bin/sh\necho '{\"error\":{\"message\":\"no channel\",\"code\":\"E_CHANNEL\",\"suggestion\":\"Ask.\"}}'; exit 1\n",
		"flood":  "#!/bin/sh\nwhile :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done\n",
		"hang":   "#!/bin/sh\nwhile :; do :; done\n",
		"silent": "#!/bin/sh\n",
	})
	h := host(t, root, func(c *Config) {
		c.Limits.Answer = 1 << 20
		c.Env = append(c.Env, "NODE_OPTIONS=--require=evil", "LD_PRELOAD=")
	})
	ctx := agent.WithCallEnv(t.Context(), agent.CallEnv{Key: "k1"})
	call := func(entry string, limit time.Duration) agent.Result {
		tl := tool(t, h, Resource{Name: "p", Runtime: Process, Entry: entry, Exports: []Export{{Name: "do", Spec: agent.Spec{Name: "p__do", Limit: limit}}}})
		return run(t, ctx, tl, `{"a":1}`)
	}
	wantOutput(t, call("echo", 0), `{"a":1}`)
	wantOutput(t, call("dir", 0), `"k1"`)
	wantOutput(t, call("silent", 0), "null")
	wantError(t, call("bad", 0), agent.ErrTool, `no JSON: "hello"`)
	wantError(t, call("fail", 0), agent.ErrTool, "exit code 4\noh")
	wantError(t, call("says", 0), "E_CHANNEL", "no channel")
	wantError(t, call("hang", 100*time.Millisecond), agent.ErrTimeout, "given up after 100ms")
	wantError(t, call("flood", 500*time.Millisecond), agent.ErrTimeout, "given up")
}

func TestOtherRuntimes(t *testing.T) {
	t.Parallel()
	h := host(t, t.TempDir(), func(c *Config) {
		c.Builtins = map[string]Func{
			"do": func(_ context.Context, tc agent.ToolContext, in json.RawMessage) (any, error) {
				return tc.AgentName, nil
			},
			"fail": func(context.Context, agent.ToolContext, json.RawMessage) (any, error) {
				return nil, io.ErrUnexpectedEOF
			},
			"panic": func(context.Context, agent.ToolContext, json.RawMessage) (any, error) { panic("oh") },
		}
		c.Post = func(_ context.Context, r Request) (Response, error) {
			if strings.HasSuffix(r.URL, "/no") {
				return Response{Status: 404, Body: []byte("gone")}, nil
			}
			return Response{Status: 200, Body: []byte(`{"got":` + string(r.Body) + `}`)}, nil
		}
		c.Invoke = func(_ context.Context, server, tool string, in json.RawMessage) (agent.Result, error) {
			return agent.OK(server + " " + tool + " " + string(in)), nil
		}
	})
	call := func(r Resource) agent.Result { r.Name = "o"; return run(t, t.Context(), tool(t, h, r), `{}`) }
	if r := call(Resource{Runtime: Builtin}); r.Text != "root" {
		t.Errorf("%+v", r)
	}
	wantError(t, call(Resource{Runtime: Builtin, Entry: "fail"}), agent.ErrTool, "unexpected EOF")
	wantError(t, call(Resource{Runtime: Builtin, Entry: "panic"}), agent.ErrTool, "it panicked: oh")
	if r := call(Resource{Runtime: HTTP, Entry: "https://x.example/yes"}); !strings.Contains(string(r.Output), `"tool":"o","export":"do","input":{}`) {
		t.Errorf("%+v", r)
	}
	wantError(t, call(Resource{Runtime: HTTP, Entry: "https://x.example/no"}), agent.ErrTool, "status 404")
	if r := call(Resource{Runtime: MCP, Entry: "srv"}); r.Text != "srv do {}" {
		t.Errorf("%+v", r)
	}
}

func TestResourcesRefused(t *testing.T) {
	t.Parallel()
	root := bundle(t, map[string]string{"ok.js": ""})
	prooftest.Link(t, os.Symlink("/etc/passwd", filepath.Join(root, "link.js")))
	h := host(t, root)
	one := []Export{{Name: "do"}}
	for _, r := range []Resource{
		{Runtime: Node, Entry: "ok.js"},
		{Runtime: Node, Entry: "ok.js", Exports: []Export{{Name: "a"}, {Name: "a"}}},
		{Runtime: Node, Exports: one},
		{Runtime: Node, Entry: "no.js", Exports: one},
		{Runtime: Node, Entry: "../x.js", Exports: one},
		{Runtime: Process, Entry: "/bin/sh", Exports: one},
		{Runtime: Process, Entry: "link.js", Exports: one},
		{Runtime: "deno", Entry: "ok.js", Exports: one},
		{Runtime: HTTP, Entry: "https://x.example", Exports: one}, // nothing posts
		{Runtime: MCP, Entry: "srv", Exports: one},
		{Runtime: Builtin, Exports: one},
	} {
		if _, err := h.Tools(r); err == nil {
			t.Errorf("%+v is taken", r)
		}
	}
	if _, err := h.Tools(Resource{Runtime: Node, Entry: "ok.js", Exports: one}); err != nil {
		t.Error(err)
	}
	wantError(t, run(t, t.Context(), tool(t, h, Resource{Name: "x", Runtime: Node, Entry: "ok.js"}), `{}`), agent.ErrTool, "no Node.js")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{
		"a.js": "export const handlers = { x: () => 1, y: 2 };",
		"b.js": "export default { x: () => 1 };",
		"c.js": "export const handlers = {",
	}), withNode(t))
	for entry, want := range map[string]string{"a.js": "[y z] false", "b.js": "[y z] true", "c.js": "c.js:1:"} {
		missing, old, err := h.Check(t.Context(), Resource{Name: "a", Runtime: Node, Entry: entry, Exports: []Export{{Name: "x"}, {Name: "y"}, {Name: "z"}}})
		if got := fmt.Sprint(missing, old, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s", entry, got)
		}
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("가", 1200)
	for most, want := range map[int]string{
		1000: strings.Repeat("가", 985) + cutMark,
		20:   strings.Repeat("가", 5) + cutMark,
		15:   strings.Repeat("가", 15),
		10:   strings.Repeat("가", 10),
		1200: long,
	} {
		if got := shortened(long, most); got != want {
			t.Errorf("%d: %q", most, got)
		}
	}
}

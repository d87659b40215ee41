package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

// told events.
type diary struct {
	mu    sync.Mutex
	lines []string
	more  chan string
}

func (d *diary) write(from, name string, data json.RawMessage) {
	line := from + " " + name + " " + string(data)
	d.mu.Lock()
	d.lines = append(d.lines, line)
	d.mu.Unlock()
	d.more <- line
}

// await waits for a line.
func (d *diary) await(t testing.TB, want string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case line := <-d.more:
			if line == want {
				return
			}
		case <-late:
			t.Fatalf("nobody said %q: %q", want, d.lines)
		}
	}
}

func newSet(t testing.TB) (*Set, *diary) {
	t.Helper()
	d := &diary{more: make(chan string, 1000)}
	s := NewSet(slog.New(slog.DiscardHandler), d.write)
	t.Cleanup(s.Close)
	return s, d
}

func callMoment(args string) Moment {
	return Moment{Agent: "root", ToolCall: &ToolCall{ID: "c1", Name: "bash__exec", Arguments: json.RawMessage(args)}}
}

const logging = `
import type { ExtensionApi } from "@goondan/core";
let register_ = 0;
export async function register(api: ExtensionApi, config: any): Promise<void> {
  api.tools.register({ name: "weather.get", description: "Weather", parameters: { type: "object", properties: { city: { type: "string" } } },
    handler: async (ctx, input) => ({ city: input.city, by: ctx.agentName, state: api.state.get() }) });
  api.pipelines.mutate("toolCall.pre", async (ctx) => { ctx.toolCall.arguments.seen = [...(ctx.toolCall.arguments.seen ?? []), api.extension.metadata.name]; return ctx; });
  api.pipelines.wrap("toolCall.exec", async (ctx, next) => {
    const result = await next(ctx);
    api.state.set({ calls: (api.state.get()?.calls ?? 0) + 1, status: ctx.toolResult.status });
    return { ...result, output: [config.mark, result.output] };
  }, { priority: config.priority });
  api.pipelines.mutate("toolCall.post", async (ctx) => {
    if (ctx.toolResult?.status === "error") api.events.emit("tool.error", { name: ctx.toolCall.name });
    return ctx;
  });
  api.pipelines.mutate("step.tools", (ctx) => ({ ...ctx, toolCatalog: [...ctx.toolCatalog.filter((t) => t.name !== "gone"), { name: "made_up" },
    { name: api.extension.metadata.name + "__weather_get", source: { type: "extension", name: api.extension.metadata.name } }] }));
  api.pipelines.wrap("step", (ctx, next) => next({ ...ctx, toolCatalog: ctx.toolCatalog.slice(1) }));
  api.events.on("hello", (data) => api.events.emit("answer", data));
  api.logger.info("ready", api.extension.metadata.version);
}
`

func TestExtensions(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"log.ts": logging}), withNode(t))
	s, d := newSet(t)
	ctx := t.Context()
	add := func(name string, priority int) {
		t.Helper()
		err := s.Add(ctx, Extension{
			Name: name, Host: h, Runtime: Node, Entry: "log.ts", Metadata: map[string]string{"version": "1"},
			Config: json.RawMessage(fmt.Sprintf(`{"mark":%q,"priority":%d}`, name, priority)),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("inner", 10)
	add("outer", 5)
	if err := s.Add(ctx, Extension{Name: "native", Register: inGo}); err != nil {
		t.Fatal(err)
	}

	tools, err := s.Tools(ctx)
	if err != nil || len(tools) != 3 || tools[0].Spec().Name != "inner__weather_get" {
		t.Fatalf("%v %v", tools, err)
	}
	wantOutput(t, run(t, ctx, tools[0], `{"city":"Seoul"}`), `{"city":"Seoul","by":"root","state":null}`)
	wantOutput(t, run(t, ctx, tools[2], `{}`), `"go"`)

	m, err := s.Mutate(ctx, CallPre, callMoment(`{}`))
	if err != nil || string(m.ToolCall.Arguments) != `{"seen":["inner","outer","native"]}` {
		t.Fatalf("%s %v", m.ToolCall.Arguments, err)
	}
	ran := 0
	out, err := s.Wrap(ctx, CallExec, m, func(context.Context, Moment) (json.RawMessage, error) {
		ran++
		return json.RawMessage(`{"status":"ok","output":1}`), nil
	})
	if err != nil || ran != 1 || string(out) != `{"status":"ok","output":["outer",["inner",1]]}` {
		t.Fatalf("%s %v, ran %d times", out, err, ran)
	}
	if got := string(s.State("inner")); got != `{"calls":1,"status":"ok"}` {
		t.Errorf("state %s", got)
	}

	m = callMoment(`{}`)
	m.ToolResult = &ToolResult{Status: "error"}
	m.ToolResult.Error = &struct {
		Message    string `json:"message"`
		Name       string `json:"name,omitempty"`
		Code       string `json:"code,omitempty"`
		Suggestion string `json:"suggestion,omitempty"`
		HelpURL    string `json:"helpUrl,omitempty"`
	}{Message: "oh"}
	if _, err := s.Mutate(ctx, CallPost, m); err != nil {
		t.Fatal(err)
	}
	d.await(t, `outer tool.error {"name":"bash__exec"}`)
	s.Tell("hello", json.RawMessage(`5`))
	d.await(t, `inner answer 5`)

	m, err = s.Mutate(ctx, StepTools, Moment{ToolCatalog: []CatalogItem{{Name: "a"}, {Name: "gone"}}})
	if err != nil || len(m.ToolCatalog) != 3 || m.ToolCatalog[0].Name != "a" || m.ToolCatalog[2].Name != "outer__weather_get" {
		t.Fatalf("%+v %v", m.ToolCatalog, err)
	}
	_, err = s.Wrap(ctx, AtStep, m, func(_ context.Context, got Moment) (json.RawMessage, error) {
		if len(got.ToolCatalog) != 1 {
			return nil, fmt.Errorf("%+v", got.ToolCatalog)
		}
		return json.RawMessage("{}"), nil
	})
	if err != nil {
		t.Error(err)
	}
}

// inGo is an extension in Go.
func inGo(_ context.Context, api *API) error {
	return errors.Join(
		api.RegisterTool("say", "Says it", nil, func(context.Context, agent.ToolContext, json.RawMessage) (any, error) { return "go", nil }),
		api.Mutate(CallPre, 0, func(_ context.Context, m Moment) (Moment, error) {
			args := strings.TrimSuffix(string(m.ToolCall.Arguments), "]}") + `,"native"]}`
			call := *m.ToolCall
			call.Arguments = json.RawMessage(args)
			m.ToolCall = &call
			return m, nil
		}),
		api.Wrap(CallExec, 0, func(ctx context.Context, m Moment, next Next) (json.RawMessage, error) { return next(ctx, m) }),
	)
}

// What an extension does wrong does not pass, and what was done stays done.
func TestExtensionsFail(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for name, body := range map[string]string{
		"throws":  `api.pipelines.mutate("toolCall.pre", () => { throw new Error("not this one"); })`,
		"renames": `api.pipelines.mutate("toolCall.pre", (c) => { c.toolCall.name = "other"; return c; })`,
		"empties": `api.pipelines.mutate("toolCall.pre", () => ({}))`,
		"lists":   `api.pipelines.mutate("toolCall.pre", (c) => { c.toolCall.arguments = []; return c; })`,
		"hangs":   `api.pipelines.mutate("toolCall.pre", () => { for (;;); })`,
		"exits":   `api.pipelines.mutate("toolCall.pre", () => process.exit(9))`,
		"after":   `api.pipelines.wrap("toolCall.exec", async (c, next) => { await next(c); throw new Error("late"); })`,
		"dies":    `api.pipelines.wrap("toolCall.exec", async (c, next) => { await next(c); process.exit(1); })`,
		"onion":   `api.pipelines.wrap("toolCall", async (c, next) => ({ ...(await next(c)), output: 7 }))`,
		"odd":     `api.pipelines.wrap("toolCall.exec", async (c, next) => { await next(c); return 5; })`,
		"twice":   `api.pipelines.wrap("toolCall.exec", async (c, next) => { await next(c); return next(c); })`,
		"before":  `api.pipelines.wrap("toolCall.exec", async () => { throw new Error("no"); })`,
		"instead": `api.pipelines.wrap("toolCall.exec", async () => ({ status: "ok", output: "cached" }))`,
		"changes": `api.pipelines.wrap("toolCall.exec", (c, next) => { c.toolCall.arguments.x = 1; return next(c); })`,
	} {
		files[name+".js"] = "export function register(api) { " + body + " }"
	}
	root := bundle(t, files)
	for name, want := range map[string]struct {
		point Point
		out   string // of the call; "" = it fails
		part  string
		ran   int
	}{
		"throws":  {CallPre, "", "not this one", 0},
		"renames": {CallPre, "", "only the arguments", 0},
		"empties": {CallPre, "", "left out toolCall", 0},
		"lists":   {CallPre, "", "no object", 0},
		"hangs":   {CallPre, "", "given up after 300ms", 0},
		"exits":   {CallPre, "", "exit code 9", 0},
		"after":   {CallExec, `{"status":"ok"}`, "", 1},
		"dies":    {CallExec, `{"status":"ok"}`, "", 1},
		"onion":   {CallExec, `{"status":"ok","output":7}`, "", 1},
		"odd":     {CallExec, `{"status":"ok"}`, "", 1},
		"twice":   {CallExec, `{"status":"ok"}`, "", 1},
		"before":  {CallExec, "", "no", 0},
		"instead": {CallExec, `{"status":"ok","output":"cached"}`, "", 0},
		"changes": {CallExec, `{"status":"ok"}`, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t, root, withNode(t), func(c *Config) {
				if name == "hangs" {
					c.Limits.Hook, c.Limits.Alive = 300*time.Millisecond, 100*time.Millisecond
				}
			})
			s, _ := newSet(t)
			if err := s.Add(t.Context(), Extension{Name: name, Host: h, Runtime: Node, Entry: name + ".js"}); err != nil {
				t.Fatal(err)
			}
			var out json.RawMessage
			var err error
			ran := 0
			if want.point == CallPre {
				_, err = s.Mutate(t.Context(), CallPre, callMoment(`{}`))
			} else {
				out, err = s.Wrap(t.Context(), CallExec, callMoment(`{}`), func(_ context.Context, m Moment) (json.RawMessage, error) {
					ran++
					if string(m.ToolCall.Arguments) != "{}" {
						return nil, fmt.Errorf("called with %s", m.ToolCall.Arguments)
					}
					return json.RawMessage(`{"status":"ok"}`), nil
				})
			}
			if ran != want.ran || string(out) != want.out || (err != nil) != (want.out == "") || err != nil && !strings.Contains(err.Error(), want.part) {
				t.Errorf("%s %v, ran %d times", out, err, ran)
			}
			if want.point != CallPre {
				return
			}
			// The next one is asked again, in a new worker if it has to be.
			if _, err := s.Mutate(t.Context(), CallPost, callMoment(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestExtensionsRefused(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{
		"point.js": `export function register(api) { api.pipelines.mutate("tool.before", (c) => c); }`,
		"space.js": `export function register(api) { api.pipelines.mutate("workspace.repoAvailable", (c) => c); }`,
		"exec.js":  `export function register(api) { api.pipelines.mutate("toolCall.exec", (c) => c); }`,
		"name.js":  `export function register(api) { api.tools.register({ name: "a__b", handler: () => 1 }); }`,
		"shape.js": `export function register(api) { api.tools.register({ name: "a", parameters: { type: "string" }, handler: () => 1 }); }`,
		"no.js":    `export function register(api) { api.tools.register({ name: "a" }); }`,
		"many.js":  `export function register(api) { for (let i = 0; i < 300; i++) api.tools.register({ name: "a" + i, handler: () => 1 }); }`,
		"fails.js": `export async function register(api) { throw new Error("not today"); }`,
		"none.js":  `export const x = 1;`,
		"ok.js":    `export function register(api) { api.tools.register({ name: "a", handler: () => 1 }); api.tools.register({ name: "a", handler: () => 2 }); }`,
	}), withNode(t))
	s, _ := newSet(t)
	for entry, want := range map[string]string{
		"point.js": "toolCall.pre", "space.js": "nothing to mutate", "exec.js": "nothing to mutate", "name.js": "no name of a tool", "shape.js": "no schema of an object",
		"no.js": "a function is needed", "many.js": "more than 256", "fails.js": "not today", "none.js": "no function register", "gone.js": "no such file",
	} {
		err := s.Add(t.Context(), Extension{Name: "x", Host: h, Runtime: Node, Entry: entry})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	ok := Extension{Name: "ok", Host: h, Runtime: Node, Entry: "ok.js"}
	if err := s.Add(t.Context(), ok); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), ok); err == nil {
		t.Error("it is there twice")
	}
	tools, err := s.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("%v %v", tools, err)
	}
	wantOutput(t, run(t, t.Context(), tools[0], `{}`), "2")
	other, _ := newSet(t)
	if err := other.Add(t.Context(), ok); err == nil {
		t.Error("a host belongs to two sets")
	}
}

// An executable is an extension if it speaks as a worker does.
func TestExecutableExtension(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "sh")
	const program = `#!/bin/sh
while read -r line; do
	id=${line#*'"id":'}; id=${id%%[,\}]*}
	case $line in
	*'"method":"load"'*)
		echo '{"jsonrpc":"2.0","method":"register","params":{"extension":"sh","kind":"tool","hook":7,"tool":"hi"}}'
		echo '{"jsonrpc":"2.0","id":'"$id"',"result":{}}' ;;
	*'"method":"call"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"value":"hello"}}' ;;
	*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":1,"message":"what?"}}' ;;
	esac
done
`
	h := host(t, bundle(t, map[string]string{"ext": program}))
	s, _ := newSet(t)
	if err := s.Add(t.Context(), Extension{Name: "sh", Host: h, Runtime: Process, Entry: "ext"}); err != nil {
		t.Fatal(err)
	}
	tools, err := s.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("%v %v", tools, err)
	}
	wantOutput(t, run(t, t.Context(), tools[0], `{}`), `"hello"`)
}

// An extension that changes is loaded anew, with what it has kept.
func TestExtensionReload(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.js": `export function register(api) { api.state.set({ n: 1 }); api.tools.register({ name: "one", handler: () => 1 }); }`}
	root := bundle(t, files)
	h := host(t, root, withNode(t))
	s, _ := newSet(t)
	if err := s.Add(t.Context(), Extension{Name: "a", Host: h, Runtime: Node, Entry: "a.js"}); err != nil {
		t.Fatal(err)
	}
	write(t, root+"/a.js", `export function register(api) { api.tools.register({ name: "two", handler: () => api.state.get() }); }`)
	tools, err := s.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].Spec().Name != "a__two" {
		t.Fatalf("%v %v", tools, err)
	}
	wantOutput(t, run(t, t.Context(), tools[0], `{}`), `{"n":1}`)
}

// An extension that ends its worker now and then, and works in between, is not paused.
func TestExtensionsThatWork(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{
		"a.js": `export function register(api) { api.pipelines.mutate("toolCall.pre", (c) => (c.toolCall.arguments.die ? process.exit(9) : c)); }`,
	}), withNode(t), func(c *Config) { c.Now = func() time.Time { return time.Unix(1e9, 0) } })
	s, _ := newSet(t)
	if err := s.Add(t.Context(), Extension{Name: "a", Host: h, Runtime: Node, Entry: "a.js"}); err != nil {
		t.Fatal(err)
	}
	for range freeStarts + 2 {
		if _, err := s.Mutate(t.Context(), CallPre, callMoment(`{"die":true}`)); err == nil || !strings.Contains(err.Error(), "exit code 9") {
			t.Fatal(err)
		}
		if _, err := s.Mutate(t.Context(), CallPre, callMoment(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
}

// What never comes is refused where it is registered, by extensions in Go too.
func TestOnlyPointsThatCome(t *testing.T) {
	t.Parallel()
	s, _ := newSet(t)
	s.Only(StepPre, CallExec)
	keep := func(_ context.Context, m Moment) (Moment, error) { return m, nil }
	around := func(ctx context.Context, m Moment, next Next) (json.RawMessage, error) { return next(ctx, m) }
	err := s.Add(t.Context(), Extension{Name: "fits", Register: func(_ context.Context, api *API) error {
		return errors.Join(api.Mutate(AtStep, 0, keep), api.Wrap(AtCall, 0, around))
	}})
	if err != nil {
		t.Error(err)
	}
	err = s.Add(t.Context(), Extension{Name: "late", Register: func(_ context.Context, api *API) error {
		return api.Mutate(TurnPost, 0, keep)
	}})
	if err == nil || !strings.Contains(err.Error(), "step.pre") {
		t.Errorf("a point that never comes: %v", err)
	}
}

package exthost

import (
	"context"
	"encoding/json"
	"testing"

	"dure/agent"
)

const quick = `export const handlers = { do: (ctx, input) => input.n + 1 };
	export function register(api) { api.pipelines.mutate("toolCall.pre", (c) => c); api.pipelines.wrap("toolCall.exec", (c, next) => next(c)); }`

func call(b *testing.B, tl agent.Tool) {
	b.Helper()
	c := agent.Call{ID: "c", Tool: "a__do", Input: json.RawMessage(`{"n":1}`)}
	if r, err := tl.Run(b.Context(), agent.ToolContext{ToolCallID: "c"}, c); err != nil || string(r.Output) != "2" {
		b.Fatalf("%+v %v", r, err)
	}
}

// A call of a worker that runs.
func BenchmarkCall(b *testing.B) {
	h := host(b, bundle(b, map[string]string{"a.ts": quick}), withNode(b))
	tl := tool(b, h, Resource{Name: "a", Runtime: Node, Entry: "a.ts"})
	call(b, tl)
	for b.Loop() {
		call(b, tl)
	}
}

// The first call of a host: bundling, starting, loading.
func BenchmarkFirstCall(b *testing.B) {
	root := bundle(b, map[string]string{"a.ts": quick})
	for b.Loop() {
		h := host(b, root, withNode(b))
		call(b, tool(b, h, Resource{Name: "a", Runtime: Node, Entry: "a.ts"}))
		b.StopTimer()
		h.Close()
		b.StartTimer()
	}
}

// A call of any tool with an extension before it and around it.
func BenchmarkPipelines(b *testing.B) {
	h := host(b, bundle(b, map[string]string{"a.ts": quick}), withNode(b))
	s := NewSet(h.c.Logger, nil)
	b.Cleanup(s.Close)
	if err := s.Add(b.Context(), Extension{Name: "a", Host: h, Runtime: Node, Entry: "a.ts"}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m, err := s.Mutate(b.Context(), CallPre, callMoment(`{}`))
		if err == nil {
			_, err = s.Wrap(b.Context(), CallExec, m, func(context.Context, Moment) (json.RawMessage, error) { return json.RawMessage(`{"status":"ok"}`), nil })
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

//go:build unix

package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// taker is a collector of OpenTelemetry.
type taker struct {
	*httptest.Server
	mu   sync.Mutex
	sent map[string][]json.RawMessage // by path
}

func newTaker(t *testing.T) *taker {
	c := &taker{sent: map[string][]json.RawMessage{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Key") != "secret-0815" {
			t.Errorf("%v, %v", r.Header, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent[r.URL.Path] = append(c.sent[r.URL.Path], data)
	}))
	t.Cleanup(c.Close)
	return c
}

// tracedSpan is a span as a test looks at it.
type tracedSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Links                               []struct{ TraceID, SpanID string }
}

func (c *taker) spans(t *testing.T) (list []tracedSpan) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, data := range c.sent["/v1/traces"] {
		var all struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []tracedSpan }
			}
		}
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		list = append(list, all.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return list
}

func (c *taker) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, list := range c.sent {
		for _, data := range list {
			b.Write(data)
		}
	}
	return b.String()
}

// watched are options of a program that tells a collector.
func (w *world) watched(url string, more string, env ...string) app.Options {
	how := options(w.work, w.home, w.model.URL(), app.Flags{
		Mode: "bypassPermissions", Settings: `{"telemetry":{"enabled":true,"endpoint":"` + url + `","protocol":"http/json","headers":{"X-Key":"secret-0815"}` + more + `}}`,
	})
	how.Environ = append(how.Environ, env...)
	return how
}

// A turn, what it asks of models, its calls and its agents are one trace, below the place
// that was taken over, and commands know where in it they are. Keys of the collector they do
// not know.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	const remote = "0af7651916cd43dd8448eb211c80319c"
	print := func(id string) script.Call {
		return script.Call{ID: id, Tool: "Bash", Input: input(fields{"command": "echo at $TRACEPARENT with $TRACESTATE; env | grep -c OTEL_"})}
	}
	for _, parent := range []string{"", "00-" + remote + "-b7ad6b7169203331-01"} {
		c := newTaker(t)
		w := newWorld(t, script.Script{}, handing(
			func(r script.Request) script.Reply {
				if r.Step == 0 {
					return script.Reply{Calls: []script.Call{print("b2")}}
				}
				return script.Reply{Text: r.Last, Stop: agent.StopEnd}
			},
			print("b1"), hand("a1", fields{"prompt": "Look.", "subagent_type": "general-purpose"}), script.Call{ID: "r1", Tool: "Read", Input: input(fields{"file_path": "none"})}))
		a, err := app.New(w.watched(c.URL, `,"exit":"30s"`, "TRACEPARENT="+parent, "TRACESTATE=v=1", "OTEL_EXPORTER_OTLP_HEADERS=x=y"))
		if err != nil {
			t.Fatal(err)
		}
		k := w.talkTo(a, agent.Open{})
		if end := k.turn(whole); end.Reason != agent.EndDone {
			t.Fatal(names(k.seen))
		}
		at := regexp.MustCompile(`at 00-([0-9a-f]{32})-([0-9a-f]{16})-01 with (.*)\n(\d+)`)
		outer, inner := at.FindStringSubmatch(k.result("b1").Text), at.FindStringSubmatch(k.result("a1").Text)
		if outer == nil || inner == nil || outer[4] != "0" || outer[1] != inner[1] || parent != "" && (outer[1] != remote || outer[3] != "v=1") {
			t.Fatalf("commands know %q, %q", k.result("b1").Text, k.result("a1").Text)
		}
		before := time.Now()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(before); d > patience {
			t.Errorf("the end took %v", d)
		}
		spans := map[string]tracedSpan{}
		var list []string
		for _, s := range c.spans(t) {
			spans[s.SpanID] = s
			if list = append(list, s.Name); s.TraceID != outer[1] {
				t.Errorf("%s is in another trace", s.Name)
			}
		}
		slices.Sort(list)
		want := []string{
			"chat script", "chat script", "chat script", "chat script", "chat script", "chat script",
			"execute_tool agent__run", "execute_tool bash__exec", "execute_tool bash__exec", "execute_tool file-system__read", "invoke_agent dure", "invoke_agent general-purpose",
		}
		if !slices.Equal(list, want) {
			t.Errorf("%q", list)
		}
		var way []string
		last := ""
		for s := spans[inner[2]]; s.Name != ""; s = spans[s.ParentSpanID] {
			way, last = append(way, strings.Fields(s.Name)[0]), s.ParentSpanID
		}
		if got := strings.Join(way, " "); got != "execute_tool invoke_agent execute_tool invoke_agent" || last != map[bool]string{true: "b7ad6b7169203331"}[parent != ""] {
			t.Errorf("the command of the agent is at %s, below %q", got, last)
		}
		if said := c.all(); strings.Contains(said, whole) || strings.Contains(said, w.work) || !strings.Contains(said, "gen_ai.client.token.usage") || !strings.Contains(said, `"dure.session.opened"`) {
			t.Errorf("%.2000s", said)
		}
	}
}

// Nothing is sent, and nothing runs, unless somebody has said so; a repository cannot.
func TestTelemetryIsOff(t *testing.T) {
	t.Parallel()
	c := newTaker(t)
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Hello.", Stop: agent.StopEnd} }})
	if err := os.Mkdir(filepath.Join(w.work, ".dure"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(".dure/settings.json", `{"telemetry":{"enabled":true,"endpoint":"`+c.URL+`"},"env":{"CLAUDE_CODE_ENABLE_TELEMETRY":"1","OTEL_TRACES_EXPORTER":"otlp"}}`)
	how := options(w.work, w.home, w.model.URL(), app.Flags{Trust: true})
	how.Environ = append(how.Environ, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_TRACES_EXPORTER=otlp", "OTEL_LOGS_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=otlp")
	a, err := app.New(how)
	if err != nil {
		t.Fatal(err)
	}
	k := w.talkTo(a, agent.Open{})
	k.turn("hello")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if len(c.sent) > 0 {
		t.Errorf("%v", c.sent)
	}
}

// Figures can be had without a collector.
func TestFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Hello.", Stop: agent.StopEnd} }})
	a, err := app.New(options(w.work, w.home, w.model.URL(), app.Flags{}))
	if err != nil {
		t.Fatal(err)
	}
	figures := a.Telemetry.Metrics()
	k := w.talkTo(a, agent.Open{})
	k.turn("hello")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := figures.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`dure_turns_total{gen_ai_agent_name="dure",dure_turn_reason="done"} 1`, `dure_turns_running 0`, `dure_turns_waiting 0`, `dure_approvals_waiting 0`,
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("there is no %s in\n%s", want, b.String())
		}
	}
}

// A collector that hangs holds up no turn, and the end of the program no longer than the
// settings let it.
func TestTelemetryHangs(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	defer s.Close()
	defer close(hung)
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "Hello.", Stop: agent.StopEnd} }})
	a, err := app.New(w.watched(s.URL, `,"exit":"300ms"`))
	if err != nil {
		t.Fatal(err)
	}
	k := w.talkTo(a, agent.Open{})
	k.turn("hello")
	before := time.Now()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(before); d < 200*time.Millisecond || d > 10*time.Second {
		t.Errorf("the end took %v", d)
	}
}

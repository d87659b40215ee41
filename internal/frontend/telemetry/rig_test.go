package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/base/keys/secret"
	"dure/internal/base/meter"
	"dure/internal/frontend/telemetry"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// began is when everything in these tests begins.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// sessions is a transport whose sessions have happened already.
type sessions map[string][]agent.Event

func (s sessions) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	return agent.SessionInfo{ID: o.Session}, nil
}

func (s sessions) Send(context.Context, string, agent.Command) error { return nil }

func (s sessions) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for _, e := range s[id] {
			if ctx.Err() != nil || e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}

func (s sessions) Query(context.Context, agent.Query) (any, error) { return nil, nil }
func (s sessions) Close(context.Context, string) error             { return nil }

var _ client.Transport = sessions{}

// happened makes events of bodies, 10 ms apart.
func happened(from time.Time, id string, bodies ...agent.Body) []agent.Event {
	var list []agent.Event
	for i, b := range bodies {
		n := int64(i + 1)
		list = append(list, agent.Event{Seq: n, Epoch: 1, Time: from.Add(time.Duration(n) * 10 * time.Millisecond), ID: id + "-" + string(rune('a'+i)), Body: b})
	}
	return list
}

// canary is in everything that is said, and nowhere else.
const canary = "canary-4711"

// story is a session with all that is told of: a side question, an attempt that fails, calls
// that go well, fail and are denied, an agent, work that comes out later, and a turn that
// reads of it.
func story() sessions {
	cost := agent.Money(1_500_000)
	temperature := 0.5
	call := func(id, tool string) agent.Proposal {
		return agent.Proposal{Call: agent.Call{ID: id, Tool: tool, Input: json.RawMessage(`{"path":"` + canary + `"}`)}, Class: agent.Read}
	}
	allow := agent.Decision{Verdict: agent.Allow, By: "rule"}
	answer := agent.Answer{
		Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{
			{Type: agent.ThinkingBlock, Text: canary},
			{Type: agent.TextBlock, Text: "I look: " + canary},
			{Type: agent.CallBlock, Call: &agent.Call{ID: "c1", Tool: "read", Input: json.RawMessage(`{"path":"` + canary + `"}`)}},
		}},
		Stop: agent.StopCalls, Usage: agent.Usage{Input: 100, Output: 20, CacheRead: 1000, CacheWrite: 50}, ID: "msg_1", Model: "m-1-0102",
	}
	parent := happened(
		began, "p",
		agent.SessionOpened{Session: "s1", Workdir: "/" + canary, Model: "m-1", Mode: agent.ModeDefault, Lane: "main", Profile: "code", Title: canary},
		agent.InputAdded{Input: "i1", Text: "mend it: " + canary},
		agent.TurnStarted{Turn: "t1"},
		agent.ContextAdded{Source: "memory", Text: "rules " + canary},
		agent.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Model: "m-1", Params: agent.Params{MaxTokens: 4096, Temperature: &temperature}, Tail: canary},
		agent.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Purpose: "title", Model: "m-small"},
		agent.ModelAnswered{Turn: "t1", Step: 1, Purpose: "title", Answer: agent.Answer{Message: agent.UserText(canary), Stop: agent.StopEnd, Usage: agent.Usage{Input: 9, Output: 3}}},
		agent.ModelFailed{Turn: "t1", Step: 1, Attempt: 1, Class: agent.FailServer, Status: 529, Error: canary, Retry: true},
		agent.ModelRequested{Turn: "t1", Step: 1, Attempt: 2, Model: "m-1"},
		agent.Fragment{Step: 1, What: agent.DeltaText, Text: canary},
		agent.ModelAnswered{Turn: "t1", Step: 1, Answer: answer, Cost: &cost, Millis: 10, FirstByte: 4},
		agent.CallDecided{Turn: "t1", Step: 1, Proposal: call("c1", "read"), Decision: allow, Key: "k1"},
		agent.CallStarted{ID: "c1", Tool: "read", Class: agent.Read, Key: "k1"},
		agent.CallFinished{Result: agent.Result{ID: "c1", Status: agent.StatusOK, Text: canary}, Tool: "read", Millis: 7},
		agent.CallDecided{Turn: "t1", Step: 1, Proposal: call("c2", "bash"), Decision: agent.Decision{Verdict: agent.Deny, By: "hook:" + canary, Reason: canary}, Key: "k2"},
		agent.CallFinished{Result: func() agent.Result { r := agent.Failure(agent.ErrDenied, canary, canary); r.ID = "c2"; return r }(), Tool: "bash"},
		agent.CallDecided{Turn: "t1", Step: 1, Proposal: call("c3", "agent"), Decision: allow, Key: "k3"},
		agent.CallStarted{ID: "c3", Tool: "agent", Class: agent.Unsafe, Key: "k3"},
		agent.ChildOpened{Child: "s2", Key: "k3", Agent: "explorer", Prompt: canary},
		agent.ChildEnded{Child: "s2", Outcome: agent.Outcome{Text: canary}},
		agent.CallFinished{Result: agent.Result{ID: "c3", Status: agent.StatusPending, Handle: "h3", Text: canary}, Tool: "agent", Millis: 30},
		agent.TurnEnded{Turn: "t1", Reason: agent.EndDone, Steps: 1, Millis: 200, Usage: answer.Usage, Cost: &cost},
		agent.CallSettled{Handle: "h3", ID: "c3", Tool: "agent", Result: agent.Result{ID: "c3", Status: agent.StatusOK, Text: canary}, Notice: canary},
		agent.InputAdded{Input: "i2", Text: canary, Origin: "settled"},
		agent.TurnStarted{Turn: "t2", Attempt: 2},
		agent.ModelRequested{Turn: "t2", Step: 1, Attempt: 1, Model: "m-1"},
		agent.ModelFailed{Turn: "t2", Step: 1, Attempt: 1, Class: agent.FailAuth, Status: 401, Error: canary},
		agent.TurnEnded{Turn: "t2", Reason: agent.EndFailed, Fail: agent.FailAuth, Error: canary, Steps: 1, Millis: 10},
		agent.TurnStarted{Turn: "t3"},
	)
	for i := range parent {
		if _, ok := parent[i].Body.(agent.Fragment); ok {
			parent[i].Seq = 0
		}
	}
	child := happened(
		began.Add(185*time.Millisecond), "c",
		agent.SessionOpened{Session: "s2", Parent: "s1", Call: "k3", Agent: "explorer", Model: "m-1", Lane: "subagent"},
		agent.InputAdded{Input: "k3", Text: canary, Origin: "child:" + canary},
		agent.TurnStarted{Turn: "t1"},
		agent.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Model: "m-1"},
		agent.ModelAnswered{Turn: "t1", Step: 1, Answer: agent.Answer{Message: agent.UserText(canary), Stop: agent.StopEnd, Usage: agent.Usage{Input: 5, Output: 2}}, Cost: &cost},
		agent.TurnEnded{Turn: "t1", Reason: agent.EndDone, Steps: 1, Millis: 20},
	)
	return sessions{"s1": parent, "s2": child}
}

// collector keeps what is sent to it.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][][]byte // by path
	heads  []http.Header
}

func newCollector(t testing.TB) *collector {
	c := &collector{bodies: map[string][][]byte{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		data, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], data)
		c.heads = append(c.heads, r.Header.Clone())
	}))
	t.Cleanup(c.Close)
	return c
}

// config is one that sends everything to a collector.
func config(url string, asJSON bool) telemetry.Config {
	target := func(path string) *telemetry.Target {
		return &telemetry.Target{URL: url + path, JSON: asJSON, Headers: map[string]secret.Text{"Authorization": "Bearer secret-0815"}}
	}
	now := began
	return telemetry.Config{
		Meter: meter.New(began), Traces: target("/v1/traces"), Events: target("/v1/logs"), Metrics: target("/v1/metrics"),
		Version: "test", Instance: "here", Sampler: telemetry.Sampler{Ratio: 1}, Now: func() time.Time { return now },
		Provider: func(string) string { return "google" },
	}
}

// tell has everything of a story told.
func tell(t testing.TB, c telemetry.Config, s sessions) {
	t.Helper()
	tellOf(t, c, s)
}

// tellOf is as tell, and returns who has told.
func tellOf(t testing.TB, c telemetry.Config, s sessions) *telemetry.Observer {
	t.Helper()
	o := telemetry.New(c)
	w := o.Watch(s)
	if _, err := w.Open(t.Context(), agent.Open{Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return o
}

// sorted puts lists of objects in one order: sessions are read beside each other.
func sorted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = sorted(v[k])
		}
	case []any:
		for i := range v {
			v[i] = sorted(v[i])
		}
		slices.SortStableFunc(v, func(a, b any) int {
			key := func(v any) string {
				m, _ := v.(map[string]any)
				at, _ := m["startTimeUnixNano"].(string)
				seen, _ := m["timeUnixNano"].(string)
				id, _ := m["spanId"].(string)
				return at + seen + id
			}
			return strings.Compare(key(a), key(b))
		})
	}
	return v
}

// golden compares JSON with a file.
func golden(t *testing.T, name string, data []byte) {
	t.Helper()
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatalf("%v: %.200s", err, data)
	}
	pretty := &bytes.Buffer{}
	e := json.NewEncoder(pretty)
	e.SetIndent("", "\t")
	e.SetEscapeHTML(false)
	if err := e.Encode(sorted(all)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n")), pretty.Bytes()) {
		t.Errorf("%s is not what is sent; see the difference with -update and git diff", path)
	}
}

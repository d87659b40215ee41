package oracle_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"dure/agent"
	"dure/internal/base/meter"
	"dure/internal/frontend/telemetry"
)

// happened is a session that is over.
type happened []agent.Event

func (h happened) Open(context.Context, agent.Open) (agent.SessionInfo, error) {
	return agent.SessionInfo{ID: "s"}, nil
}
func (h happened) Send(context.Context, string, agent.Command) error { return nil }
func (h happened) Query(context.Context, agent.Query) (any, error)   { return nil, nil }
func (h happened) Close(context.Context, string) error               { return nil }
func (h happened) Events(_ context.Context, _ string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for _, e := range h {
			if e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}

var told = time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)

// session has all kinds of values: numbers, texts, lists and objects, links, errors, and
// texts that are no UTF-8.
func session() happened {
	temperature, cost := 0.25, agent.Money(1_234_567)
	bodies := []agent.Body{
		agent.SessionOpened{Session: "s", Model: "m", Lane: "main"},
		agent.InputAdded{Text: "a \xff \"question\" 가나다"},
		agent.TurnStarted{Turn: "t", Attempt: 2},
		agent.ModelRequested{Turn: "t", Step: 1, Attempt: 1, Model: "m", Params: agent.Params{MaxTokens: 1 << 20, Temperature: &temperature}},
		agent.ModelAnswered{Turn: "t", Step: 1, Cost: &cost, FirstByte: 3, Answer: agent.Answer{
			Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{
				{Type: agent.TextBlock, Text: "an answer <&>"},
				{Type: agent.CallBlock, Call: &agent.Call{ID: "c", Tool: "read", Input: json.RawMessage(`{"path":"x"}`)}},
			}},
			Stop: agent.StopCalls, Usage: agent.Usage{Input: 1 << 40, Output: 5, CacheRead: 7},
		}},
		agent.CallDecided{Turn: "t", Step: 1, Key: "k", Proposal: agent.Proposal{Call: agent.Call{ID: "c", Tool: "read", Input: json.RawMessage(`{}`)}}, Decision: agent.Decision{Verdict: agent.Allow, By: "rule"}},
		agent.CallStarted{ID: "c", Tool: "read", Class: agent.Read, Key: "k"},
		agent.CallFinished{Tool: "read", Millis: 3, Result: agent.Result{ID: "c", Status: agent.StatusError, Text: "no", Error: &agent.ToolError{Code: agent.ErrTimeout}}},
		agent.ModelRequested{Turn: "t", Step: 2, Attempt: 1, Model: "m"},
		agent.ModelFailed{Turn: "t", Step: 2, Attempt: 1, Class: agent.FailAuth, Status: 401},
		agent.TurnEnded{Turn: "t", Reason: agent.EndFailed, Fail: agent.FailAuth, Steps: 2, Millis: 90},
	}
	var list happened
	for i, b := range bodies {
		list = append(list, agent.Event{Seq: int64(i + 1), Time: told.Add(time.Duration(i) * time.Millisecond), ID: string(rune('a' + i)), Body: b})
	}
	return list
}

// sendTelemetry returns what is sent of the session, by signal.
func sendTelemetry(t *testing.T, asJSON, delta bool) map[string][]byte {
	t.Helper()
	var mu sync.Mutex
	sent := map[string][]byte{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if sent[r.URL.Path] != nil || err != nil {
			t.Errorf("%s comes twice, or not at all: %v", r.URL.Path, err)
		}
		sent[r.URL.Path] = data
	}))
	defer s.Close()
	target := func(signal string) *telemetry.Target {
		return &telemetry.Target{URL: s.URL + "/" + signal, JSON: asJSON}
	}
	parent, ok := telemetry.ParseContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "v=1")
	if !ok {
		t.Fatal("the place cannot be read")
	}
	figures := meter.New(told)
	figures.Gauge("g", "By", "a gauge", "l").Set(-1.5, "v")
	o := telemetry.New(telemetry.Config{
		Meter: figures, Traces: target("traces"), Events: target("logs"), Metrics: target("metrics"), Version: "1", Instance: "i",
		Content: telemetry.ContentBoth, Sampler: telemetry.Sampler{Ratio: 1}, Parent: &parent, Delta: delta, Now: func() time.Time { return told },
	})
	if _, err := o.Watch(session()).Open(t.Context(), agent.Open{}); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sent
}

// inBase64 writes the IDs of OTLP's JSON, which are hexadecimal, as the JSON of protobuf has
// bytes.
func inBase64(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			if text, ok := one.(string); ok && slices.Contains([]string{"traceId", "spanId", "parentSpanId"}, name) {
				raw, err := hex.DecodeString(text)
				if err != nil || len(raw) != 16 && len(raw) != 8 {
					t.Errorf("%s is %q", name, text)
				}
				v[name] = base64.StdEncoding.EncodeToString(raw)
				continue
			}
			v[name] = inBase64(t, one)
		}
	case []any:
		for i := range v {
			v[i] = inBase64(t, v[i])
		}
	}
	return v
}

// unknown finds fields that the official types do not have.
func unknown(t *testing.T, m protoreflect.Message) {
	if raw := m.GetUnknown(); len(raw) > 0 {
		t.Errorf("%s has unknown fields: %x", m.Descriptor().FullName(), raw)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				unknown(t, v.List().Get(i).Message())
			}
		case f.Message() != nil && !f.IsMap():
			unknown(t, v.Message())
		}
		return true
	})
}

// What is sent of telemetry is what the official types of the protocol read, all of it, and
// the same as protobuf and as JSON.
func TestTelemetryIsOTLP(t *testing.T) {
	for _, delta := range []bool{false, true} {
		binary, text := sendTelemetry(t, false, delta), sendTelemetry(t, true, delta)
		for signal, fresh := range map[string]func() proto.Message{
			"/traces":  func() proto.Message { return &tracepb.TracesData{} },
			"/logs":    func() proto.Message { return &logspb.LogsData{} },
			"/metrics": func() proto.Message { return &metricspb.MetricsData{} },
		} {
			one, other := fresh(), fresh()
			if err := proto.Unmarshal(binary[signal], one); err != nil {
				t.Fatalf("%s: %v", signal, err)
			}
			unknown(t, one.ProtoReflect())
			var v any
			if err := json.Unmarshal(text[signal], &v); err != nil {
				t.Fatalf("%s: %v", signal, err)
			}
			data, err := json.Marshal(inBase64(t, v))
			if err != nil {
				t.Fatal(err)
			}
			if err := protojson.Unmarshal(data, other); err != nil { // it takes no unknown names
				t.Fatalf("%s: %v\n%s", signal, err, text[signal])
			}
			if d := cmp.Diff(one, other, protocmp.Transform()); d != "" {
				t.Errorf("%s: protobuf and JSON differ:\n%s", signal, d)
			}
		}
	}
}

// What the official types read is what happened.
func TestTelemetrySaysWhatHappened(t *testing.T) {
	sent := sendTelemetry(t, false, true)
	var traces tracepb.TracesData
	var logs logspb.LogsData
	var metrics metricspb.MetricsData
	for signal, m := range map[string]proto.Message{"/traces": &traces, "/logs": &logs, "/metrics": &metrics} {
		if err := proto.Unmarshal(sent[signal], m); err != nil {
			t.Fatal(err)
		}
	}
	spans := map[string]*tracepb.Span{}
	for _, s := range traces.ResourceSpans[0].ScopeSpans[0].Spans {
		spans[s.Name] = s
		if hex.EncodeToString(s.TraceId) != "0af7651916cd43dd8448eb211c80319c" || s.TraceState != "v=1" || s.Flags&1 == 0 {
			t.Errorf("%s: %x, %q, %x", s.Name, s.TraceId, s.TraceState, s.Flags)
		}
	}
	turn, chat, call := spans["invoke_agent dure"], spans["chat m"], spans["execute_tool read"]
	if len(traces.ResourceSpans[0].ScopeSpans[0].Spans) != 4 || turn == nil || chat == nil || call == nil {
		t.Fatalf("%v", &traces)
	}
	if hex.EncodeToString(turn.ParentSpanId) != "b7ad6b7169203331" || turn.Flags&0x300 != 0x300 || len(turn.Links) != 1 || turn.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || turn.Status.Message != "auth" || turn.Kind != tracepb.Span_SPAN_KIND_INTERNAL {
		t.Errorf("the turn: %v", turn)
	}
	if string(chat.ParentSpanId) != string(turn.SpanId) || chat.Kind != tracepb.Span_SPAN_KIND_CLIENT || chat.Flags&0x300 != 0x100 {
		t.Errorf("the request: %v", chat)
	}
	if string(call.ParentSpanId) != string(turn.SpanId) || call.StartTimeUnixNano != uint64(told.Add(6*time.Millisecond).UnixNano()) || call.EndTimeUnixNano != uint64(told.Add(7*time.Millisecond).UnixNano()) {
		t.Errorf("the call: %v", call)
	}
	var names []string
	for _, r := range logs.ResourceLogs[0].ScopeLogs[0].LogRecords {
		names = append(names, r.EventName)
		for _, a := range r.Attributes {
			if a.Key == "dure.input.text" && a.Value.GetStringValue() != "a \uFFFD \"question\" 가나다" {
				t.Errorf("the input: %q", a.Value.GetStringValue())
			}
			if a.Key == "gen_ai.output.messages" && a.Value.GetArrayValue().GetValues()[0].GetKvlistValue().GetValues()[2].Value.GetStringValue() != "tool_call" {
				t.Errorf("the answer: %v", a.Value)
			}
		}
	}
	if got := strings.Join(names, " "); got != "dure.session.opened dure.input.added gen_ai.client.inference.operation.details dure.tool.decided dure.tool.finished gen_ai.client.inference.operation.details dure.turn.ended" {
		t.Errorf("events: %s", got)
	}
	for _, m := range metrics.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		switch m.Name {
		case "g":
			if m.GetGauge().DataPoints[0].GetAsDouble() != -1.5 {
				t.Errorf("%v", m)
			}
		case "gen_ai.client.token.usage":
			p := m.GetHistogram().DataPoints
			if len(p) != 2 || p[0].GetSum() != 1<<40+7 || p[0].Count != 1 || len(p[0].BucketCounts) != len(p[0].ExplicitBounds)+1 || p[0].BucketCounts[len(p[0].ExplicitBounds)] != 1 ||
				m.GetHistogram().AggregationTemporality != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA {
				t.Errorf("%v", m)
			}
		case "dure.cost":
			if !m.GetSum().IsMonotonic || m.GetSum().DataPoints[0].GetAsDouble() != 0.001234567 || m.Unit != "USD" {
				t.Errorf("%v", m)
			}
		}
	}
}

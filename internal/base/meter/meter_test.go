package meter_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/internal/base/meter"
)

func textOf(t testing.TB, r *meter.Registry) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The text is what Prometheus reads: names with units and kinds, buckets that add up,
// labels that cannot break out of their quotes.
func TestText(t *testing.T) {
	r := meter.New(time.Unix(0, 0))
	c := r.Counter("dure.tool.calls", "{call}", "calls of tools", "tool", "outcome")
	c.Add(1, "read", "ok")
	c.Add(2, "read", "ok")
	c.Add(1, "a\"b\\\nc", "")
	c.Add(-1, "read", "ok")
	c.Add(math.NaN(), "read", "ok")
	r.Counter("dure.cost", "USD", "what models cost").Add(0.25)
	h := r.Histogram("gen_ai.client.operation.duration", "s", "how long\nit took", []float64{0.1, 1}, "model")
	h.Record(0.1, "m")
	h.Record(0.5, "m")
	h.Record(7, "m")
	h.Record(math.Inf(1), "m")
	g := r.Gauge("dure.sessions.open", "{session}", "sessions that are open")
	g.Add(3)
	g.Add(-1)
	r.Gauge("dure.lag", "s", "lag").Set(1.5)
	r.Ask("dure.queue", "By", "asked", func() float64 { return 4 })
	r.Counter("dure.never", "{x}", "never counted")
	want := `# HELP dure_tool_calls_total calls of tools
# TYPE dure_tool_calls_total counter
dure_tool_calls_total{tool="a\"b\\\nc"} 1
dure_tool_calls_total{tool="read",outcome="ok"} 3
# HELP dure_cost_usd_total what models cost
# TYPE dure_cost_usd_total counter
dure_cost_usd_total 0.25
# HELP gen_ai_client_operation_duration_seconds how long\nit took
# TYPE gen_ai_client_operation_duration_seconds histogram
gen_ai_client_operation_duration_seconds_bucket{model="m",le="0.1"} 1
gen_ai_client_operation_duration_seconds_bucket{model="m",le="1"} 2
gen_ai_client_operation_duration_seconds_bucket{model="m",le="+Inf"} 3
gen_ai_client_operation_duration_seconds_sum{model="m"} 7.6
gen_ai_client_operation_duration_seconds_count{model="m"} 3
# HELP dure_sessions_open sessions that are open
# TYPE dure_sessions_open gauge
dure_sessions_open 2
# HELP dure_lag_seconds lag
# TYPE dure_lag_seconds gauge
dure_lag_seconds 1.5
# HELP dure_queue_bytes asked
# TYPE dure_queue_bytes gauge
dure_queue_bytes 4
`
	if got := textOf(t, r); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// One name is one instrument, whoever asks for it; two that differ are a mistake.
func TestShared(t *testing.T) {
	r := meter.New(time.Unix(0, 0))
	r.Counter("a", "{x}", "h", "l").Add(1, "v")
	r.Counter("a", "{x}", "h", "l").Add(1, "v")
	if got := r.Read(); len(got) != 1 || got[0].Series[0].Value != 2 {
		t.Errorf("%+v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a gauge took the name of a counter")
		}
	}()
	r.Gauge("a", "{x}", "h", "l")
}

// Whatever names come, series and their labels stay bounded, and nothing is lost of the sum.
func TestBounded(t *testing.T) {
	r := meter.New(time.Unix(0, 0))
	c := r.Counter("a", "{x}", "h", "l")
	const n = 5000
	for i := range n {
		c.Add(1, fmt.Sprint(i)+strings.Repeat("é", 500))
	}
	m := r.Read()[0]
	var sum float64
	overflow := 0
	for _, s := range m.Series {
		sum += s.Value
		if len(s.Labels) != 1 || len(s.Labels[0].Value) > 200 || strings.ToValidUTF8(s.Labels[0].Value, "?") != s.Labels[0].Value {
			t.Fatalf("%+v", s.Labels)
		}
		if s.Labels[0].Name == meter.Overflow {
			overflow++
		}
	}
	if len(m.Series) != 1001 || sum != n || overflow != 1 {
		t.Errorf("%d series, sum %v, %d for the rest", len(m.Series), sum, overflow)
	}
}

func TestConcurrent(t *testing.T) {
	r := meter.New(time.Unix(0, 0))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				r.Counter("c", "{x}", "h", "l").Add(1, fmt.Sprint(i%3))
				r.Histogram("h", "s", "h", []float64{1}, "l").Record(float64(i), "v")
				r.Read()
			}
		})
	}
	wg.Wait()
	var sum float64
	for _, s := range r.Read()[0].Series {
		sum += s.Value
	}
	if sum != 1600 {
		t.Error(sum)
	}
}

// FuzzText has any label stay on its line, inside its quotes.
func FuzzText(f *testing.F) {
	f.Add("a")
	f.Add("\"} 9\nx 1\\")
	f.Add("\x00\xff")
	f.Fuzz(func(t *testing.T, value string) {
		r := meter.New(time.Unix(0, 0))
		r.Counter("c", "{x}", value, "l").Add(1, value)
		lines := strings.Split(strings.TrimSuffix(textOf(t, r), "\n"), "\n")
		if len(lines) != 3 {
			t.Fatalf("%q", lines)
		}
		last := lines[2]
		if inside, ok := strings.CutPrefix(last, `c_total{l="`); ok {
			inside, ok = strings.CutSuffix(inside, `"} 1`)
			if bare := strings.NewReplacer(`\\`, "", `\"`, "", `\n`, "").Replace(inside); !ok || strings.ContainsAny(bare, "\"\n") {
				t.Fatalf("%q", last)
			}
		} else if last != "c_total 1" {
			t.Fatalf("%q", last)
		}
	})
}

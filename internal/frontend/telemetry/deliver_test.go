package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/base/keys/secret"
	"dure/internal/base/meter"
	"dure/internal/frontend/telemetry"
)

// remote is a collector that answers as a test says, in the time of the test.
type remote struct {
	answer func(n int, r *http.Request) (*http.Response, error)

	mu sync.Mutex
	at []time.Duration // of each request, since the first
	t0 time.Time
}

func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	if len(r.at) == 0 {
		r.t0 = time.Now()
	}
	r.at = append(r.at, time.Since(r.t0))
	n := len(r.at)
	r.mu.Unlock()
	return r.answer(n, req)
}

func reply(status int, body string, heads ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(heads); i += 2 {
		h.Set(heads[i], heads[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// lost returns how many records were dropped, by why.
func lost(r *meter.Registry) map[string]float64 {
	all := map[string]float64{}
	for _, m := range r.Read() {
		for _, s := range m.Series {
			if m.Name == "dure.telemetry.dropped" {
				all[s.Labels[1].Value] += s.Value
			}
		}
	}
	return all
}

// traced is an observer that sends spans alone.
func traced(r *remote, t telemetry.Target) (*telemetry.Observer, *meter.Registry) {
	t.URL = "https://collector.example/v1/traces"
	m := meter.New(time.Now())
	return telemetry.New(telemetry.Config{Meter: m, Traces: &t, HTTP: r, Sampler: telemetry.Sampler{Ratio: 1}}), m
}

// turns is a session of n turns, which happen now.
func turns(n int) sessions {
	var bodies []agent.Body
	for range n {
		bodies = append(bodies, agent.TurnStarted{Turn: "t"}, agent.TurnEnded{Turn: "t", Reason: agent.EndDone})
	}
	return sessions{"s1": happened(time.Now().Add(time.Hour), "p", bodies...)}
}

func open(t *testing.T, o *telemetry.Observer, s sessions) {
	t.Helper()
	if _, err := o.Watch(s).Open(context.Background(), agent.Open{Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// A collector that does not answer is asked again, after longer and longer pauses, and when
// it asks for a pause, after that; what it never takes is dropped.
func TestRetries(t *testing.T) {
	for _, one := range []struct {
		name   string
		answer func(n int, r *http.Request) (*http.Response, error)
		asked  int
		lost   string
		least  time.Duration
	}{
		{"busy once", func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return reply(503, "", "Retry-After", "7"), nil
			}
			return reply(200, ""), nil
		}, 2, "", 7 * time.Second},
		{"busy for ever", func(int, *http.Request) (*http.Response, error) { return reply(429, ""), nil }, 6, "failed", 15 * time.Second},
		{"asks for a year", func(int, *http.Request) (*http.Response, error) {
			return reply(503, "", "Retry-After", "31536000"), nil
		}, 6, "failed", 150 * time.Second},
		{"gone", func(int, *http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }, 6, "failed", 0},
		{"refuses", func(int, *http.Request) (*http.Response, error) { return reply(400, "no"), nil }, 1, "refused", 0},
		{"sends elsewhere", func(int, *http.Request) (*http.Response, error) {
			return reply(307, "", "Location", "https://evil.example/"), nil
		}, 1, "refused", 0},
		{"hangs", func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, 6, "failed", 50 * time.Second},
		{"talks for ever", func(int, *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(forever{})}, nil
		}, 1, "", 0},
		{"garbage", func(int, *http.Request) (*http.Response, error) { return reply(200, "\xff\x00\x0a\xff"), nil }, 1, "", 0},
		{"takes a part", func(int, *http.Request) (*http.Response, error) {
			return reply(200, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"x"}}`, "Content-Type", "application/json"), nil
		}, 1, "rejected", 0},
		{"takes a part, in protobuf", func(int, *http.Request) (*http.Response, error) { return reply(200, "\x0a\x02\x08\x01"), nil }, 1, "rejected", 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &remote{answer: one.answer}
				o, m := traced(r, telemetry.Target{Gzip: true})
				open(t, o, turns(1))
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				if len(r.at) != one.asked || r.at[len(r.at)-1] < one.least {
					t.Errorf("asked at %v", r.at)
				}
				if all := lost(m); one.lost == "" && len(all) > 0 || one.lost != "" && all[one.lost] != 1 {
					t.Errorf("lost %v", all)
				}
				_ = o.Close(context.Background())
			})
		})
	}
}

type forever struct{}

func (forever) Read(p []byte) (int, error) { return len(p), nil }

// Whatever the collector does, sessions are not held up, what waits is bounded, and the end
// comes in time.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{answer: func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		o, m := traced(r, telemetry.Target{Queue: 100, Batch: 10})
		before := time.Now()
		open(t, o, turns(5000))
		if d := time.Since(before); d != 0 {
			t.Errorf("the session was held up for %v", d)
		}
		if all := lost(m); all["queue-full"] < 4800 || all["queue-full"] > 4900 {
			t.Errorf("lost %v", all)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := o.Close(ctx); err == nil {
			t.Error("all was delivered")
		}
		if d := time.Since(before); d > 2*time.Second {
			t.Errorf("the end took %v", d)
		}
		if all := lost(m); all["queue-full"]+all["closing"] != 5000 {
			t.Errorf("lost %v", all)
		}
	})
}

// What is delivered at the end waits for no pause.
func TestEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return reply(503, "", "Retry-After", "30"), nil
			}
			return reply(200, ""), nil
		}}
		o, m := traced(r, telemetry.Target{})
		open(t, o, turns(3))
		time.Sleep(6 * time.Second) // the first attempt was made
		before := time.Now()
		if err := o.Close(context.Background()); err != nil || time.Since(before) != 0 || len(r.at) != 2 || len(lost(m)) != 0 {
			t.Errorf("%v after %v, %d requests, lost %v", err, time.Since(before), len(r.at), lost(m))
		}
	})
}

// Records of many bytes are bounded by those.
func TestBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &remote{answer: func(_ int, r *http.Request) (*http.Response, error) {
			n, _ := io.Copy(io.Discard, r.Body)
			if n > 6<<20 {
				t.Errorf("a request of %d bytes", n)
			}
			time.Sleep(time.Second)
			return reply(200, ""), nil
		}}
		m := meter.New(time.Now())
		o := telemetry.New(telemetry.Config{Meter: m, HTTP: r, Content: telemetry.ContentEvents, Events: &telemetry.Target{URL: "https://c.example"}})
		var bodies []agent.Body
		for range 1000 {
			bodies = append(bodies, agent.InputAdded{Text: strings.Repeat("x", 1<<20)})
		}
		open(t, o, sessions{"s1": happened(time.Now().Add(time.Hour), "p", bodies...)})
		_ = o.Close(context.Background())
		if all := lost(m); all["queue-full"] == 0 || len(r.at) < 3 {
			t.Errorf("lost %v, %d requests", all, len(r.at))
		}
	})
}

// Figures count from the start, or, when that is asked for, from the last report that was
// taken.
func TestDelta(t *testing.T) {
	for _, delta := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var bodies [][]byte
			r := &remote{answer: func(n int, r *http.Request) (*http.Response, error) {
				b, _ := io.ReadAll(r.Body)
				bodies = append(bodies, b)
				if n == 1 {
					return reply(400, ""), nil
				}
				return reply(200, ""), nil
			}}
			m := meter.New(time.Now())
			c := m.Counter("a", "{x}", "")
			o := telemetry.New(telemetry.Config{Meter: m, HTTP: r, Delta: delta, Metrics: &telemetry.Target{URL: "https://c.example", JSON: true, Delay: time.Minute}})
			open(t, o, sessions{})
			c.Add(1)
			for range 3 {
				time.Sleep(time.Minute)
				synctest.Wait()
				c.Add(1)
			}
			_ = o.Close(context.Background())
			var got []string
			for _, b := range bodies {
				name := bytes.Index(b, []byte(`"name":"a"`))
				rest := b[name:]
				rest = rest[bytes.Index(rest, []byte(`"asDouble":`))+len(`"asDouble":`):]
				got = append(got, string(rest[:1]))
			}
			want := "1 2 3 4"
			if delta {
				want = "1 2 1 1" // the first report was refused
			}
			if strings.Join(got, " ") != want {
				t.Errorf("delta %v: %v", delta, got)
			}
		})
	}
}

// Addresses and headers are nowhere in what is logged.
func TestSecretsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b syncBuffer
		r := &remote{answer: func(int, *http.Request) (*http.Response, error) { return nil, errors.New("no route") }}
		o := telemetry.New(telemetry.Config{
			Meter: meter.New(time.Now()), HTTP: r, Sampler: telemetry.Sampler{Ratio: 1},
			Logger: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Traces: &telemetry.Target{URL: "https://c.example/secret-1", Headers: map[string]secret.Text{"X-Key": "secret-2"}},
		})
		open(t, o, turns(1))
		time.Sleep(time.Minute)
		_ = o.Close(context.Background())
		if said := b.String(); strings.Contains(said, "secret") || !strings.Contains(said, "no route") {
			t.Error(said)
		}
	})
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

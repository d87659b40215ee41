package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/client"
)

// door is a server as an HTTP client sees it.
type door func(*http.Request) (*http.Response, error)

func (d door) RoundTrip(r *http.Request) (*http.Response, error) { return d(r) }

// hush is a body of which nothing comes.
type hush struct{ ctx context.Context }

func (h hush) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

func (hush) Close() error { return nil }

func nothing(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func answer(status int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: body}
}

// A server that does not answer what it is asked, or stops in the middle of it, is one that
// does not answer: nobody waits for it for ever. Whoever has less time waits less.
func TestSilentAnswers(t *testing.T) {
	const long = 20 * time.Second
	asks := map[string]func(context.Context, *Remote) error{
		"open":    func(ctx context.Context, r *Remote) error { _, err := r.Open(ctx, agent.Open{}); return err },
		"command": func(ctx context.Context, r *Remote) error { return r.Send(ctx, "s", agent.Interrupt{}) },
		"query": func(ctx context.Context, r *Remote) error {
			_, err := r.Query(ctx, agent.FindSession{Name: "s"})
			return err
		},
	}
	for name, of := range map[string]door{
		"never answers": nothing,
		"begins, and stops": func(r *http.Request) (*http.Response, error) {
			return answer(http.StatusOK, hush{r.Context()}), nil
		},
		"refuses, and stops": func(r *http.Request) (*http.Response, error) {
			return answer(http.StatusConflict, hush{r.Context()}), nil
		},
	} {
		for what, ask := range asks {
			for limit, tt := range map[string]struct {
				answer, caller, want time.Duration
			}{
				"ours":         {long, time.Hour, long},
				"the usual":    {0, time.Hour, answering},
				"the caller's": {long, long / 2, long / 2},
				"none":         {-1, time.Hour, time.Hour},
			} {
				t.Run(name+", "+what+", "+limit, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						asked := 0
						r, err := New(Config{URL: "http://127.0.0.1:1", Token: "t", Answer: tt.answer, HTTP: &http.Client{Transport: door(func(r *http.Request) (*http.Response, error) {
							asked++
							return of(r)
						})}})
						if err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithTimeout(t.Context(), tt.caller)
						defer cancel()
						began := time.Now()
						err = ask(ctx, r)
						if took := time.Since(began); took != tt.want || asked != 1 || err == nil {
							t.Errorf("it took %v, was asked %d times, %v", took, asked, err)
						}
						p := agent.ProblemOf(err)
						if ours := tt.want < tt.caller; ours != (p != nil && p.Code == agent.ProblemEndpoint && strings.Contains(p.Message, "no whole answer came within")) {
							t.Errorf("%v", err)
						}
					})
				})
			}
		}
	}
}

// A message in very many lines takes room for itself, and not for each of its beginnings.
func TestManyLines(t *testing.T) {
	const lines = 50_000
	stream := strings.NewReader(strings.Repeat("data: x\n", lines) + "\n: a remark\n\ndata: y\n\n")
	var got []string
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := messages(stream, func() {}, func(m message) error {
		got = append(got, m.data)
		return nil
	})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errLost) || len(got) != 2 || got[0] != strings.Repeat("x\n", lines-1)+"x" || got[1] != "y" {
		t.Errorf("%d messages, %v", len(got), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
		t.Errorf("%d bytes were taken", took)
	}
}

// A server that takes a connection and says nothing is one that does not answer: it is asked
// again for a time, and then that is an error.
func TestSilentServer(t *testing.T) {
	half := func(status int) door {
		return func(r *http.Request) (*http.Response, error) { return answer(status, hush{r.Context()}), nil }
	}
	for name, tt := range map[string]struct {
		first   door // what comes of the first attempt
		rest    door
		patient bool // the server is looked for long enough for another attempt
		events  int
		fails   bool
		lost    bool
	}{
		"never answers":              {first: nothing, rest: nothing, fails: true},
		"never answers, is waited":   {first: nothing, rest: nothing, patient: true, fails: true},
		"has no room, and stops":     {first: half(503), rest: half(503), patient: true, fails: true},
		"refuses, and stops":         {first: half(404), rest: half(404), patient: true, fails: true},
		"begins, and stops":          {first: half(200), rest: half(200), lost: true},
		"is back after the silence":  {first: nothing, patient: true, events: 2},
		"has room after the silence": {first: half(503), patient: true, events: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const silence = 10 * time.Second
				asked := 0
				cfg := Config{URL: "http://127.0.0.1:1", Token: "t", Silence: silence, Patience: time.Second, HTTP: &http.Client{Transport: door(func(r *http.Request) (*http.Response, error) {
					switch asked++; {
					case asked == 1:
						return tt.first(r)
					case tt.rest != nil:
						return tt.rest(r)
					}
					return answer(http.StatusOK, io.NopCloser(strings.NewReader(strings.Repeat(`data: {"v":1,"seq":1,"kind":"note","body":{"text":"x"}}`+"\n\n", 2)+"event: end\ndata: {}\n\n"))), nil
				})}}
				if tt.patient {
					cfg.Patience = 3 * silence
				}
				r, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // as good as for ever
				defer cancel()
				began, events := time.Now(), 0
				var last error
				for _, err := range r.Events(ctx, "s", 0) {
					if last = err; err == nil {
						events++
					}
				}
				p := agent.ProblemOf(last)
				switch took := time.Since(began); {
				case took > cfg.Patience+silence:
					t.Errorf("it took %v", took)
				case (asked > 1) != tt.patient:
					t.Errorf("it was asked %d times", asked)
				case events != tt.events:
					t.Errorf("%d events, %v", events, last)
				case tt.fails != (p != nil && p.Code == agent.ProblemEndpoint && strings.Contains(p.Message, "nothing was heard for 10s") && !errors.Is(last, context.Canceled) && !errors.Is(last, client.ErrDisconnected)):
					t.Errorf("%v", last)
				case tt.lost != errors.Is(last, client.ErrDisconnected):
					t.Errorf("%v", last)
				}
			})
		})
	}
}

package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
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

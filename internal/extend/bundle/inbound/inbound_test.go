package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	"dure/client"
	"dure/internal/base/cron"
	"dure/internal/extend/bundle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// fake is a transport with sessions that echo what they are told.
type fake struct {
	mu       sync.Mutex
	stored   map[string][]agent.Event
	running  map[string]bool
	changed  chan struct{} // closed and replaced with every event
	opened   int
	answered func(text string) (string, agent.EndReason)
	hold     chan struct{} // nil = answers come at once
	all      sync.WaitGroup
}

func newFake() *fake {
	return &fake{stored: map[string][]agent.Event{}, running: map[string]bool{}, changed: make(chan struct{}), answered: func(s string) (string, agent.EndReason) { return "heard: " + s, agent.EndDone }}
}

func (f *fake) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := o.Session
	if _, ok := f.stored[id]; id != "" && !ok {
		return agent.SessionInfo{}, &agent.Problem{Code: agent.ProblemMissing, Message: "no session"}
	}
	if o.New != "" {
		id = o.New
		if _, ok := f.stored[id]; ok {
			return agent.SessionInfo{}, errors.New("there is one already")
		}
		f.stored[id] = nil
	}
	if f.running[id] {
		return agent.SessionInfo{}, errors.New("it is open")
	}
	f.running[id] = true
	f.opened++
	return agent.SessionInfo{ID: id}, nil
}

func (f *fake) add(id string, bodies ...agent.Body) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range bodies {
		f.stored[id] = append(f.stored[id], agent.Event{Seq: int64(len(f.stored[id]) + 1), Body: b})
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Send(_ context.Context, id string, c agent.Command) error {
	p, ok := c.(agent.Prompt)
	if _, more := c.(agent.Continue); !ok && more {
		p = agent.Prompt{ID: "more", Text: "go on"}
	}
	f.mu.Lock()
	if !f.running[id] {
		f.mu.Unlock()
		return errors.New("it is not open")
	}
	twice := slices.ContainsFunc(f.stored[id], func(e agent.Event) bool {
		b, ok := e.Body.(agent.InputAdded)
		return ok && b.Input == p.ID
	})
	f.mu.Unlock()
	if twice {
		return nil
	}
	f.add(id, agent.InputAdded{Input: p.ID, Text: p.Text}, agent.TurnStarted{Turn: "t"})
	f.all.Go(func() {
		if f.hold != nil {
			<-f.hold
		}
		text, end := f.answered(p.Text)
		f.add(id, agent.ModelAnswered{Answer: agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}}}, agent.TurnEnded{Reason: end})
	})
	return nil
}

func (f *fake) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for {
			f.mu.Lock()
			list, changed := f.stored[id], f.changed
			f.mu.Unlock()
			for ; int(after) < len(list); after++ {
				if !yield(list[after], nil) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fake) Query(context.Context, agent.Query) (any, error) { return nil, errors.New("no") }

func (f *fake) Close(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, id)
	return nil
}

func route(_ string, m bundle.Message) (bundle.Goal, error) {
	if m.Event == "bad" {
		return bundle.Goal{}, errors.New("no rule fits")
	}
	who, _ := m.Properties["who"].(string)
	return bundle.Goal{Agent: bundle.Ref{Kind: bundle.KindAgent, Name: "a"}, Key: bundle.Key(who)}, nil
}

func router(t *testing.T, f *fake) *Router {
	t.Helper()
	r := NewRouter(Config{Client: client.New(f), Route: route, Bundle: "b", Open: func(bundle.Goal) agent.Open { return agent.Open{} }})
	t.Cleanup(func() { r.Close(); f.all.Wait() })
	return r
}

func from(who, id, text string) bundle.Message {
	return bundle.Message{ID: id, Text: text, Properties: map[string]any{"who": who}}
}

func told(t *testing.T, r *Router, m bundle.Message) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := r.Deliver(ctx, "c", m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Messages of one conversation share a session, and each gets its own answer, once.
func TestRouter(t *testing.T) {
	f := newFake()
	r := router(t, f)
	for i := range 3 {
		if got := told(t, r, from("kim", "", fmt.Sprint(i))); got != "heard: "+fmt.Sprint(i) {
			t.Error(got)
		}
	}
	told(t, r, from("lee", "", "x"))
	if len(f.stored) != 2 {
		t.Errorf("%d sessions", len(f.stored))
	}
	// What comes twice is answered as before.
	told(t, r, from("kim", "same", "first"))
	if got := told(t, r, from("kim", "same", "second")); got != "heard: first" {
		t.Error(got)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.running) != 0 {
		t.Errorf("%d sessions are open that nobody waits for", len(f.running))
	}
}

// What cannot be delivered is refused, and what is too much as well.
func TestRouterRefuses(t *testing.T) {
	f := newFake()
	f.hold = make(chan struct{})
	r := router(t, f)
	release := sync.OnceFunc(func() { close(f.hold) })
	t.Cleanup(release) // before the router is closed
	for _, m := range []bundle.Message{{}, {Text: " "}, {Text: strings.Repeat("x", maxText+1)}, {Event: "bad", Text: "x"}} {
		if _, err := r.Deliver(t.Context(), "c", m); err == nil {
			t.Errorf("a message of %d bytes is taken", len(m.Text))
		}
	}
	var all []*Delivery
	for i := range maxFlight {
		d, err := r.Deliver(t.Context(), "c", from(fmt.Sprint(i), "", "x"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if _, err := r.Deliver(t.Context(), "c", from("one more", "", "x")); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	release()
	for _, d := range all {
		if _, err := d.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	f.answered = func(string) (string, agent.EndReason) { return "", agent.EndFailed }
	d, err := r.Deliver(t.Context(), "c", from("kim", "", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(t.Context()); err == nil {
		t.Error("a turn that failed has an answer")
	}
}

// Closing ends what waits.
func TestRouterCloses(t *testing.T) {
	f := newFake()
	f.hold = make(chan struct{})
	r := router(t, f)
	d, err := r.Deliver(t.Context(), "c", from("kim", "", "x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := d.Wait(t.Context()); err == nil {
		t.Error("there is an answer")
	}
	if _, err := r.Deliver(t.Context(), "c", from("kim", "", "x")); err == nil {
		t.Error("a closed router takes messages")
	}
	close(f.hold)
}

// What fails is started again: five times at once, then after a second, two, four, and 300
// at the most. What has worked counts anew.
func TestSupervise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		var starts []time.Time
		err := Supervise(t.Context(), 0, func(_ context.Context, well func()) error {
			starts = append(starts, time.Now())
			switch n := len(starts); {
			case n == 17:
				well()
				return errors.New("after it had worked")
			case n == 18:
				return nil
			case n%2 == 0:
				panic("it fell over")
			}
			return errors.New("it failed")
		}, func(_ error, _ int, wait time.Duration) { waits = append(waits, wait) })
		s := time.Second
		want := []time.Duration{0, 0, 0, 0, 0, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 300 * s, 300 * s, 0}
		if err != nil || !slices.Equal(waits, want) {
			t.Errorf("%v, %v", waits, err)
		}
		for i, w := range want {
			if got := starts[i+1].Sub(starts[i]); got != w {
				t.Errorf("start %d came after %v, want %v", i+1, got, w)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		err = Supervise(ctx, 0, func(context.Context, func()) error { cancel(over); return errors.New("x") }, nil)
		if !errors.Is(err, over) {
			t.Error(err)
		}
	})
}

func TestTerminal(t *testing.T) {
	f := newFake()
	r := router(t, f)
	var out strings.Builder
	one := &Terminal{In: strings.NewReader("hello\n\n  \nagain\n"), Out: &out, Clean: strings.ToUpper}
	err := one.Run(t.Context(), func(ctx context.Context, m bundle.Message) (*Delivery, error) { return r.Deliver(ctx, "c", m) })
	if err != nil || out.String() != "HEARD: HELLO\nHEARD: AGAIN\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	long := &Terminal{In: strings.NewReader(strings.Repeat("x", maxText+1)), Out: io.Discard}
	if err := long.Run(t.Context(), nil); err == nil {
		t.Error("a line without an end is read")
	}
}

// A schedule brings each time once, and leaves out what it is too busy for.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		when, err := cron.Parse("*/30 * * * *", time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var at []string
		s := &Schedule{When: when, Text: "look around", Now: time.Now}
		_ = s.Run(ctx, func(_ context.Context, m bundle.Message) (*Delivery, error) {
			at = append(at, m.ID)
			if m.Text != "look around" || m.Event != TickEvent {
				t.Errorf("%+v", m)
			}
			switch len(at) {
			case 2:
				return nil, ErrBusy
			case 3:
				cancel()
			}
			d := &Delivery{done: make(chan struct{})}
			close(d.done)
			return d, nil
		})
		if want := []string{"2000-01-01T00:30:00Z", "2000-01-01T01:00:00Z", "2000-01-01T01:30:00Z"}; !slices.Equal(at, want) {
			t.Error(at)
		}
	})
}

// A schedule whose message is not answered has failed; after three times in a row it is not
// run any more, but one answer in between begins the count anew.
func TestScheduleThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		when, err := cron.Parse("@hourly", time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		ticks, told := 0, ""
		err = Supervise(t.Context(), MostFailures, func(ctx context.Context, well func()) error {
			return (&Schedule{When: when, Text: "look around", Now: time.Now, Well: well}).Run(ctx, func(context.Context, bundle.Message) (*Delivery, error) {
				ticks++
				d := &Delivery{done: make(chan struct{})}
				if ticks != 3 {
					d.err = errors.New("the model is away")
				}
				close(d.done)
				return d, nil
			})
		}, func(_ error, n int, wait time.Duration) { told += fmt.Sprint(n, wait, ";") })
		if err == nil || !strings.Contains(err.Error(), "the model is away") || ticks != 6 || told != "1 0s;2 0s;1 0s;2 0s;3 0s;" {
			t.Errorf("%v after %d ticks, told %s", err, ticks, told)
		}
	})
}

const secret = "a secret of the test"

func sign(parts ...string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(strings.Join(parts, ".")))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// A webhook takes what is signed, and nothing else.
func TestWebhook(t *testing.T) {
	t.Parallel()
	f := newFake()
	r := router(t, f)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	w := &Webhook{Listener: l, Secret: []byte(secret), Path: "/in", Answer: true, Now: func() time.Time { return now }}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		_ = w.Run(ctx, func(ctx context.Context, m bundle.Message) (*Delivery, error) { return r.Deliver(ctx, "c", m) })
	})
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	t.Cleanup(func() { cancel(); all.Wait() })
	body := `{"text": "hello", "who": "kim", "n": 1, "deep": {"x": 1}}`
	stamp, old := strconv.FormatInt(now.Unix(), 10), strconv.FormatInt(now.Unix()-3600, 10)
	jsonType := "application/json"
	for _, tt := range []struct {
		name, method, path, body string
		header                   map[string]string
		code                     int
		want                     string
	}{
		{"signed", "POST", "/in", body, map[string]string{HeaderSignature: sign(body), "Content-Type": jsonType}, 200, `"text":"heard: hello"`},
		{"signed as others do", "POST", "/in", body, map[string]string{"X-Hub-Signature-256": sign(body)}, 200, `heard: {`},
		{"signed with its time", "POST", "/in", body, map[string]string{HeaderSignature: sign(stamp, body), HeaderTime: stamp}, 200, "heard"},
		{"an old one again", "POST", "/in", body, map[string]string{HeaderSignature: sign(old, body), HeaderTime: old}, 401, "signature"},
		{"a time that is not signed", "POST", "/in", body, map[string]string{HeaderSignature: sign(body), HeaderTime: stamp}, 401, "signature"},
		{"not signed", "POST", "/in", body, nil, 401, "signature"},
		{"another body", "POST", "/in", body + " ", map[string]string{HeaderSignature: sign(body)}, 401, "signature"},
		{"half a signature", "POST", "/in", body, map[string]string{HeaderSignature: sign(body)[:20]}, 401, "signature"},
		{"another way", "GET", "/in", "", map[string]string{HeaderSignature: sign("")}, 405, "POST"},
		{"another place", "POST", "/", body, map[string]string{HeaderSignature: sign(body)}, 404, "nothing"},
		{"no JSON", "POST", "/in", "[1]", map[string]string{HeaderSignature: sign("[1]"), "Content-Type": jsonType}, 400, "JSON"},
		{"too much", "POST", "/in", strings.Repeat("x", maxText+1), map[string]string{HeaderSignature: sign("x")}, 413, "large"},
		{"no rule", "POST", "/in", body, map[string]string{HeaderSignature: sign(body), HeaderEvent: "bad"}, 422, "delivered"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://"+l.Addr().String()+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range tt.header {
			req.Header.Set(k, v)
		}
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tt.code || !strings.Contains(string(data), tt.want) {
			t.Errorf("%s: %d %s %v", tt.name, resp.StatusCode, data, err)
		}
	}
	if short := (&Webhook{Listener: l, Secret: []byte("short")}); short.Run(t.Context(), nil) == nil {
		t.Error("a webhook with a secret that can be guessed runs")
	}
}

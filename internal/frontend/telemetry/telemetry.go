// Package telemetry tells collectors of OpenTelemetry what sessions do: traces, events and
// figures, with the conventions for generative AI, as OTLP over HTTP or gRPC. It is a front-end: a
// fold of the events that every reader of a session gets, and of nothing else.
//
// It never holds a session up: what cannot be delivered in time is dropped and counted. It
// tells nothing of what is said unless that is asked for. Its goroutines, one for each
// session that is followed and one for each signal, end with [Observer.Close].
package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/base/meter"
)

// Config says what is told to whom. Meter is required.
type Config struct {
	Meter *meter.Registry

	Traces, Events, Metrics *Target // nil = that signal is not sent

	Service  string            // name; "" = dure
	Version  string            // of the program
	Resource map[string]string // more that is said of where records come from
	Content  Content
	Parts    Parts // of content that are told
	Sampler  Sampler
	Parent   *Context // the place in the traces of another program that all turns are a part of
	Delta    bool     // figures count since the last report, and not since the start

	Provider func(model string) string // of a model; nil = nobody knows
	Redact   func(string) string       // takes secrets out of content; nil = it is told as it is
	HTTP     http.RoundTripper         // nil = http.DefaultTransport
	Logger   *slog.Logger
	Now      func() time.Time
	Instance string // of the program; "" = any
}

// Observer follows sessions. It is safe for concurrent use.
type Observer struct {
	cfg     Config
	figures figures
	traces  *line[*span]
	events  *line[*event]
	metrics *reporter
	life    context.Context
	stop    context.CancelFunc
	follows sync.WaitGroup

	carriers []http.RoundTripper

	mu       sync.Mutex
	t        client.Transport
	running  map[string]*following // by session
	families map[string]*Context   // what sessions of agents belong to, by session
	known    map[string]string     // providers, by model
	closed   bool
}

// following is a session whose events are being read.
type following struct{ again *watched }

// watched is a session to be followed, from a time on.
type watched struct {
	since time.Time
	above *Context
}

// New returns an observer, which does nothing until a session is opened.
func New(c Config) *Observer {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	if c.HTTP == nil {
		c.HTTP = http.DefaultTransport
	}
	if c.Instance == "" {
		var id [16]byte
		_, _ = rand.Read(id[:]) // it does not fail
		c.Instance = hex.EncodeToString(id[:])
	}
	o := &Observer{cfg: c, figures: newFigures(c.Meter), running: map[string]*following{}, families: map[string]*Context{}}
	o.life, o.stop = context.WithCancel(context.Background())
	calls := c.HTTP
	if slices.ContainsFunc([]*Target{c.Traces, c.Events, c.Metrics}, func(t *Target) bool { return t != nil && t.GRPC }) {
		calls = overHTTP2(c.HTTP)
	}
	o.carriers = []http.RoundTripper{c.HTTP, calls}
	from := origin{resource: c.resource(), version: c.Version}
	sender := func(t *Target, signal string) sender {
		carrier := c.HTTP
		if t.GRPC {
			carrier = calls
		}
		return sender{
			target: *t, signal: signal, http: &http.Client{Transport: carrier, CheckRedirect: noRedirect},
			agent: "dure/" + c.Version, log: c.Logger, dropped: o.figures.dropped,
		}
	}
	if c.Traces != nil {
		o.traces = newLine(sender(c.Traces, "traces"), (*span).size, from.spans)
	}
	if c.Events != nil {
		o.events = newLine(sender(c.Events, "logs"), (*event).size, from.events)
	}
	if c.Metrics != nil {
		o.metrics = &reporter{sender: sender(c.Metrics, "metrics"), from: from, meter: c.Meter, delta: c.Delta, now: c.Now}
	}
	return o
}

// noRedirect keeps headers, which may hold secrets, from going where nobody has sent them.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// resource says where all records come from.
func (c Config) resource() attrs {
	said := map[string]string{
		"service.name": "dure", "service.version": c.Version, "service.instance.id": c.Instance,
		"telemetry.sdk.name": "dure", "telemetry.sdk.language": "go", "telemetry.sdk.version": c.Version,
		"os.type": runtime.GOOS, "host.arch": runtime.GOARCH,
	}
	for k, v := range c.Resource {
		said[k] = v
	}
	if c.Service != "" {
		said["service.name"] = c.Service
	}
	var keys []string
	for k := range said {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var list attrs
	for _, k := range keys {
		list.text(k, said[k])
	}
	return list
}

// Watch returns a transport that is t, and has the sessions that are opened over it
// followed. The observer watches one transport.
func (o *Observer) Watch(t client.Transport) client.Transport {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.t = t
	return watch{t, o}
}

type watch struct {
	client.Transport
	o *Observer
}

// Open opens a session, and has it followed from then on.
func (w watch) Open(ctx context.Context, c agent.Open) (agent.SessionInfo, error) {
	since := w.o.Since()
	info, err := w.Transport.Open(ctx, c)
	if err == nil {
		w.o.Follow(info.ID, since)
	}
	return info, err
}

// CloseIdleConnections ends what connections to collectors are open and not used.
func (o *Observer) CloseIdleConnections() {
	for _, c := range o.carriers {
		(&http.Client{Transport: c}).CloseIdleConnections()
	}
}

// Since is the time to give to [Observer.Follow] of a session that is about to be opened.
func (o *Observer) Since() time.Time { return o.cfg.Now().Truncate(time.Millisecond) }

// Follow tells of what happens in a session from a time on. One that is followed already is
// not told of twice.
func (o *Observer) Follow(session string, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.t != nil {
		o.watch(session, since, o.cfg.Parent)
	}
}

// Begin has figures be told of from now on; otherwise they are once a session is followed.
func (o *Observer) Begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.metrics.start()
	}
}

// followChild is as [Observer.Follow], for a session that worked for one that is followed.
func (o *Observer) followChild(session string, since time.Time, above *Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watch(session, since, above)
}

func (o *Observer) watch(session string, since time.Time, above *Context) {
	w := &watched{since: since, above: above}
	if f := o.running[session]; f != nil {
		if f.again == nil { // it may be over, and open again
			f.again = w
		}
		return
	}
	f := &following{again: w}
	o.running[session] = f
	o.metrics.start()
	o.follows.Go(func() { o.follow(o.t, session, f) })
}

// follow reads the events of a session as long as it is open, and as long as somebody wants
// it to be read again.
func (o *Observer) follow(t client.Transport, session string, f *following) {
	fold := newFold(o, session)
	for {
		o.mu.Lock()
		w := f.again
		f.again = nil
		if w == nil {
			delete(o.running, session)
			delete(o.families, session)
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		fold.above = w.above
		o.read(t, fold, w.since)
	}
}

// read has a fold tell of the events of its session that it has not seen.
func (o *Observer) read(t client.Transport, f *fold, since time.Time) {
	now := since
	for e, err := range client.New(t).Attach(f.id).Events(o.life, f.last) {
		if err != nil {
			if o.life.Err() == nil {
				o.cfg.Logger.Debug("telemetry: reading a session", "session", f.id, "error", err)
			}
			break
		}
		if e.Live() {
			continue
		}
		f.last = e.Seq
		if e.Time.Before(since) {
			f.know(e)
			continue
		}
		f.take(e)
		now = e.Time
	}
	f.end(now)
}

// belongs says what a session that is about to be opened is a part of.
func (o *Observer) belongs(session string, above *Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.families) < maxFamilies {
		o.families[session] = above
	}
}

// maxFamilies bounds the sessions of agents whose place in the traces is known.
const maxFamilies = 10_000

// provider is the name of who serves a model, in the words of the conventions.
func (o *Observer) provider(model string) string {
	if o.cfg.Provider == nil {
		return ""
	}
	o.mu.Lock()
	name, ok := o.known[model]
	o.mu.Unlock()
	if ok {
		return name
	}
	name = o.cfg.Provider(model)
	if known, ok := providers[name]; ok {
		name = known
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= maxKnown {
		o.known = map[string]string{}
	}
	o.known[model] = name
	return name
}

// maxKnown bounds the models whose providers are remembered.
const maxKnown = 1000

// providers are the names that the conventions have for those who serve models.
var providers = map[string]string{
	"google": "gcp.gemini", "gemini": "gcp.gemini", "vertex": "gcp.vertex_ai", "bedrock": "aws.bedrock", "azure": "azure.ai.openai",
	"mistral": "mistral_ai", "xai": "x_ai", "moonshot": "moonshot_ai",
}

// place returns where something is of a turn, and whether spans of its trace are told.
func (o *Observer) place(session, turn string, id spanID, above *Context) (place, bool) {
	if above != nil {
		return place{above.at.trace, id}, o.traces != nil && o.cfg.Sampler.takes(above.at.trace, above)
	}
	t := traceOf(session, turn)
	return place{t, id}, o.traces != nil && o.cfg.Sampler.takes(t, nil)
}

// Place returns where a call is in the traces, for processes that it starts. ok is false when
// no traces are told.
func (o *Observer) Place(session, turn, key string) (c Context, ok bool) {
	if o == nil || o.traces == nil || key == "" {
		return Context{}, false
	}
	o.mu.Lock()
	above := o.families[session]
	o.mu.Unlock()
	if above == nil {
		above = o.cfg.Parent
	}
	at, on := o.place(session, turn, callSpan(session, key), above)
	c = Context{at: at, sampled: on}
	if above != nil {
		c.state = above.state
	}
	return c, true
}

// tell sends a span, if those of its trace are told.
func (o *Observer) tell(s *span, on bool) {
	if on {
		o.traces.put(s)
	}
}

func (o *Observer) log(e *event) {
	if o.events != nil {
		o.events.put(e)
	}
}

// Close tells of what has not been told, and ends everything: at once when ctx is done. The
// sessions should have ended.
func (o *Observer) Close(ctx context.Context) error {
	o.mu.Lock()
	was := o.closed
	o.closed = true
	o.mu.Unlock()
	if was {
		return nil
	}
	read := make(chan struct{})
	go func() { o.follows.Wait(); close(read) }()
	select {
	case <-read:
	case <-ctx.Done():
	}
	o.stop()
	<-read // what reads sessions looks at the context
	var lines sync.WaitGroup
	for _, end := range []func(context.Context){o.traces.close, o.events.close, o.metrics.close} {
		lines.Go(func() { end(ctx) })
	}
	lines.Wait()
	if ctx.Err() != nil {
		return errors.New("telemetry: there was no time to deliver everything")
	}
	return nil
}

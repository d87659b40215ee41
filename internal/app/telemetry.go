package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/meter"
	"dure/internal/frontend/telemetry"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/session"
)

// watched is what is told, and counted, of the sessions of the program. There is nothing of
// it unless the settings, or somebody who shows figures, want it.
type watched struct {
	mu       sync.Mutex
	meter    *meter.Registry
	observer *telemetry.Observer
	over     bool
	tls      *tls.Config // to speak to collectors; nil = as to anybody
}

// boundTelemetry keeps telemetry to where the network mode lets the program reach, and reads
// the certificates for it.
func (a *App) boundTelemetry() {
	t := &a.cfg.Telemetry
	if !t.On {
		return
	}
	for _, to := range []**config.Collector{&t.Traces, &t.Metrics, &t.Events} {
		if *to == nil {
			continue
		}
		if u, err := url.Parse((*to).URL); err != nil || !a.near(u) {
			a.noteTelemetry(fmt.Sprintf("telemetry is not sent to %s: the network mode %s does not let it be asked", u.Host, a.cfg.Network.Mode))
			*to = nil
		}
	}
	var err error
	if a.watched.tls, err = certificates(*t, a.transport.TLSClientConfig); err != nil {
		a.noteTelemetry("no telemetry is sent: " + err.Error())
		t.Traces, t.Metrics, t.Events = nil, nil, nil
	}
	t.On = t.Traces != nil || t.Metrics != nil || t.Events != nil
}

func (a *App) noteTelemetry(text string) {
	a.cfg.Notes = append(a.cfg.Notes, agent.Note{Level: "warn", Code: "settings", Text: text})
}

// certificates reads what collectors are known by, and what they are shown.
func certificates(t config.Telemetry, usual *tls.Config) (*tls.Config, error) {
	if t.CA == "" && t.Cert == "" && t.CertKey == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if usual != nil {
		c = usual.Clone()
	}
	if t.CA != "" {
		pool, err := trusted(t.CA)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.CA, err)
		}
		c.RootCAs = pool
	}
	if t.Cert != "" || t.CertKey != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.CertKey)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Cert, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Metrics returns the figures of the program, which are counted from the first call on. It
// is called before sessions are opened whose figures are wanted.
func (a *App) Metrics() *meter.Registry {
	a.watched.mu.Lock()
	defer a.watched.mu.Unlock()
	if a.watched.meter == nil {
		a.watched.meter = a.newMeter()
	}
	return a.watched.meter
}

// newMeter returns where figures are counted, with those of the queues.
func (a *App) newMeter() *meter.Registry {
	r := meter.New(time.Now())
	r.Ask("dure.turns.running", "{turn}", "Turns that run.", func() float64 { n, _ := a.loads(); return float64(n) })
	r.Ask("dure.turns.waiting", "{turn}", "Turns that wait until there is room in their lane.", func() float64 { _, n := a.loads(); return float64(n) })
	return r
}

// TellFigures has those of the program be told of, if the settings want that, before there is
// a session.
func (a *App) TellFigures() {
	if !a.cfg.Telemetry.On {
		return
	}
	if w := a.watch(); w != nil {
		w.Begin()
	}
}

// loads is how many turns run and wait, of the sessions that are open here.
func (a *App) loads() (running, waiting int) {
	a.mu.Lock()
	queues := a.queues
	a.mu.Unlock()
	if queues == nil {
		return 0, 0 // none has been opened
	}
	return queues.Loads()
}

// watch returns who tells of sessions; nil = nobody does. The process of an agent leaves it
// to the program that it works for, which reads its log.
func (a *App) watch() *telemetry.Observer {
	w := &a.watched
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.observer != nil || w.over || a.upper != nil || w.meter == nil && !a.cfg.Telemetry.On {
		return w.observer
	}
	if w.meter == nil {
		w.meter = a.newMeter()
	}
	t := a.cfg.Telemetry
	c := telemetry.Config{
		Meter: w.meter, Traces: target(t.Traces), Events: target(t.Events), Metrics: target(t.Metrics),
		Service: t.Service, Version: a.opts.Version, Resource: t.Resource, Content: contents[t.Content], Parts: partsOf(t.Parts), Delta: t.Delta,
		Sampler:  telemetry.Sampler{Ratio: t.Sample, Always: t.Always},
		Provider: a.providerOf, Redact: a.patterns.Redact, HTTP: a.transport, Logger: a.opts.Logger,
	}
	if w.tls != nil {
		own := a.transport.Clone()
		own.TLSClientConfig = w.tls
		c.HTTP = own
	}
	if parent, ok := telemetry.ParseContext(t.Parent, t.State); ok {
		c.Parent = &parent
	}
	w.observer = telemetry.New(c)
	w.observer.Watch(wire{a})
	return w.observer
}

var contents = map[string]telemetry.Content{
	"spans": telemetry.ContentSpans, "events": telemetry.ContentEvents, "both": telemetry.ContentBoth,
}

var contentParts = map[string]telemetry.Parts{
	"prompts": telemetry.PartPrompts, "answers": telemetry.PartAnswers, "inputs": telemetry.PartInputs, "results": telemetry.PartResults,
}

func partsOf(names []string) (p telemetry.Parts) {
	for _, name := range names {
		p |= contentParts[name]
	}
	return p
}

func target(c *config.Collector) *telemetry.Target {
	if c == nil {
		return nil
	}
	t := &telemetry.Target{
		URL: c.URL, Headers: map[string]string{}, JSON: c.JSON, GRPC: c.GRPC, Gzip: c.Gzip,
		Timeout: c.Timeout, Queue: c.Queue, Batch: c.Batch, Delay: c.Delay,
	}
	for name, value := range c.Headers {
		t.Headers[name] = string(value)
	}
	return t
}

// providerOf is who serves a model.
func (a *App) providerOf(model string) string {
	info, err := a.models.Info(model)
	if err != nil {
		return ""
	}
	return info.Provider
}

// openIn opens a session, and has it watched, if anybody wants that.
func (a *App) openIn(ctx context.Context, reg *session.Registry, o agent.Open) (agent.SessionInfo, error) {
	w := a.watch()
	if w == nil {
		return reg.Open(ctx, o)
	}
	since := w.Since()
	info, err := reg.Open(ctx, o)
	if err == nil {
		w.Follow(info.ID, since)
	}
	return info, err
}

// countPatience is how long the end may be late for what is counted and sent nowhere.
const countPatience = 2 * time.Second

// endWatch tells of what has not been told, as long as the settings let the end be late for
// it. The sessions have ended.
func (a *App) endWatch() {
	w := &a.watched
	w.mu.Lock()
	o := w.observer
	w.over = true
	w.mu.Unlock()
	if o == nil {
		return
	}
	patience := a.cfg.Telemetry.Exit
	if !a.cfg.Telemetry.On {
		patience = countPatience
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("telemetry: the end was late"))
	defer cancel()
	if err := o.Close(ctx); err != nil {
		a.opts.Logger.Debug("telemetry", "error", err)
	}
	a.http.CloseIdleConnections()
	o.CloseIdleConnections()
}

// traced has processes of a call know where in the traces it is.
func (a *App) traces() plug.Points {
	if a.cfg.Telemetry.Traces == nil {
		return plug.Points{}
	}
	return plug.Points{Wrap: []plug.Wrap{a.traced}}
}

func (a *App) traced(_ agent.Tool, next plug.Run) plug.Run {
	return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
		env := agent.CallEnvOf(ctx)
		if at, ok := a.watch().Place(tc.InstanceKey, tc.TurnID, env.Key); ok {
			env.Vars = append(env.Vars[:len(env.Vars):len(env.Vars)], "TRACEPARENT="+at.String())
			if state := at.State(); state != "" {
				env.Vars = append(env.Vars, "TRACESTATE="+state)
			}
			ctx = agent.WithCallEnv(ctx, env)
		}
		return next(ctx, tc, c)
	}
}

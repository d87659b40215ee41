package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/base/meter"
	"dure/internal/kernel/plug"
)

// Program is what is told, and counted, of all sessions of a program. There is nothing of it
// unless the settings, or somebody who shows figures, want it. It is safe for concurrent use.
type Program struct {
	ProgramConfig

	mu       sync.Mutex
	meter    *meter.Registry
	observer *Observer
	over     bool
}

// ProgramConfig says what a program tells of its sessions. Functions are required.
type ProgramConfig struct {
	Settings
	Version  string // of the program
	HTTP     http.RoundTripper
	Redact   func(string) string
	Provider func(model string) string
	Logger   *slog.Logger

	Loads     func() (running, waiting int) // turns, by their lanes
	Apart     func() bool                   // another program reads the logs of the sessions
	Transport client.Transport
}

// exit is how long the end may be late for what is counted and sent nowhere.
const exit = 2 * time.Second

// NewProgram returns what tells of the sessions of a program.
func NewProgram(c ProgramConfig) *Program { return &Program{ProgramConfig: c} }

// Name returns the name of the extension.
func (p *Program) Name() string { return "telemetry" }

// Attach has processes of a call know where in the traces it is.
func (p *Program) Attach(context.Context, *plug.Session) (plug.Points, error) {
	if p.Traces == nil {
		return plug.Points{}, nil
	}
	return plug.Points{Wrap: []plug.Wrap{p.traced}}, nil
}

func (p *Program) traced(_ agent.Tool, next plug.Run) plug.Run {
	return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
		env := agent.CallEnvOf(ctx)
		if at, ok := p.watch().Place(tc.InstanceKey, tc.TurnID, env.Key); ok {
			env.Vars = append(env.Vars[:len(env.Vars):len(env.Vars)], "TRACEPARENT="+at.String())
			if state := at.State(); state != "" {
				env.Vars = append(env.Vars, "TRACESTATE="+state)
			}
			ctx = agent.WithCallEnv(ctx, env)
		}
		return next(ctx, tc, c)
	}
}

// Metrics returns the figures of the program, which are counted from the first call on. It
// is called before sessions are opened whose figures are wanted.
func (p *Program) Metrics() *meter.Registry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.figures()
}

// figures is where figures are counted, with those of the lanes.
func (p *Program) figures() *meter.Registry {
	if p.meter == nil {
		p.meter = meter.New(time.Now())
		p.meter.Ask("dure.turns.running", "{turn}", "Turns that run.", func() float64 { n, _ := p.Loads(); return float64(n) })
		p.meter.Ask("dure.turns.waiting", "{turn}", "Turns that wait until there is room in their lane.", func() float64 { _, n := p.Loads(); return float64(n) })
	}
	return p.meter
}

// Begin has the figures of the program be told of, if the settings want that, before there
// is a session.
func (p *Program) Begin() {
	if !p.On {
		return
	}
	if o := p.watch(); o != nil {
		o.Begin()
	}
}

// watch returns who tells of sessions; nil = nobody does.
func (p *Program) watch() *Observer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.observer != nil || p.over || p.Apart() || p.meter == nil && !p.On {
		return p.observer
	}
	c := p.config()
	c.Meter = p.figures()
	p.observer = New(c)
	p.observer.Watch(p.Transport)
	return p.observer
}

// Open opens a session, and has it watched, if anybody wants that.
func (p *Program) Open(ctx context.Context, open func(context.Context, agent.Open) (agent.SessionInfo, error), o agent.Open) (agent.SessionInfo, error) {
	w := p.watch()
	if w == nil {
		return open(ctx, o)
	}
	since := w.Since()
	info, err := open(ctx, o)
	if err == nil {
		w.Follow(info.ID, since)
	}
	return info, err
}

// End tells of what has not been told, as long as the end of the program may be late for it.
// The sessions have ended.
func (p *Program) End() error {
	p.mu.Lock()
	o := p.observer
	p.over = true
	p.mu.Unlock()
	if o == nil {
		return nil
	}
	defer o.CloseIdleConnections()
	patience := exit
	if p.On {
		patience = p.Exit
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("telemetry: the end was late"))
	defer cancel()
	return o.Close(ctx)
}

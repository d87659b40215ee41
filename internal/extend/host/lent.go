package host

import (
	"context"

	"dure/agent"
)

// Lent is a session whose tools somebody outside of it calls. Each call is decided on,
// guarded and logged as one of the model's. It is safe for concurrent use.
type Lent struct {
	x     *Extension
	id    string
	reach agent.Reach
	alone chan struct{} // holds one value while a call runs that changes something
}

// Lend opens a session whose tools may be called from outside. With asks somebody answers
// what it asks for; without, what would have to be asked for is denied.
func (x *Extension) Lend(ctx context.Context, title string, asks bool) (*Lent, error) {
	info, err := x.cfg.Open(ctx, agent.Open{Title: title, Lend: true, Approver: asks, Ready: true})
	if err != nil {
		return nil, err
	}
	return &Lent{id: info.ID, x: x, reach: x.cfg.Reach(info.ID), alone: make(chan struct{}, 1)}, nil
}

// ID is that of the session.
func (l *Lent) ID() string { return l.id }

// Call calls a tool. What can change something runs alone; reads run beside each other.
func (l *Lent) Call(ctx context.Context, id, origin string, tool agent.Spec, input []byte) (agent.Result, error) {
	if tool.Class != agent.Read {
		select {
		case l.alone <- struct{}{}:
			defer func() { <-l.alone }()
		case <-ctx.Done():
			return agent.Result{}, context.Cause(ctx)
		}
	}
	return l.reach.Invoke(ctx, agent.Invocation{ID: id, Origin: origin, Tool: tool.Name, Input: input})
}

// Text is what a model would read of a command of a file, or of a skill, that a person has
// typed. Commands in it run where that needs no question.
func (l *Lent) Text(ctx context.Context, name, arguments string) (string, error) {
	return l.x.cfg.Text(ctx, l.id, name, arguments)
}

// Close ends the session; its log stays.
func (l *Lent) Close(ctx context.Context) error { return l.x.cfg.Close(ctx, l.id) }

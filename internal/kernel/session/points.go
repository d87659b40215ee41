package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// mergePoints makes one of what the capabilities of a session have added to it. A point that
// nobody has stays nil, so that it costs nothing.
func mergePoints(list []plug.Attached) (m plug.Points, err error) {
	var extras []func(context.Context, plug.Moment) []agent.ContextAdded
	for _, p := range list {
		mergeTurn(&m.Hooks.TurnHooks, p.Hooks.TurnHooks)
		mergeHooks(&m.Hooks, p.Hooks)
		m.Wrap = append(m.Wrap, p.Wrap...)
		if p.Extra != nil {
			extras = append(extras, p.Extra)
		}
		join(&m.Choose, p.Choose, func(a, b func(context.Context, plug.Catalog) (plug.Catalog, error)) func(context.Context, plug.Catalog) (plug.Catalog, error) {
			return func(ctx context.Context, c plug.Catalog) (plug.Catalog, error) {
				c, err := a(ctx, c)
				if err != nil {
					return c, err
				}
				return b(ctx, c)
			}
		})
		join(&m.Close, p.Close, func(a, b func()) func() { return func() { b(); a() } })
		if bad := errors.Join(
			mergeGate(&m.Gate, p.Gate), only(&m.Undo, p.Undo), only(&m.Guard, p.Guard), only(&m.Compactor, p.Compactor), only(&m.Permissions, p.Permissions),
			only(&m.Plans, p.Plans), only(&m.Revive, p.Revive), only(&m.Awaits, p.Awaits), only(&m.Thinks, p.Thinks),
		); bad != nil && err == nil {
			err = fmt.Errorf("%s: %w", p.Name, bad)
		}
	}
	if m.Guard.Check == nil {
		m.Guard.Check = func(context.Context, agent.Spec, agent.Call, agent.Result) (agent.Result, error) {
			return agent.Result{}, errors.New("the session has no guard")
		}
	}
	if extras != nil {
		m.Extra = func(ctx context.Context, at plug.Moment) (all []agent.ContextAdded) {
			for _, extra := range extras {
				all = append(all, extra(ctx, at)...)
			}
			return all
		}
	}
	return m, err
}

// join adds a function to another one; both says what the two are together.
func join[F any](into *F, f F, both func(a, b F) F) {
	switch {
	case reflect.ValueOf(f).IsNil():
	case reflect.ValueOf(*into).IsNil():
		*into = f
	default:
		*into = both(*into, f)
	}
}

// only takes over a point of which a session has at most one.
func only[T any](into *T, p T) error {
	switch {
	case reflect.ValueOf(p).IsZero():
	case !reflect.ValueOf(*into).IsZero():
		return fmt.Errorf("another capability has the point %T already", p)
	default:
		*into = p
	}
	return nil
}

// either joins questions, of which one yes is enough. All are asked.
func either(a, b func() bool) func() bool {
	return func() bool {
		yes := a()
		return b() || yes
	}
}

// mergeGate puts the stages of a capability into the gate. Of those that there is one of,
// no second one comes in.
func mergeGate(m *plug.Gate, g plug.Gate) error {
	m.Bounds, m.Hooks = append(m.Bounds, g.Bounds...), append(m.Hooks, g.Hooks...)
	m.Commands, m.Last = append(m.Commands, g.Commands...), append(m.Last, g.Last...)
	return errors.Join(only(&m.Rules, g.Rules), only(&m.Verdict, g.Verdict), only(&m.Parent, g.Parent))
}

// stages returns the gate as a turn walks it.
func stages(g plug.Gate) (all []plug.Stage) {
	add := func(list ...plug.Stage) {
		for _, s := range list {
			if s.Decide != nil {
				all = append(all, s)
			}
		}
	}
	if g.Verdict.Decide == nil {
		g.Verdict = plug.Stage{Name: "policy", Decide: func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, error) {
			return agent.Decision{Verdict: agent.Deny, Reason: "the session has no policy, and so nothing is allowed"}, nil
		}}
	}
	if g.Parent.Decide != nil {
		g.Rules, g.Verdict = denying(g.Rules), denying(g.Verdict)
	}
	add(g.Rules)
	add(g.Bounds...)
	add(g.Hooks...)
	add(g.Commands...)
	add(g.Verdict, g.Parent)
	add(g.Last...)
	return all
}

// denying is a stage that only denies: whoever it would ask or allow for decides behind it.
func denying(s plug.Stage) plug.Stage {
	decide := s.Decide
	if decide == nil {
		return s
	}
	s.Decide = func(ctx context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
		d, err := decide(ctx, p, soFar)
		if d.Verdict == agent.AskUser || d.Verdict == agent.Allow {
			d.Verdict = agent.Pass
		}
		return d, err
	}
	return s
}

// mergeTurn adds the moments of a turn, but for Due, which is the session's own.
func mergeTurn(m *plug.TurnHooks, h plug.TurnHooks) {
	join(&m.Asking, h.Asking, func(a, b func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, bool)) func(context.Context, agent.Proposal, agent.Decision) (agent.Decision, bool) {
		return func(ctx context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, bool) {
			if d, decided := a(ctx, p, soFar); decided {
				return d, true
			}
			return b(ctx, p, soFar)
		}
	})
	join(&m.Calling, h.Calling, func(a, b func(context.Context, agent.Call) (json.RawMessage, error)) func(context.Context, agent.Call) (json.RawMessage, error) {
		return func(ctx context.Context, c agent.Call) (json.RawMessage, error) {
			input, err := a(ctx, c)
			if err != nil {
				return nil, err
			}
			c.Input = input
			return b(ctx, c)
		}
	})
	type after = func(context.Context, agent.Proposal, agent.Result, time.Duration) (agent.Result, bool)
	join(&m.After, h.After, func(a, b after) after {
		return func(ctx context.Context, p agent.Proposal, r agent.Result, took time.Duration) (agent.Result, bool) {
			r, first := b(ctx, p, r, took)
			r, second := a(ctx, p, r, took)
			return r, first || second
		}
	})
	join(&m.Batch, h.Batch, func(a, b func(context.Context, []agent.Call, []agent.CallFinished) bool) func(context.Context, []agent.Call, []agent.CallFinished) bool {
		return func(ctx context.Context, calls []agent.Call, results []agent.CallFinished) bool {
			stop := a(ctx, calls, results)
			return b(ctx, calls, results) || stop
		}
	})
	join(&m.Denied, h.Denied, told3)
	join(&m.Stopping, h.Stopping, func(a, b func(context.Context, string) (string, string)) func(context.Context, string) (string, string) {
		return func(ctx context.Context, said string) (words, by string) {
			if words, by = a(ctx, said); words != "" || ctx.Err() != nil {
				return words, by
			}
			return b(ctx, said)
		}
	})
	join(&m.Showing, h.Showing, func(a, b func(context.Context, agent.ModelAnswered) *string) func(context.Context, agent.ModelAnswered) *string {
		return func(ctx context.Context, answer agent.ModelAnswered) *string {
			if shown := a(ctx, answer); shown != nil {
				return shown
			}
			return b(ctx, answer)
		}
	})
	join(&m.Veils, h.Veils, either)
	mergeAround(m, h)
}

// mergeAround adds what is told of turns and steps, and what is around them.
func mergeAround(m *plug.TurnHooks, h plug.TurnHooks) {
	join(&m.Step, h.Step, told3)
	join(&m.Turn, h.Turn, told2)
	type aroundTurn = func(context.Context, func(context.Context) error) error
	join(&m.AroundTurn, h.AroundTurn, func(a, b aroundTurn) aroundTurn {
		return func(ctx context.Context, run func(context.Context) error) error {
			return a(ctx, func(ctx context.Context) error { return b(ctx, run) })
		}
	})
	type runStep = func(context.Context) (plug.Stepped, error)
	type aroundStep = func(context.Context, int, runStep) error
	join(&m.AroundStep, h.AroundStep, func(a, b aroundStep) aroundStep {
		return func(ctx context.Context, number int, run runStep) error {
			return a(ctx, number, func(ctx context.Context) (done plug.Stepped, err error) {
				err = b(ctx, number, func(ctx context.Context) (plug.Stepped, error) {
					done, err = run(ctx)
					return done, err
				})
				return done, err
			})
		}
	})
}

// mergeHooks adds the moments of a session.
func mergeHooks(m *plug.Hooks, h plug.Hooks) {
	if h.Heard != nil && h.Screens == nil {
		h.Screens = func() bool { return true }
	}
	join(&m.Opened, h.Opened, func(a, b func(context.Context, string) (string, string)) func(context.Context, string) (string, string) {
		return func(ctx context.Context, how string) (string, string) {
			words, by := a(ctx, how)
			more, whose := b(ctx, how)
			if words == "" || more == "" {
				return words + more, or(whose, by)
			}
			return words + "\n\n" + more, or(whose, by)
		}
	})
	join(&m.Heard, h.Heard, func(a, b func(context.Context, agent.InputQueued) (string, *agent.InputDropped)) func(context.Context, agent.InputQueued) (string, *agent.InputDropped) {
		return func(ctx context.Context, q agent.InputQueued) (string, *agent.InputDropped) {
			text, drop := a(ctx, q)
			if drop != nil || ctx.Err() != nil {
				return text, drop
			}
			q.Text = text
			return b(ctx, q)
		}
	})
	join(&m.Speaks, h.Speaks, either)
	join(&m.Screens, h.Screens, either)
	join(&m.Takes, h.Takes, func(a, b func(agent.InputQueued) bool) func(agent.InputQueued) bool {
		return func(q agent.InputQueued) bool { return a(q) || b(q) }
	})
	join(&m.Switching, h.Switching, func(a, b func(context.Context, string, string) error) func(context.Context, string, string) error {
		return func(ctx context.Context, from, to string) error {
			if err := a(ctx, from, to); err != nil {
				return err
			}
			return b(ctx, from, to)
		}
	})
	join(&m.Switched, h.Switched, told3)
	join(&m.Compacting, h.Compacting, func(a, b func(context.Context, string, string) (string, error)) func(context.Context, string, string) (string, error) {
		return func(ctx context.Context, trigger, focus string) (string, error) {
			more, err := a(ctx, trigger, focus)
			if err != nil {
				return more, err
			}
			again, err := b(ctx, trigger, focus)
			return strings.TrimSpace(more + "\n" + again), err // one of them may be empty
		}
	})
	join(&m.Spoken, h.Spoken, func(a, b func()) func() { return func() { a(); b() } })
	join(&m.Added, h.Added, told)
	join(&m.Rewound, h.Rewound, told)
	join(&m.Over, h.Over, func(a, b func(agent.TurnEnded, string)) func(agent.TurnEnded, string) { return told2(b, a) })
	join(&m.Compacted, h.Compacted, told2)
	join(&m.Ended, h.Ended, told2)
	join(&m.Closing, h.Closing, told)
}

// told tells two capabilities the same.
func told[T any](a, b func(T)) func(T) {
	return func(v T) {
		a(v)
		b(v)
	}
}

func told2[T, U any](a, b func(T, U)) func(T, U) {
	return func(t T, u U) {
		a(t, u)
		b(t, u)
	}
}

func told3[T, U, V any](a, b func(T, U, V)) func(T, U, V) {
	return func(t T, u U, v V) {
		a(t, u, v)
		b(t, u, v)
	}
}

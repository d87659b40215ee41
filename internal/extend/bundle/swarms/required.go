package swarms

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/kernel/plug"
)

// mostReminders is how often a turn is kept from ending before a tool that its agent has to
// call was called.
const mostReminders = 3

// required keeps the turns of an agent from ending before it has called one of the tools that
// it has to call.
type required struct {
	names []string     // as the bundle has them
	calls []string     // what calls of them are called
	note  func(string) // is told of a turn that ends without

	mu   sync.Mutex
	done bool // one was called in this turn; guarded by mu
	told int  // reminders of this turn; guarded by mu
}

// requires has an agent of a bundle call what it has to call.
func (r *Session) requires() plug.Points {
	if len(r.effective.Agent.Spec.(*bundle.Agent).RequiredTools) == 0 {
		return plug.Points{}
	}
	q := &required{names: r.effective.Agent.Spec.(*bundle.Agent).RequiredTools, note: func(text string) {
		if err := r.build.Record(agent.Note{Level: "warn", Text: text}); err != nil {
			r.ext.cfg.Logger.Warn("noting a turn without a tool that has to be called", "session", r.instance, "error", err)
		}
	}}
	for _, t := range r.effective.Tools {
		spec := t.Spec.(*bundle.Tool)
		for _, x := range spec.Exports {
			if !slices.ContainsFunc(q.names, func(name string) bool { return x.Call == name || strings.HasPrefix(x.Call, name+"__") }) {
				continue
			}
			call := x.Call
			if spec.Runtime == bundle.RuntimeBuiltin && !spec.Kit { // it is called by the name that the program has for it
				call = spec.Entry
			}
			if own, ok := r.cat.Canonical(call); ok {
				call = own
			}
			q.calls = append(q.calls, call)
		}
	}
	return plug.Points{Hooks: q.hooks()}
}

func (q *required) hooks() plug.Hooks {
	return plug.Hooks{
		TurnHooks: plug.TurnHooks{
			After: func(_ context.Context, on agent.Proposal, res agent.Result, _ time.Duration) (agent.Result, bool) {
				q.called(on.Call.Tool, res)
				return res, false
			},
			Stopping: func(context.Context, string) (words, by string) { return q.remind(), fromBundle },
		},
		Ended: func(context.Context, agent.TurnEnded) { q.over() },
	}
}

// called takes a call in: one that has failed is none.
func (q *required) called(tool string, res agent.Result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = q.done || !res.Failed() && slices.Contains(q.calls, tool)
}

// remind returns what the model reads that would end its turn; "" = it may.
func (q *required) remind() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done || q.told == mostReminders {
		return ""
	}
	q.told++
	return "[This is a message of the program, not of the user.] You have to call one of these tools before you end your turn: " + strings.Join(q.names, ", ") + "."
}

// over begins anew: a turn has ended.
func (q *required) over() {
	q.mu.Lock()
	lacks := !q.done && q.told == mostReminders
	q.done, q.told = false, 0
	q.mu.Unlock()
	if lacks {
		q.note("the turn has ended, and none of the tools was called that the agent has to call: " + strings.Join(q.names, ", "))
	}
}

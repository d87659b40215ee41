package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// maxRewrites bounds how often stages may rewrite one call.
const maxRewrites = 8

// errWaits says that a decision would have to wait.
var errWaits = errors.New("the decision has to wait")

// errDefer says that a call is to be put aside.
var errDefer = errors.New("the call is put aside")

// job is one call on its way.
type job struct {
	call    agent.Call // as it will run
	origin  string
	tool    agent.Tool
	spec    agent.Spec
	class   agent.Class
	key     string
	decided *agent.CallDecided
	refused *agent.Result // the answer to a call that will not run
	waits   bool
	shaped  bool                // the hooks have seen it
	known   bool                // its decision is in the log already
	stop    bool                // the decision ends the turn
	aside   *agent.CallDeferred // it is put aside, undecided
	attempt int                 // after a crash
	mark    json.RawMessage
	running bool // its call.started is stored
	begun   bool // it may have changed something already
	done    bool // its call.finished is stored
	result  agent.CallFinished
}

func (t *turn) newJob(call agent.Call, origin string) *job {
	return &job{call: call, origin: origin, key: Key(t.Session, t.Turn, t.step, call.ID)}
}

// Key returns the idempotency key of a call: the same for every attempt at it.
func Key(session, turn string, step int, call string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + turn + "\x00" + strconv.Itoa(step) + "\x00" + call))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}

// patience is how far a decision may go.
type patience int

const (
	quick   patience = iota // it waits for nothing
	brief                   // ... for no person
	patient                 // it waits for whatever it takes
)

// decide finds the tool and puts the call through the gate. Where it would have to wait
// for longer than there is patience for it leaves the job as it was, waiting: the stages
// are asked anew then, because what was allowed meanwhile may hold for it.
func (t *turn) decide(ctx context.Context, tools plug.Tools, j *job, far patience) {
	j.waits = false
	if r := t.find(tools, j); r != nil {
		j.refuse(*r)
		return
	}
	if !t.shaped(ctx, j, far) {
		return
	}
	call := j.call
	answered := false // by a person
	for range maxRewrites {
		input, bad := tools.Check(j.spec, call.Input, answered)
		if bad != nil {
			r := agent.Failure(bad.Code, bad.Message, bad.Suggestion)
			j.refuse(r)
			return
		}
		call.Input = input
		p, err := t.propose(ctx, j, call)
		if err != nil {
			j.refuse(failure(agent.ErrInput, err))
			return
		}
		d, byPerson, err := t.gate(ctx, p, far, answered)
		if errors.Is(err, errWaits) {
			j.waits, j.class = true, p.Class
			return
		}
		if errors.Is(err, errDefer) {
			j.waits, j.class = true, p.Class
			j.aside = &agent.CallDeferred{Turn: t.Turn, Step: t.step, Call: call, By: d.By, Reason: d.Reason}
			return
		}
		if d.Verdict != agent.Deny && len(d.Input) > 0 {
			call.Input, answered = d.Input, answered || byPerson
			continue
		}
		j.settle(t, call, p, d)
		return
	}
	j.refuse(agent.Failure(agent.ErrDenied, "The call was rewritten too often.", ""))
}

// shaped has the hooks see a call before the gate does, and reports whether it is to be
// decided about now. It may take long, so that what is known is stored first.
func (t *turn) shaped(ctx context.Context, j *job, far patience) bool {
	h := t.Hooks.Calling
	switch {
	case h == nil || j.shaped:
		return true
	case far == quick:
		j.waits = true
		return false
	}
	input, err := h(ctx, j.call)
	if err != nil {
		j.refuse(failure(agent.ErrDenied, err))
		return false
	}
	j.call.Input, j.shaped = input, true
	return true
}

// settle records a decision.
func (j *job) settle(t *turn, call agent.Call, p agent.Proposal, d agent.Decision) {
	j.call, j.class = call, p.Class
	j.decided = &agent.CallDecided{Turn: t.Turn, Step: t.step, Proposal: p, Decision: d, Key: j.key}
	if d.Verdict != agent.Allow {
		t.deny(j, d)
	}
}

// tell lets others know of a denial, once it is in the log.
func (t *turn) tell(ctx context.Context, j *job) {
	if h := t.Hooks.Denied; h != nil && j.decided != nil && j.refused != nil {
		h(ctx, j.decided.Proposal, j.decided.Decision)
	}
}

// deny answers a job with the decision, under the name that the model knows.
func (t *turn) deny(j *job, d agent.Decision) {
	j.stop = d.Stop
	what := fmt.Sprintf("Tool %q denied", t.shown(j.call.Tool))
	if d.Reason != "" {
		what += ": " + d.Reason
	}
	next := "Do not try to get around this. Go on without it, or tell the user what you need and why."
	if d.Code == agent.ErrApprovalTimeout {
		next = "Go on without it, or ask again later."
	}
	j.refuse(agent.Failure(cmp.Or(d.Code, agent.ErrDenied), what, next))
}

func (j *job) refuse(r agent.Result) { j.refused = &r }

// find looks the tool up. It returns the answer to a call that cannot be served.
func (t *turn) find(tools plug.Tools, j *job) *agent.Result {
	t.books.Lock()
	defer t.books.Unlock()
	tool, ok := tools.Find(j.call.Tool)
	if !ok {
		r := agent.Failure(agent.ErrToolNotFound, "Unknown tool: "+j.call.Tool, "Use only the tools that are listed.")
		if tools.Refuse != nil {
			r = failure(agent.ErrToolNotFound, tools.Refuse(j.call.Tool))
		}
		return &r
	}
	j.tool, j.spec = tool, tool.Spec()
	j.call.Tool = j.spec.Name
	if j.call.Invalid != "" {
		r := agent.Failure(agent.ErrInput, "The input is not a valid JSON object: "+j.call.Invalid+"\nIt ended with: "+tail(j.call.Raw, 200),
			"Send the call again with complete, valid JSON. Split a long input into several calls.")
		return &r
	}
	if t.repeats[fingerprint(j.call)] >= t.Limits.Repeats {
		t.refusals++
		r := agent.Failure(agent.ErrRepeating, fmt.Sprintf("This very call has failed %d times.", t.Limits.Repeats),
			"Do something else: look at the error, change the input, or tell the user what is in the way.")
		return &r
	}
	return nil
}

// propose asks the tool what the call would touch.
func (t *turn) propose(ctx context.Context, j *job, call agent.Call) (p agent.Proposal, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("planning the call: %v", v)
		}
	}()
	effects, err := j.tool.Plan(ctx, t.toolContext(call), call)
	if err != nil {
		return p, err
	}
	p = Propose(call, j.spec, effects)
	p.Agent, p.Origin = t.Agent, j.origin
	return p, nil
}

// Propose is what the gate is asked about a call of a tool that plans these
// effects.
func Propose(call agent.Call, spec agent.Spec, effects agent.Effects) agent.Proposal {
	effects.Transactional = effects.Transactional || spec.Transactional
	effects.Sensitive = effects.Sensitive || spec.Sensitive
	class := cmp.Or(effects.Class, spec.Class, agent.Unsafe)
	return agent.Proposal{Call: call, Effects: effects, Class: class, Group: spec.Group, Risk: spec.Risk}
}

// gate asks the stages in order, and the person when none of them has decided.
// A person who has answered this call with another input is not asked again.
func (t *turn) gate(ctx context.Context, p agent.Proposal, far patience, answered bool) (d agent.Decision, byPerson bool, err error) {
	for _, s := range t.Gate {
		if far == quick && s.Waits != nil && s.Waits(p) {
			return d, false, errWaits
		}
		n, err := s.Decide(ctx, p, d)
		if err != nil {
			return agent.Decision{Verdict: agent.Deny, Reason: err.Error(), By: s.Name, Trace: d.Trace, Basis: d.Basis}, false, nil
		}
		n.Trace = append(d.Trace, n.Trace...)
		inherit(&n, d)
		if n.Verdict == agent.Deny || len(n.Input) > 0 {
			return n, false, nil
		}
		if n.Verdict == agent.Pass {
			n.Verdict, n.Reason, n.By = d.Verdict, d.Reason, d.By
		}
		d = n
	}
	switch {
	case d.Verdict == agent.Allow:
		return d, false, nil
	case d.Defer && t.Defers && p.Origin == "" && len(t.message.Calls()) == 1:
		return d, false, errDefer
	case answered:
		return agent.Decision{Verdict: agent.Allow, By: "user", Reason: "answered", Trace: d.Trace, Basis: d.Basis}, true, nil
	case far < patient:
		return d, false, errWaits
	}
	d.Verdict = agent.AskUser
	n, byPerson, err := t.person(ctx, p, d)
	switch {
	case err != nil:
		n = agent.Decision{Verdict: agent.Deny, Reason: err.Error(), By: "user"}
	case n.Verdict != agent.Allow:
		n.Verdict = agent.Deny
	}
	n.Trace = d.Trace
	inherit(&n, d)
	return n, byPerson, nil
}

// person asks who may speak for a person, and else the person.
func (t *turn) person(ctx context.Context, p agent.Proposal, d agent.Decision) (n agent.Decision, byPerson bool, err error) {
	if ask := t.Hooks.Asking; ask != nil {
		if n, decided := ask(ctx, p, d); decided {
			return n, p.Effects.User, nil
		}
	}
	n, err = t.Person(ctx, p, d)
	return n, true, err
}

// inherit keeps what an earlier stage has said about its decision.
func inherit(n *agent.Decision, d agent.Decision) {
	if n.Basis == nil {
		n.Basis = d.Basis
	}
	n.Defer = n.Defer || d.Defer
	if n.Rule == "" {
		n.Rule = d.Rule
	}
	if n.Flip == "" {
		n.Flip = d.Flip
	}
}

func (t *turn) toolContext(c agent.Call) agent.ToolContext {
	return agent.ToolContext{
		AgentName: t.Agent, InstanceKey: t.Session, TurnID: t.Turn, ToolCallID: c.ID,
		Message: t.message, Workdir: t.Workdir, Logger: t.Logger,
	}
}

// failure turns an error into what the model reads, and keeps its code.
func failure(code agent.ErrorCode, err error) agent.Result {
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		r := agent.Failure(te.Code, te.Message, te.Suggestion)
		r.Error = te
		return r
	}
	return agent.Failure(code, err.Error(), "")
}

func fingerprint(c agent.Call) string { return c.Tool + "\x00" + string(c.Input) }

// tail returns the last n bytes of s, from a rune on.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}

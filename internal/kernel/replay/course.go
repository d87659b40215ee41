package replay

import (
	"slices"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/state/transcript"
)

// A course follows what the loop did, event by event, and says where it did what it
// would not do: an answer to no request, a call that was started without leave, or
// beside one that must run alone, a result of a call that never ran. Its zero value is
// the beginning of a log.
type course struct {
	session string // whose calls these are: that of the log, or the one it was forked from
	workdir string
	foreign bool // what follows was held elsewhere, and not by our loop

	request *agent.ModelRequested // of the conversation; not answered yet
	retry   *agent.ModelFailed    // the attempt that the next request repeats
	running map[string]agent.CallStarted
	leave   map[string]agent.CallDecided // calls that were allowed or denied, by ID
	asked   map[string][]string          // what had been granted when a call was asked about, by its ID
	side    bool                         // side questions were answered in this turn
}

// follow compares an event with what those before it lead to. state has them.
func (c *course) follow(e agent.Event, state *transcript.State) *divergence {
	if _, opened := e.Body.(agent.SessionOpened); c.foreign && !opened {
		return nil
	}
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		c.session, c.workdir, c.foreign = b.Session, b.Workdir, b.Origin != nil
		c.request, c.retry, c.running = nil, nil, nil // whoever ran has died, or gone
		c.asked = nil                                 // what was not decided by then is decided anew
	case agent.TurnStarted:
		if state.Turn.Open && state.Turn.ID != b.Turn {
			return diverged("the end of turn "+state.Turn.ID, "turn "+b.Turn, "turn %s starts while another one runs", b.Turn)
		}
		c.request, c.retry, c.side = nil, nil, false
	case agent.ModelRequested:
		return c.requested(b)
	case agent.ModelFailed:
		return c.failed(b)
	case agent.ModelAnswered:
		return c.answered(b)
	case agent.CallDecided:
		return c.decided(b)
	case agent.CallStarted:
		return c.started(b, state)
	case agent.CallFinished:
		return c.finished(b)
	case agent.TurnEnded:
		return c.ended(b, state)
	}
	return nil
}

func (c *course) requested(b agent.ModelRequested) *divergence {
	if b.Purpose != "" {
		return nil // side questions are asked beside the conversation, and beside each other
	}
	if r := c.retry; r != nil && r.Turn == b.Turn && r.Step == b.Step && b.Attempt != r.Attempt+1 {
		return diverged(b.Attempt, r.Attempt+1, "the request is attempt %d at step %d, behind attempt %d", b.Attempt, b.Step, r.Attempt)
	}
	if c.retry == nil && b.Attempt != 1 {
		return diverged(b.Attempt, 1, "the request is attempt %d at step %d, and no attempt has failed", b.Attempt, b.Step)
	}
	c.request, c.retry = &b, nil
	return nil
}

func (c *course) failed(b agent.ModelFailed) *divergence {
	if b.Purpose != "" {
		return nil
	}
	r := c.request
	if r == nil || r.Turn != b.Turn || r.Step != b.Step || r.Attempt != b.Attempt {
		return diverged(stepOf(b.Turn, b.Step), c.open(), "a request failed that was not made")
	}
	c.request = nil
	if b.Retry {
		c.retry = &b
	}
	return nil
}

func (c *course) answered(b agent.ModelAnswered) *divergence {
	if b.Purpose != "" {
		c.side = true
		return nil
	}
	if r := c.request; r == nil || r.Turn != b.Turn || r.Step != b.Step {
		return diverged(stepOf(b.Turn, b.Step), c.open(), "an answer came to no request")
	}
	c.request = nil
	return nil
}

// open names the request that waits for an answer.
func (c *course) open() string {
	if c.request == nil {
		return "no request"
	}
	return stepOf(c.request.Turn, c.request.Step)
}

func (c *course) decided(b agent.CallDecided) *divergence {
	id := b.Proposal.Call.ID
	if key := loop.Key(c.session, b.Turn, b.Step, id); key != b.Key {
		return diverged(b.Key, key, "call %s has another key", id)
	}
	if v := b.Decision.Verdict; v != agent.Allow && v != agent.Deny {
		return diverged(v, "allow or deny", "call %s was left undecided", id)
	}
	put(&c.leave, id, b)
	return nil
}

func (c *course) started(b agent.CallStarted, state *transcript.State) *divergence {
	d, ok := c.leave[b.ID]
	if !ok || d.Decision.Verdict != agent.Allow {
		return diverged("the start of call "+b.ID, joined("verdict", string(d.Decision.Verdict)), "call %s was started without leave", b.ID)
	}
	if key := loop.Key(c.session, d.Turn, d.Step, b.ID); key != b.Key {
		return diverged(b.Key, key, "call %s was started with another key", b.ID)
	}
	if b.Class != d.Proposal.Class && b.Class != agent.Unsafe {
		return diverged(b.Class, d.Proposal.Class, "call %s was started as another class than it was decided on", b.ID)
	}
	if d.Proposal.Origin == "" && c.of(state, b.ID) {
		for id, other := range c.running {
			if c.of(state, id) && id != b.ID && (other.Class != agent.Read || b.Class != agent.Read) {
				return diverged("the start of call "+b.ID, "call "+id+" runs", "call %s was started beside call %s, and one of them must run alone", b.ID, id)
			}
		}
	}
	put(&c.running, b.ID, b)
	return nil
}

// of reports whether a call is one of the open step.
func (*course) of(state *transcript.State, id string) bool {
	return state.Open != nil && slices.ContainsFunc(state.Open.Calls, func(s *transcript.CallState) bool { return s.Call.ID == id })
}

func (c *course) finished(b agent.CallFinished) *divergence {
	id := b.Result.ID
	d, decided := c.leave[id]
	if decided && d.Decision.Verdict != agent.Allow && !b.Result.Failed() {
		return diverged(b.Result.Status, agent.StatusError, "call %s was denied and has a result all the same", id)
	}
	if _, ran := c.running[id]; !ran && !b.Result.Failed() && !(decided && d.Proposal.Class == agent.Checkable) {
		return diverged(b.Result.Status, agent.StatusError, "call %s has a result and was never started", id)
	}
	delete(c.running, id)
	return nil
}

// ended compares the figures of a turn with what its events add up to.
func (c *course) ended(b agent.TurnEnded, state *transcript.State) *divergence {
	t := state.Turn
	c.request, c.retry = nil, nil
	for id, d := range c.leave {
		if d.Proposal.Origin == "" { // others may outlive the turn
			delete(c.leave, id)
			delete(c.running, id)
		}
	}
	clear(c.asked)
	if t.ID != b.Turn {
		return nil // it ended before it could begin
	}
	switch {
	case b.Steps < t.Step:
		return diverged(b.Steps, t.Step, "the turn has ended with %d steps, and has had %d", b.Steps, t.Step)
	case c.side: // one may have been answered while the end was written
	case b.Usage != t.Usage:
		return diverged(encoded(b.Usage), encoded(t.Usage), "the turn has used what its answers do not add up to")
	case !t.Unknown && (b.Cost == nil || *b.Cost != t.Cost):
		return diverged(encoded(b.Cost), encoded(t.Cost), "the turn has cost what its answers do not add up to")
	}
	return nil
}

// granted notes what had been granted when a call was asked about: the answer to
// the question may grant more.
func (c *course) granted(e agent.Event, state *transcript.State) {
	if b, ok := e.Body.(agent.ApprovalAsked); ok && b.Child == "" {
		put(&c.asked, b.Proposal.Call.ID, state.Grants)
	}
	if b, ok := e.Body.(agent.RulesGranted); ok && b.Call != "" && b.Remember == agent.RememberSession {
		put(&c.asked, b.Call, state.Grants[:len(state.Grants)-len(b.Rules)])
	}
}

// grantsFor returns what had been granted when a call was decided on.
func (c *course) grantsFor(call string, state *transcript.State) []string {
	if granted, ok := c.asked[call]; ok {
		delete(c.asked, call)
		return granted
	}
	return state.Grants
}

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

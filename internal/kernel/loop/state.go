package loop

import (
	"fmt"
	"slices"
	"strings"

	"dure/agent"
)

// transitions is the table of what may follow what, failures included.
var transitions = map[agent.State][]agent.State{
	agent.StateIdle:      {agent.StateStreaming},
	agent.StateStreaming: {agent.StateToolUse, agent.StateDone, agent.StateIdle},
	agent.StateToolUse:   {agent.StateExecuting, agent.StateDone},
	agent.StateExecuting: {agent.StateStreaming, agent.StateDone},
	agent.StateDone:      {agent.StateIdle},
}

// Machine is the state machine of a turn. The zero value is idle.
type Machine struct {
	state   agent.State
	Changed func(agent.StateChanged) // told of every transition; may be nil
}

// State returns the current state.
func (m *Machine) State() agent.State {
	if m.state == "" {
		return agent.StateIdle
	}
	return m.state
}

// To changes the state. A transition that the table does not have is an error
// and changes nothing.
func (m *Machine) To(to agent.State, reason string) error {
	from := m.State()
	if !slices.Contains(transitions[from], to) {
		var allowed []string
		for _, s := range transitions[from] {
			allowed = append(allowed, string(s))
		}
		return fmt.Errorf("no transition from %s to %s: allowed are %s", from, to, strings.Join(allowed, ", "))
	}
	m.state = to
	if m.Changed != nil {
		m.Changed(agent.StateChanged{From: from, To: to, Reason: reason})
	}
	return nil
}

// must is To where the loop's own order makes the transition legal: a failure
// is a mistake in the loop.
func (m *Machine) must(to agent.State, reason string) {
	if err := m.To(to, reason); err != nil {
		panic("loop: " + err.Error())
	}
}

// streaming enters the state in which the model is asked. From an answer that
// called nothing the way leads over idle.
func (m *Machine) streaming() {
	if m.State() == agent.StateStreaming {
		m.must(agent.StateIdle, "continue")
	}
	m.must(agent.StateStreaming, "")
}

// End drives the machine through done back to idle.
func (m *Machine) End(reason string) {
	switch m.State() {
	case agent.StateIdle:
		if reason == "completed" {
			return
		}
		m.must(agent.StateStreaming, "")
	case agent.StateDone:
		m.must(agent.StateIdle, "")
		return
	}
	m.must(agent.StateDone, reason)
	m.must(agent.StateIdle, "")
}

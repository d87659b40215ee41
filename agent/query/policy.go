package query

import (
	"encoding/json"

	"dure/agent"
)

// ExplainCall decides on a call that nobody makes, as a session in the working folder would,
// and returns an [ExplainedCall].
type ExplainCall struct {
	Tool  string          `json:"tool"` // in any spelling
	Input json.RawMessage `json:"input"`
}

// SimulatePolicy decides recorded calls again, by the policy in a file on top of none, or by
// that of the settings with "", and returns a [Simulation].
type SimulatePolicy struct {
	File string `json:"file,omitempty"`
	ListDecisions
}

// Query returns the name of the query on the wire.
func (ExplainCall) Query() string    { return "policy.explain" }
func (SimulatePolicy) Query() string { return "policy.simulate" }

// ExplainedCall is a call with the decision on it.
type ExplainedCall struct {
	Proposal agent.Proposal `json:"proposal"`
	Explanation
}

// Explanation is a decision in parts.
type Explanation struct {
	Decision agent.Decision  `json:"decision"`
	Pieces   []DecisionPiece `json:"pieces,omitempty"` // what the allow rules, the harmless set and the mode say
	Offers   []agent.Choice  `json:"offers,omitempty"` // what would allow it from now on
}

// Simulation compares recorded decisions with those of another policy.
type Simulation struct {
	Decisions int               `json:"decisions"` // that were recorded
	Skipped   int               `json:"skipped"`   // that cannot be decided again
	Flips     []FlippedDecision `json:"flips"`
}

// FlippedDecision is a recorded decision that another policy would not make.
type FlippedDecision struct {
	agent.DecisionRecord
	Was agent.Verdict  `json:"was"` // what the policy of then said, before a person did
	Now agent.Decision `json:"now"`
}

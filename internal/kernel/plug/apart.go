package plug

import (
	"context"

	"dure/agent"
)

// An Apart is a child that is to run in a process of its own, and what it may ask of its
// parent there.
type Apart struct {
	Parent   string
	Open     agent.Open // with the ID in New, and in Session when it goes on
	Child    agent.Child
	Approver bool

	// Question asks the person of the parent.
	Question func(ctx context.Context, id, child string, p agent.Proposal, d agent.Decision) (agent.Decision, error) `json:"-"`

	// Reserve is the budget of the parent.
	Reserve Bank `json:"-"`
}

// A Bank keeps a budget in another process: it puts at least least and at most most units
// aside, with what a request takes, and says how many; settle gives back and books. The error
// is a [Refused] if the budget does not allow it.
type Bank func(request, unit Amount, least, most int) (granted int, settle func(Amount), err error)

// Refused is why a budget does not allow an amount.
type Refused struct {
	Message  string
	Unpriced bool // the price of the model is not known
}

func (r *Refused) Error() string { return r.Message }

// Amount is what a request costs, or may cost.
type Amount struct {
	Tokens int64       `json:"tokens,omitempty"`
	Money  agent.Money `json:"money,omitempty"`

	// Unpriced says that there is no price for the tokens.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Plus is both amounts together.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Tokens: a.Tokens + b.Tokens, Money: a.Money + b.Money}
}

// Minus is what is left of an amount without another.
func (a Amount) Minus(b Amount) Amount {
	return Amount{Tokens: a.Tokens - b.Tokens, Money: a.Money - b.Money}
}

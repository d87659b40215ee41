// Package budget reserves tokens and money before they are spent, over a tree of
// sessions: what a child spends counts for everybody above it. It knows neither
// models nor sessions, keeps nothing on disk and starts no goroutines.
package budget

import (
	"errors"
	"fmt"
	"sync"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// Errors that callers branch on. They arrive wrapped in an [Error].
var (
	ErrSpent    = errors.New("the budget is spent")
	ErrUnpriced = errors.New("the price of the model is not known, and the budget is in money")
)

// Error says why an amount was not put aside.
type Error struct {
	Why error // ErrSpent or ErrUnpriced
	msg string
}

func (e *Error) Error() string { return e.msg }

// Unwrap returns Why.
func (e *Error) Unwrap() error { return e.Why }

// Account is a budget and what was taken from it. It is safe for concurrent use,
// and so is the whole tree. A nil account has no limit and counts nothing.
type Account struct {
	up    *Account
	limit plug.Amount // zero fields = no limit
	bank  plug.Bank   // of a top whose budget is kept elsewhere; nil = it is kept here

	mu    *sync.Mutex // of the tree
	spent plug.Amount
	held  plug.Amount
}

// New returns the account at the top of a tree.
func New(limit plug.Amount) *Account {
	return &Account{limit: limit, mu: new(sync.Mutex)}
}

// Child returns an account whose expenses are also those of a. Its own limit may
// be narrower; that of a holds in any case.
func (a *Account) Child(limit plug.Amount) *Account {
	if a == nil {
		return New(limit)
	}
	return &Account{up: a, limit: limit, mu: a.mu}
}

// Reserve puts an amount aside, in a and all above it, or in none of them. The
// error wraps ErrSpent or ErrUnpriced.
func (a *Account) Reserve(amount plug.Amount) (*Hold, error) {
	if a == nil {
		return nil, nil
	}
	_, settle, err := a.afar(amount, plug.Amount{}, 0, 0)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	h, err := a.hold(amount)
	a.mu.Unlock()
	return settled(h, settle, err)
}

// ReserveUpTo puts aside what a request costs, with as many tokens of output at unit
// each as there is left for: at most most, and an error when there are less than
// least. A nil account grants all.
func (a *Account) ReserveUpTo(request, unit plug.Amount, least, most int) (granted int, h *Hold, err error) {
	if a == nil {
		return most, nil, nil
	}
	most, settle, err := a.afar(request, unit, least, most)
	if err != nil {
		return 0, nil, err
	}
	granted, h, err = a.upTo(request, unit, least, most)
	h, err = settled(h, settle, err)
	return granted, h, err
}

// upTo is ReserveUpTo within this process.
func (a *Account) upTo(request, unit plug.Amount, least, most int) (granted int, h *Hold, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	granted = most
	for up := a; up != nil; up = up.up {
		granted = up.affords(request, unit, granted)
	}
	granted = max(granted, min(least, most))
	h, err = a.hold(plug.Amount{
		Tokens: request.Tokens + int64(granted)*unit.Tokens, Unpriced: request.Unpriced,
		Money: request.Money + agent.Money(granted)*unit.Money,
	})
	return granted, h, err
}

// affords returns how many units there is left for beside a request, up to most.
func (a *Account) affords(request, unit plug.Amount, most int) int {
	used := a.spent.Plus(a.held).Plus(request)
	if a.limit.Tokens > 0 && unit.Tokens > 0 {
		most = int(min(int64(most), max(0, a.limit.Tokens-used.Tokens)/unit.Tokens))
	}
	if a.limit.Money > 0 && unit.Money > 0 {
		most = int(min(agent.Money(most), max(0, a.limit.Money-used.Money)/unit.Money))
	}
	return most
}

// hold puts an amount aside. The tree is locked.
func (a *Account) hold(amount plug.Amount) (*Hold, error) {
	for up := a; up != nil; up = up.up {
		if err := up.covers(amount); err != nil {
			return nil, err
		}
	}
	for up := a; up != nil; up = up.up {
		up.held = up.held.Plus(amount)
	}
	return &Hold{account: a, amount: amount}, nil
}

// covers reports whether what is left is enough.
func (a *Account) covers(want plug.Amount) error {
	sum := a.spent.Plus(a.held).Plus(want)
	switch {
	case a.limit.Money > 0 && want.Unpriced:
		return &Error{ErrUnpriced, ErrUnpriced.Error()}
	case a.limit.Money > 0 && sum.Money > a.limit.Money:
		return &Error{ErrSpent, fmt.Sprintf("the next request may cost %s, and %s of %s are left", want.Money, max(0, a.limit.Money-a.spent.Money-a.held.Money), a.limit.Money)}
	case a.limit.Tokens > 0 && sum.Tokens > a.limit.Tokens:
		return &Error{ErrSpent, fmt.Sprintf("the next request may take %d tokens, and %d of %d are left", want.Tokens, max(0, a.limit.Tokens-a.spent.Tokens-a.held.Tokens), a.limit.Tokens)}
	}
	return nil
}

// Spent returns what was spent, and what is put aside now.
func (a *Account) Spent() (spent, held plug.Amount) {
	if a == nil {
		return plug.Amount{}, plug.Amount{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent, a.held
}

// Limit returns the limit of the account itself.
func (a *Account) Limit() plug.Amount {
	if a == nil {
		return plug.Amount{}
	}
	return a.limit
}

// Hold is an amount that is put aside. A nil hold is none.
type Hold struct {
	account *Account
	amount  plug.Amount
	done    bool
	far     func(plug.Amount) // settles it in the bank; nil = there is none
}

// Settle gives back what was put aside and books what was really spent, which may
// be more. Only the first call counts.
func (h *Hold) Settle(spent plug.Amount) {
	if h == nil {
		return
	}
	if h.settle(spent) && h.far != nil {
		h.far(spent)
	}
}

func (h *Hold) settle(spent plug.Amount) bool {
	h.account.mu.Lock()
	defer h.account.mu.Unlock()
	if h.done {
		return false
	}
	h.done = true
	for up := h.account; up != nil; up = up.up {
		up.held = up.held.Minus(h.amount)
		up.spent = up.spent.Plus(spent)
	}
	return true
}

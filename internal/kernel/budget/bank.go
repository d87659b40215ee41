package budget

import (
	"errors"
	"sync"

	"dure/internal/kernel/plug"
)

// Elsewhere returns an account at the top of a tree whose budget a bank keeps. What is
// reserved is reserved there first.
func Elsewhere(b plug.Bank) *Account { return &Account{mu: new(sync.Mutex), bank: b} }

// Bank returns what keeps the budget of an account for another process.
func (a *Account) Bank() plug.Bank {
	return func(request, unit plug.Amount, least, most int) (int, func(plug.Amount), error) {
		granted, h, err := a.ReserveUpTo(request, unit, least, most)
		if err != nil {
			err = &plug.Refused{Message: err.Error(), Unpriced: errors.Is(err, ErrUnpriced)}
		}
		return granted, h.Settle, err
	}
}

// afar puts an amount aside in the bank of the tree, if it has one.
func (a *Account) afar(request, unit plug.Amount, least, most int) (granted int, settle func(plug.Amount), err error) {
	top := a
	for top.up != nil {
		top = top.up
	}
	if top.bank == nil {
		return most, nil, nil
	}
	granted, settle, err = top.bank(request, unit, least, most)
	if r, ok := errors.AsType[*plug.Refused](err); ok {
		err = &Error{ErrSpent, r.Message}
		if r.Unpriced {
			err = &Error{ErrUnpriced, r.Message}
		}
	}
	return granted, settle, err
}

// settled is a hold that also stands in a bank; none is given back there.
func settled(h *Hold, settle func(plug.Amount), err error) (*Hold, error) {
	switch {
	case settle == nil:
	case err != nil:
		settle(plug.Amount{})
	default:
		h.far = settle
	}
	return h, err
}

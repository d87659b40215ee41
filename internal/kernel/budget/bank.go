package budget

import "sync"

// A Bank keeps a budget in another process: it puts aside what [Account.ReserveUpTo] is
// asked for, and says how much was granted; settle gives back and books.
type Bank func(request, unit Amount, least, most int) (granted int, settle func(Amount), err error)

// Elsewhere returns an account at the top of a tree whose budget a bank keeps. What is
// reserved is reserved there first.
func Elsewhere(b Bank) *Account { return &Account{mu: new(sync.Mutex), bank: b} }

// Refused is what a bank has refused: the [Error] that it was there.
func Refused(message string, unpriced bool) error {
	if unpriced {
		return &Error{ErrUnpriced, message}
	}
	return &Error{ErrSpent, message}
}

// afar puts an amount aside in the bank of the tree, if it has one.
func (a *Account) afar(request, unit Amount, least, most int) (granted int, settle func(Amount), err error) {
	top := a
	for top.up != nil {
		top = top.up
	}
	if top.bank == nil {
		return most, nil, nil
	}
	return top.bank(request, unit, least, most)
}

// settled is a hold that also stands in a bank; none is given back there.
func settled(h *Hold, settle func(Amount), err error) (*Hold, error) {
	switch {
	case settle == nil:
	case err != nil:
		settle(Amount{})
	default:
		h.far = settle
	}
	return h, err
}

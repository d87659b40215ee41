package budget_test

import (
	"errors"
	"sync"
	"testing"

	"dure/agent"
	"dure/internal/kernel/budget"
	"dure/internal/kernel/plug"
)

func tokens(n int64) plug.Amount { return plug.Amount{Tokens: n} }

func TestReserve(t *testing.T) {
	top := budget.New(plug.Amount{Tokens: 100, Money: 50})
	child := top.Child(tokens(80))
	h, err := child.Reserve(plug.Amount{Tokens: 60, Money: 40})
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		account *budget.Account
		want    plug.Amount
		err     error
	}{
		"the child's tokens":  {child, tokens(21), budget.ErrSpent},
		"the tokens of all":   {top, tokens(41), budget.ErrSpent},
		"the money of all":    {child, plug.Amount{Tokens: 1, Money: 11}, budget.ErrSpent},
		"without a price":     {child, plug.Amount{Tokens: 1, Unpriced: true}, budget.ErrUnpriced},
		"of a sibling":        {top.Child(plug.Amount{}), tokens(41), budget.ErrSpent},
		"what is left of all": {top, plug.Amount{Tokens: 40, Money: 10}, nil},
	} {
		h, err := tt.account.Reserve(tt.want)
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v", what, err)
		}
		h.Settle(plug.Amount{})
	}
	h.Settle(plug.Amount{Tokens: 90, Money: 5}) // more than was put aside
	h.Settle(tokens(1000))
	if spent, held := top.Spent(); spent != (plug.Amount{Tokens: 90, Money: 5}) || held != (plug.Amount{}) {
		t.Errorf("spent %+v, held %+v", spent, held)
	}
	if _, err := child.Reserve(tokens(1)); !errors.Is(err, budget.ErrSpent) {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := top.Reserve(tokens(10)); err != nil {
		t.Error(err)
	}
}

func TestNoAccount(t *testing.T) {
	var none *budget.Account
	h, err := none.Reserve(plug.Amount{Tokens: 1 << 60, Money: agent.Money(1) << 60, Unpriced: true})
	h.Settle(tokens(1))
	if err != nil {
		t.Error(err)
	}
	if _, err := none.Child(tokens(5)).Reserve(tokens(6)); !errors.Is(err, budget.ErrSpent) {
		t.Error("the child's limit does not hold")
	}
	if spent, held := none.Spent(); spent != held || none.Limit() != (plug.Amount{}) {
		t.Error("it has something")
	}
	if _, err := budget.New(plug.Amount{}).Reserve(plug.Amount{Tokens: 5, Unpriced: true}); err != nil {
		t.Error(err)
	}
}

// Whoever reserves at the same time, no more is given than there is.
func TestReserveAtOnce(t *testing.T) {
	top := budget.New(tokens(1000))
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := 0
	for range 20 {
		wg.Go(func() {
			child := top.Child(tokens(200))
			for range 50 {
				h, err := child.Reserve(tokens(7))
				if err != nil {
					continue
				}
				h.Settle(tokens(5))
				mu.Lock()
				given++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	spent, held := top.Spent()
	if spent.Tokens != int64(given)*5 || spent.Tokens > 1000 || spent.Tokens < 950 || held != (plug.Amount{}) {
		t.Errorf("given %d times, spent %+v, held %+v", given, spent, held)
	}
}

func TestReserveUpTo(t *testing.T) {
	unit := plug.Amount{Tokens: 1, Money: 3}
	for what, tt := range map[string]struct {
		limit       plug.Amount
		least, most int
		want        int
		err         error
	}{
		"enough":               {plug.Amount{Tokens: 1000, Money: 1000}, 10, 50, 50, nil},
		"bounded by tokens":    {plug.Amount{Tokens: 40}, 10, 50, 30, nil},
		"bounded by money":     {plug.Amount{Money: 70}, 10, 50, 20, nil},
		"too little":           {plug.Amount{Money: 30}, 10, 50, 10, budget.ErrSpent},
		"little is asked":      {plug.Amount{Money: 30}, 10, 5, 5, nil},
		"without a limit":      {plug.Amount{}, 10, 50, 50, nil},
		"bounded by its child": {plug.Amount{Money: 70, Tokens: 22}, 10, 50, 12, nil},
	} {
		child := budget.New(tt.limit).Child(plug.Amount{Tokens: 500})
		got, h, err := child.ReserveUpTo(plug.Amount{Tokens: 10, Money: 10}, unit, tt.least, tt.most)
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %d, %v", what, got, err)
		}
		if _, held := child.Spent(); err == nil && held != (plug.Amount{Tokens: 10 + int64(tt.want), Money: 10 + 3*agent.Money(tt.want)}) {
			t.Errorf("%s: held %+v", what, held)
		}
		h.Settle(plug.Amount{})
	}
	var none *budget.Account
	if got, _, err := none.ReserveUpTo(plug.Amount{Unpriced: true}, unit, 1, 9); got != 9 || err != nil {
		t.Errorf("no account grants %d, %v", got, err)
	}
}

package budget_test

import (
	"errors"
	"testing"

	"dure/internal/kernel/budget"
	"dure/internal/kernel/plug"
)

// What is reserved of a budget that is kept elsewhere is put aside there, and booked there
// once; what is refused there, or here, is put aside nowhere.
func TestElsewhere(t *testing.T) {
	kept := budget.New(tokens(100))
	far := budget.Elsewhere(kept.Bank()).Child(tokens(70))
	granted, h, err := far.ReserveUpTo(tokens(10), tokens(1), 1, 80)
	if err != nil || granted != 60 {
		t.Fatalf("granted %d, %v", granted, err)
	}
	if _, held := kept.Spent(); held.Tokens != 90 {
		t.Errorf("there are held %d", held.Tokens)
	}
	h.Settle(tokens(30))
	h.Settle(tokens(30))
	if spent, held := kept.Spent(); spent.Tokens != 30 || held.Tokens != 0 {
		t.Errorf("there were spent %d, held %d", spent.Tokens, held.Tokens)
	}
	other, err := kept.Reserve(tokens(60))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := far.Reserve(tokens(20)); !errors.Is(err, budget.ErrSpent) {
		t.Errorf("more than is left there: %v", err)
	}
	other.Settle(plug.Amount{})
	if _, err := far.Reserve(tokens(41)); !errors.Is(err, budget.ErrSpent) {
		t.Errorf("more than is left here: %v", err)
	}
	if spent, held := kept.Spent(); spent.Tokens != 30 || held.Tokens != 0 {
		t.Errorf("behind a refusal there were spent %d, held %d", spent.Tokens, held.Tokens)
	}
}

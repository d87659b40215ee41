package shell

import (
	"slices"
	"testing"
)

// What makes the environment of a command of that of the program: what is new or another
// one is told, what was kept back is emptied.
func TestDifferentEnvironment(t *testing.T) {
	t.Parallel()
	have := []string{"PATH=/bin", "HOME=/home/me", "SOME_API_KEY=secret", "PAGER=less", "odd"}
	want := []string{"PATH=/bin", "HOME=/home/me", "PAGER=less", "PAGER=cat", "DURE_IDEMPOTENCY_KEY=k", "EMPTY="}
	got := different(have, want)
	if !slices.Equal(got, []string{"DURE_IDEMPOTENCY_KEY=k", "EMPTY=", "PAGER=cat", "SOME_API_KEY="}) {
		t.Errorf("%q", got)
	}
}

package apart

import "testing"

// A session is left as it is when the parent is gone, whichever of the two comes first.
func TestLeftAsItIs(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		var u Parent
		parked := 0
		if first {
			u.left()
		}
		u.leaves(func() { parked++ })
		if !first {
			if parked != 0 {
				t.Error("it is left before the parent is gone")
			}
			u.left()
		}
		if parked != 1 {
			t.Errorf("gone first: %v; left %d times", first, parked)
		}
	}
}

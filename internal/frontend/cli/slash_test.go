package cli

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	slash "dure/internal/extend/commands"
)

// Line mode carries out every command of the table, and no others.
func TestSlashRuns(t *testing.T) {
	var want []string
	for _, b := range slash.BuiltIns() {
		if !b.Prompt {
			want = append(want, b.Name)
		}
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(slashRuns()))); d != "" {
		t.Error(d)
	}
}

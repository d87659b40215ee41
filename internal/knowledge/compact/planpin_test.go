package compact

import (
	"fmt"
	"strings"
	"testing"

	"dure/internal/kernel/plug"
)

// A plan that was agreed to is carried on word for word, however long it is, and is told
// apart from nothing else.
func TestPlanIsPinned(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "%d. step with some words\n", i+1)
	}
	for _, plan := range []string{"1. Read\n2. Write", text.String()} {
		var got strings.Builder
		for _, f := range facts(plug.Compaction{Plan: plan, PlanSeq: 7}, []string{"other"}, true) {
			if f.Kind != Plan {
				continue
			}
			if f.Seq != 7 || !Intact(f) {
				t.Errorf("%+v", f)
			}
			got.WriteString(f.Text + "\n")
		}
		if strings.TrimSpace(got.String()) != strings.TrimSpace(plan) {
			t.Errorf("of %d bytes, %d are pinned", len(plan), got.Len())
		}
	}
	if n := len(facts(plug.Compaction{}, nil, true)); n != 0 {
		t.Errorf("%d facts of nothing", n)
	}
}

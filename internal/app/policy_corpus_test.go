//go:build linux

package app

import (
	"testing"

	"dure/agent"
	"dure/internal/app/eval"
)

// The cases of testdata/policy are decided as they say. On other systems names have
// no case, or links need a right, so that this is about Linux.
func TestPolicyDecides(t *testing.T) {
	t.Parallel()
	tree := newPolicyTree(t)
	evaluator := &eval.Evaluator{Dir: tree.workspace, Home: tree.home}
	for _, f := range policyCorpora {
		unsafe, broken, needless := 0, 0, 0
		for _, c := range readPolicyCases(t, f.name, tree.place) {
			got := evaluator.Decide(t.Context(), c.Case)
			if got.Verdict == c.Expect {
				continue
			}
			switch {
			case c.Expect == agent.Deny:
				broken++
			case got.Verdict == agent.Allow:
				unsafe++
			default:
				needless++
			}
			t.Errorf("%s: %s by %s (%s), want %s: %s\n%s\n%s %+v", c.name(), got.Verdict, got.By, got.Reason, c.Expect, c.Why, c.Input, c.Mode, c.Rules)
		}
		if unsafe+broken+needless > 0 {
			t.Errorf("%s.jsonl: %d unsafe allows, %d broken denies, %d needless questions or denials", f.name, unsafe, broken, needless)
		}
	}
}

package cli

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"dure/agent"
)

// The page says which exit code each problem and each end of a turn has; a budget that is spent ends a turn, as
// its other limits do.
func TestExitCodesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (\\d+) \\|").FindAllSubmatch(page, -1)
	if len(rows) < 30 {
		t.Fatalf("%d problems", len(rows))
	}
	for _, row := range rows {
		code := agent.ProblemCode(row[1])
		got := ExitCode(&agent.Problem{Code: code})
		switch reason := agent.EndReason(code); {
		case code == agent.ProblemBudget:
			got = turnCode(agent.TurnEnded{Reason: agent.EndLimit, Problem: code})
		case slices.Contains([]agent.EndReason{agent.EndDone, agent.EndInterrupted, agent.EndLimit, agent.EndStopped}, reason):
			got = turnCode(agent.TurnEnded{Reason: reason})
		}
		if want, _ := strconv.Atoi(string(row[2])); got != want {
			t.Errorf("%s ends with %d, and the page says %d", code, got, want)
		}
	}
}

package cli

import (
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/frontend/text"
)

// What fills the window is shown in one line for each part, however few columns.
func TestContextInFewColumns(t *testing.T) {
	r := agent.ContextReport{Used: 5000, Window: 200_000, Ratio: .025, Parts: []agent.ContextPart{{Name: "tools", Tokens: 4300}, {Name: "free", Tokens: 151_000}}}
	for _, columns := range []int{20, 38, 50, 78} {
		for _, lang := range []string{"en", "ko"} {
			for _, l := range contextLines(text.For(lang), r, columns)[1:] {
				if n := text.Width(l); n > max(columns, 36) {
					t.Errorf("%d columns: %q has %d", columns, l, n)
				}
			}
		}
	}
	wide := contextLines(text.For("en"), r, 78)
	if n := strings.Count(wide[2], "█"); n != 16 {
		t.Errorf("%q has %d blocks, not 16", wide[2], n)
	}
}

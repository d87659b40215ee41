package cli

import (
	"strings"

	"dure/agent"
	"dure/internal/frontend/text"
)

// toolsLine says which tools the model has from now on, and which no more; "" when there is
// nothing to say beside what is said anyway: they stand in another order, or plan mode, which
// brings some and takes them away, has begun or ended.
func toolsLine(t text.Catalog, b agent.ToolsChanged) string {
	var all []string
	for _, part := range []struct {
		sign  string
		names []string
	}{{"+", b.Added}, {"~", b.Changed}, {"-", b.Removed}} {
		for _, name := range part.names {
			if !strings.HasPrefix(name, "plan__") {
				all = append(all, part.sign+toolName(name))
			}
		}
	}
	if all == nil {
		return ""
	}
	return t.Say(text.ToolsNow, "what", text.OneLine(bounded(strings.Join(all, " "))))
}

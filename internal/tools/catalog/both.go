package catalog

import (
	"strings"

	"dure/agent"
)

// Both is what two lists of tools have in common; nil = all.
func Both(a, b func(agent.Spec) bool) func(agent.Spec) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(s agent.Spec) bool { return a(s) && b(s) }
}

// Renamed returns what writes the name of a tool as other programs know it, and says whether
// there is such a tool.
func Renamed() func(name string) (string, bool) {
	cat := New(Config{})
	return func(name string) (string, bool) {
		if strings.HasPrefix(name, "mcp__") {
			return name, true
		}
		canonical, ok := cat.Canonical(name)
		return Claude.Name(canonical), ok
	}
}

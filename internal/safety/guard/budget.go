package guard

import "dure/agent"

// The budgets, in characters. Everything that is inline has one; what does not fit
// is stored, in blobs that live and go with their session.
const (
	defaultBudget = 6_000
	maxBudget     = 50_000  // whatever a tool or the user asks for
	maxDelegate   = 100_000 // of what another agent answers
)

// delegates is the group of tools that give work to other agents.
const delegates = "agents"

// budgets are those of tools that do not state their own, by name or else group.
var budgets = map[string]int{
	"file-system__read":       12_000,
	"file-system__multi-read": 20_000,
	"file-system__grep":       8_000,
	"file-system__list":       4_000,
	"bash__exec":              10_000,
	"http__request":           8_000,
	"git":                     6_000,
	delegates:                 maxDelegate,
}

// budget returns a tool's budget: the user's, the tool's own, that of the table,
// the usual one.
func (g *Guard) budget(spec agent.Spec) int {
	n := 0
	if g.Budget != nil {
		n = g.Budget(spec.Name)
	}
	for _, next := range []int{spec.Budget, budgets[spec.Name], budgets[spec.Group], defaultBudget} {
		if n <= 0 {
			n = next
		}
	}
	if spec.Group == delegates {
		return min(n, maxDelegate)
	}
	return min(n, maxBudget)
}

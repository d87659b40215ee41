// Package doctor puts together what the capabilities of the program find in a diagnosis, in
// the order in which people read it. It starts no goroutines.
package doctor

import (
	"cmp"
	"context"
	"slices"

	"dure/agent/query"
	"dure/internal/frontend/text"
	"dure/internal/kernel/plug"
)

// order is that of the groups, and of the findings in each.
var order = []string{
	query.Configured, query.Reachable, query.Enforced, query.Programs, query.Machine,

	"version", "settings", "note", "data", "memory", "mcp", "profile", "model", "provider", "key", "fallback",
	"network", "proxy", "certificates", "ai", "search", "updates",
	"endpoint", "clock", "local", "keychain",
	"sandbox", "egress", "root", "trust", "mode", "rules", "folders",
	"git", "bash", "servers", "pty",
}

// Extension answers what is right and wrong with this installation.
type Extension struct {
	plug.NoSession
	of []plug.Extension
}

// New returns the extension, which asks those of the list that are a [plug.Doctor].
func New(of []plug.Extension) *Extension { return &Extension{of: of} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "doctor" }

// Answers returns the query that the extension answers, also when sessions cannot be opened.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Storeless(x.diagnose)} }

func (x *Extension) diagnose(ctx context.Context, _ query.Diagnose) (list []query.Finding, err error) {
	for _, one := range x.of {
		if d, ok := one.(plug.Doctor); ok {
			list = append(list, d.Findings(ctx)...)
		}
	}
	for i, f := range list {
		if f.Detail == "" {
			_, list[i].Detail, list[i].Fix = text.For("en").Finding(f)
		}
	}
	at := func(word string) int { return slices.Index(order, word) }
	slices.SortStableFunc(list, func(a, b query.Finding) int {
		return cmp.Or(cmp.Compare(at(a.Group), at(b.Group)), cmp.Compare(at(a.Name), at(b.Name)))
	})
	return list, nil
}

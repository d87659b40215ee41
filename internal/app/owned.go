package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/state/journal"
	"dure/internal/tools/catalog"
)

// generations is how many parents of a session are looked for.
const generations = 16

// sessionDecider is the decider of a session that is being built.
func (a *App) sessionDecider(b plug.Session, cat *catalog.Catalog, ws *workspace.Workspace, workdir string, mode agent.Mode, confine func() string) (*decider, error) {
	from := a.members.decider(b.Parent)
	d := &decider{from: from, app: a, cat: cat, ws: ws, workdir: workdir, session: b.ID, confine: confine, own: a.ownNotes(workdir)}
	d.owned = from != nil && from.owned || a.isOwned(b)
	return d, d.begin(mode)
}

// isOwned reports whether a session belongs to a user of a server, or works for one that
// does. Of one whose family cannot be told, it is believed.
func (a *App) isOwned(b plug.Session) bool {
	if b.Open.Owned || a.upper.works(b.Parent) && a.upper.job.Owned || slices.ContainsFunc(b.Stored.Tags, isOwner) {
		return true
	}
	if b.Parent != "" || !b.Stored.IsChild() {
		return false
	}
	up := b.Stored.Parent // it is opened by itself
	for range generations {
		m, ok := a.metaOf(up)
		if !ok || slices.ContainsFunc(m.Tags, isOwner) {
			return true
		}
		if !m.IsChild() {
			return false
		}
		up = m.Parent
	}
	return true
}

func isOwner(tag string) bool { return strings.HasPrefix(tag, ownerTag) }

// metaOf is what the store knows of a session, by its whole ID.
func (a *App) metaOf(id string) (journal.Meta, bool) {
	for m, err := range a.store.List(context.Background(), journal.Query{Prefix: id}) {
		if err != nil {
			break
		}
		if m.ID == id {
			return m, true
		}
	}
	return journal.Meta{}, false
}

// ofOthers are why nobody reads there in a session that belongs to a user of a server.
const ofOthers = "what is there belongs to all users of the server"

// kept are the names in the folder of the program under which it keeps sessions, and what they
// and the user have said and shown. The work trees of agents lie beside them.
var kept = []string{
	"sessions", "trash", "queue", "outbox", "index", "checkpoints", "changesets", "grants", "mcp", "history", "trust.json",
}

// withheld forbids the sessions of a user of a server to read what is kept of all of them,
// and to change it: users answer what their own sessions ask, and would be asked.
func (a *App) withheld() (rules []policy.Rule) {
	add := func(dir string, names ...string) {
		if !filepath.IsAbs(dir) {
			return
		}
		for _, name := range names {
			rules = append(rules, policy.Rule{
				Text: "Read(/" + name + ")", Verdict: agent.Deny, Reason: ofOthers, Source: policy.Source{Layer: policy.Managed, Dir: dir},
			})
		}
	}
	add(a.cfg.Data, kept...)
	add(a.cfg.Home, "credentials.json", "serve-users.json")
	dir, _ := a.projects()
	add(filepath.Dir(dir), filepath.Base(dir))
	return rules
}

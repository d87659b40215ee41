package app

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dure/agent"
	"dure/internal/safety/policy/enforce"
	"dure/internal/safety/workspace"
	"dure/internal/state/journal"
	"dure/internal/tools/catalog"
)

// members are the sessions that are open, as far as their children depend on them: a
// child has no tool that its parent has not, no wider mode, and what is allowed for the
// session of one holds for the other. It is safe for concurrent use.
type members struct {
	mu  sync.Mutex
	all map[string]*member // by session
}

type member struct {
	parent string
	name   string                // of its type; "" = it is of none
	has    func(agent.Spec) bool // its tools; nil = all
	gives  func(agent.Spec) bool // the tools that children may have; nil = all
	tell   func(ctx context.Context, id, text, by string) error
	d      *enforce.Decider

	cat     *catalog.Catalog
	ws      *workspace.Workspace
	tracker *workspace.Tracker
	tokens  atomic.Pointer[int] // of thinking, as somebody has said for the session; nil = nobody has
}

// join takes a session in.
func (m *members) join(id string, one *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]*member{}
	}
	m.all[id] = one
}

// tell puts a text of another agent before the model of an open session, as a person would be
// shown it.
func (m *members) tell(shown func(string) string) func(ctx context.Context, session, id, text, by string) error {
	return func(ctx context.Context, session, id, text, by string) error {
		m.mu.Lock()
		one := m.all[session]
		m.mu.Unlock()
		if one == nil || one.tell == nil {
			return journal.ErrClosed
		}
		return one.tell(ctx, id, shown(text), by)
	}
}

func (m *members) leave(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, id)
}

// gives returns which tools the children of an open session may have; nil = all.
func (m *members) gives(id string) func(agent.Spec) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[id]; one != nil {
		return one.gives
	}
	return nil
}

// tools returns what can be told of the tools of an open session.
func (m *members) tools(id string) (toolsIn, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[id]; one != nil {
		return toolsIn{one.cat, one.has, one.d}, true
	}
	return toolsIn{}, false
}

// chain returns the types that a session and those that it works for are of, from the
// top.
func (m *members) chain(id string) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for one := m.all[id]; one != nil; one = m.all[one.parent] {
		names = append(names, cmp.Or(one.name, "main"))
	}
	slices.Reverse(names)
	return names
}

// toolsOf returns which tools a list of names means, nil = all; and those of which it
// has only a part, as in Bash(git diff *), with the rules for that.
func toolsOf(cat *catalog.Catalog, names []string) (has func(agent.Spec) bool, parts map[string][]string) {
	if len(names) == 0 {
		return nil, nil
	}
	wanted, prefixes := map[string]bool{}, []string{}
	whole := map[string]bool{}
	for _, entry := range names {
		name, _, part := strings.Cut(entry, "(")
		canonical, ok := cat.Canonical(name)
		if !ok {
			canonical = name
		}
		if server, ok := strings.CutPrefix(canonical, "mcp__"); ok && (!strings.Contains(server, "__") || strings.HasSuffix(server, "__*")) {
			prefixes = append(prefixes, "mcp__"+strings.TrimSuffix(server, "__*")+"__")
		}
		wanted[canonical] = true
		if part {
			if parts == nil {
				parts = map[string][]string{}
			}
			parts[canonical] = append(parts[canonical], entry)
		} else {
			whole[canonical] = true
		}
	}
	maps.DeleteFunc(parts, func(tool string, _ []string) bool { return whole[tool] })
	return func(s agent.Spec) bool {
		return wanted[s.Name] || wanted["group:"+s.Group] || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.Name, p) })
	}, parts
}

// both is what two lists of tools have in common; nil = all.
func both(a, b func(agent.Spec) bool) func(agent.Spec) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(s agent.Spec) bool { return a(s) && b(s) }
}

// enlist takes a session in, with the stages of its gate that are its type's own.
func (a *App) enlist(s *assembly, cat *catalog.Catalog, tracker *workspace.Tracker, who role) (err error) {
	if s.bounds, err = s.deciding.Only(who.parts); err == nil {
		err = s.deciding.Join(s.b.Off)
	}
	if err != nil {
		return err
	}
	s.own = &member{
		parent: s.b.Parent, name: who.name, has: who.has, gives: who.gives, tell: s.b.Tell, d: s.deciding, cat: cat, ws: s.ws, tracker: tracker,
	}
	a.members.join(s.b.ID, s.own)
	return nil
}

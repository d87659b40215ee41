package app

import (
	"sync"

	"dure/agent"
	"dure/internal/extend/swarm/agents"
	"dure/internal/safety/policy/enforce"
	"dure/internal/tools/catalog"
)

// members are the sessions that are open, as far as others ask about them. It is safe for
// concurrent use.
type members struct {
	mu  sync.Mutex
	all map[string]*member // by session
}

type member struct {
	has func(agent.Spec) bool // its tools; nil = all
	d   *enforce.Decider
	cat *catalog.Catalog
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

func (m *members) leave(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, id)
}

// member returns a session that is open; nil = it is not.
func (m *members) member(id string) *member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[id]
}

// tools returns what can be told of the tools of an open session.
func (m *members) tools(id string) (toolsIn, bool) {
	if one := m.member(id); one != nil {
		return toolsIn{one.cat, one.has, one.d}, true
	}
	return toolsIn{}, false
}

// enlist takes a session in, with the stages of its gate that are its type's own.
func (a *App) enlist(s *assembly, cat *catalog.Catalog, who agents.Role) (err error) {
	if s.bounds, err = s.deciding.Only(who.Parts); err == nil {
		err = s.deciding.Join(s.b.Off)
	}
	if err != nil {
		return err
	}
	a.members.join(s.b.ID, &member{has: who.Has, d: s.deciding, cat: cat})
	return nil
}

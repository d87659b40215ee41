package agents

import (
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/tools/catalog"
)

// Role is what a session is as an agent.
type Role struct {
	Name   string
	System string                // in place of the usual instructions; "" = those
	Has    func(agent.Spec) bool // nil = all tools
	Gives  func(agent.Spec) bool // those that agents of its own may have; nil = all
	Parts  map[string][]string   // tools of which it has only a part, with the rules for that
}

// Cast gives a session its role: of a child, what it was opened with, and no tool that its
// parent does not have, but for those of servers of its own, which brings reports.
func (s *Session) Cast(brings func(agent.Spec) bool) {
	r, tools, without := &s.Role, s.As.Tools, s.As.Without
	r.Name, r.System = s.As.Name, s.As.Prompt
	if c := s.b.Child; c != nil {
		tools, without = c.Tools, c.Without
		r.Name, r.System = c.Agent, c.System
	} else if s.As.Tools != nil && len(s.As.Tools) == 0 {
		tools = []string{"none"}
	}
	r.Has, r.Parts = toolsOf(s.cat, tools)
	if not, _ := toolsOf(s.cat, without); not != nil {
		r.Has = catalog.Both(r.Has, func(t agent.Spec) bool { return !not(t) })
	}
	var of func(agent.Spec) bool
	if parent := s.x.session(s.b.Parent); s.b.Child != nil && parent != nil {
		if of = parent.Role.Gives; of != nil {
			r.Has = catalog.Both(r.Has, func(t agent.Spec) bool { return of(t) || brings(t) })
		}
	}
	if list := s.x.cfg.Lets(s.b.Parent); list != nil {
		r.Has = catalog.Both(r.Has, func(t agent.Spec) bool { return slices.Contains(list, t.Name) })
	}
	if own, has := s.x.cfg.Brings(s.cat, r.Name), r.Has; own != nil && has != nil {
		r.Has = func(t agent.Spec) bool { return has(t) || own(t) }
	}
	if r.Gives = r.Has; s.As.Routes() {
		r.Gives = of
	}
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

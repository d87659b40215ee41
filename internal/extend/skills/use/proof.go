package use

import (
	"context"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
)

// Points are what skills add to a session. A file that is not what was trusted is asked
// about, whatever the rules say that a skill has brought.
func (k *Skills) Points() plug.Points {
	return plug.Points{
		Gate:  plug.Gate{Bounds: []plug.Stage{{Name: "skill.files", Decide: k.proves}}},
		Hooks: plug.Hooks{Over: func(agent.TurnEnded, string) { k.ended() }},
		Extra: k.extra, Close: k.close,
	}
}

func (k *Skills) proves(_ context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
	k.mu.Lock()
	lenders := k.lenders
	k.mu.Unlock()
	if len(lenders) == 0 || soFar.Verdict != agent.Pass || !k.pol.Leans(p) {
		return agent.Decision{}, nil
	}
	for _, l := range lenders {
		if file := l.Unproven(p, k.workdir); file != "" {
			return trust.Asks(trust.ChangedWhy(l.Name, file)), nil
		}
	}
	return agent.Decision{}, nil
}

// lendersOf are those whose rules a session has from a skill that it runs, and from those of
// its turn.
func (k *Skills) lendersOf(active []agent.TurnSkill) (list []trust.Lender) {
	add := func(name, file string) {
		if l, ok := k.x.Lender(k.workdir, name, file); ok {
			list = append(list, l)
		}
	}
	if c := k.b.Child; c != nil && len(c.Rules) > 0 {
		add(c.Title, c.HooksFrom)
	}
	for _, s := range active {
		if len(s.Tools) > 0 && !s.Fork && s.By != agent.SkillByPath {
			add(s.Skill, s.Source)
		}
	}
	return list
}

// hookless says why the hooks of a file do not count: a file beside it is not what was
// trusted; "" = they do.
func (k *Skills) hookless(name, file string) string {
	l, ok := k.x.Lender(k.workdir, name, file)
	if !ok || l.Dir == "" {
		return ""
	}
	if changed := trust.Unproven(l.Dir, l.Covers); changed != "" {
		return trust.ChangedWhy(name, changed)
	}
	return ""
}

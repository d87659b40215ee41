package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/skills"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
)

// A lender is a skill, or a command of a file, of a project, whose rules are in force.
type lender struct {
	name   string
	dir    string // all files in it are its own; "" = those that a call names
	covers func(path string, data []byte) bool
}

// proofOf returns what says whether files beside one that extends the program are as they
// were when its folder was trusted; nil = it is no project's, or built in.
func (a *App) proofOf(workdir, file string) func(path string, data []byte) bool {
	if file == "" {
		return nil
	}
	for _, kind := range []string{inSkills, inCommands} {
		for _, p := range a.extensions(workdir, kind) {
			if rel, err := filepath.Rel(p.Dir, file); err == nil && filepath.IsLocal(rel) {
				return p.Covers
			}
		}
	}
	return a.covered // of a folder below the working folder
}

// lenderOf returns what a file lends as; ok = its files have to be proven.
func (a *App) lenderOf(workdir, name, file string) (l lender, ok bool) {
	l = lender{name: name, covers: a.proofOf(workdir, file)}
	if strings.EqualFold(filepath.Base(file), skills.File) {
		l.dir = filepath.Dir(file)
	}
	return l, l.covers != nil
}

// unproven returns a file that came or changed after the folder was trusted: beside the
// skill, or named by a call and of those that trust covers; "" = there is none.
func (l lender) unproven(p agent.Proposal, workdir string) string {
	if l.covers == nil {
		return ""
	}
	if l.dir != "" {
		if file := trust.Unproven(l.dir, l.covers); file != "" {
			return file
		}
	}
	for _, path := range namedFiles(p, workdir) {
		if !trust.Proven(path, l.covers) {
			return path
		}
	}
	return ""
}

// maxNamedFiles bounds the words of a call that are looked at.
const maxNamedFiles = 500

// namedFiles are the paths in the folders of owners that a call reads or has as words.
func namedFiles(p agent.Proposal, workdir string) (list []string) {
	add := func(dir, word string) {
		if dir == "" {
			dir = workdir
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		inOwners := slices.ContainsFunc(strings.Split(filepath.ToSlash(word), "/"), func(part string) bool {
			return slices.ContainsFunc(ownerFolders, func(o string) bool { return strings.EqualFold(o, part) })
		})
		if inOwners && len(list) < maxNamedFiles && !strings.ContainsRune(word, 0) {
			list = append(list, filepath.Clean(word))
		}
	}
	for _, path := range p.Effects.Reads {
		add("", path)
	}
	var of func(all []agent.SimpleCommand)
	of = func(all []agent.SimpleCommand) {
		for _, c := range all {
			for _, word := range slices.Concat(c.Argv, c.Reads) {
				add(c.Dir, word)
			}
			of(c.Runs)
		}
	}
	of(p.Effects.Commands)
	return list
}

// changedWhy says it to people and models.
func changedWhy(name, file string) string {
	return file + ", which belongs to what " + name + " may run unasked, came or changed after its folder was trusted; look at it, then: dure trust"
}

// points are what skills add to a session. A file that is not what was trusted is asked
// about, whatever the rules say that a skill has brought.
func (k *skillset) points() plug.Points {
	return plug.Points{
		Gate:  plug.Gate{Bounds: []plug.Stage{{Name: "skill.files", Decide: k.proves}}},
		Hooks: plug.Hooks{Over: func(agent.TurnEnded, string) { k.ended() }},
		Extra: k.extra, Close: k.close,
	}
}

func (k *skillset) proves(_ context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
	k.mu.Lock()
	lenders := k.lenders
	k.mu.Unlock()
	if len(lenders) == 0 || soFar.Verdict != agent.Pass || !k.pol.Leans(p) {
		return agent.Decision{}, nil
	}
	for _, l := range lenders {
		if file := l.unproven(p, k.workdir); file != "" {
			return asks(changedWhy(l.name, file)), nil
		}
	}
	return agent.Decision{}, nil
}

// asks wants a person to be asked, because something is not what was trusted.
func asks(why string) agent.Decision {
	const by = "trust"
	said := []agent.Opinion{{Stage: by, Verdict: agent.AskUser, Reason: why}} // who decides again needs it
	return agent.Decision{Verdict: agent.AskUser, By: by, Reason: why, Trace: said}
}

// lendersOf are those whose rules a session has from a skill that it runs, and from those of
// its turn.
func (k *skillset) lendersOf(active []agent.TurnSkill) (list []lender) {
	add := func(name, file string) {
		if l, ok := k.app.lenderOf(k.workdir, name, file); ok {
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
func (k *skillset) hookless(name, file string) string {
	l, ok := k.app.lenderOf(k.workdir, name, file)
	if !ok || l.dir == "" {
		return ""
	}
	if changed := trust.Unproven(l.dir, l.covers); changed != "" {
		return changedWhy(name, changed)
	}
	return ""
}

package use

import (
	"cmp"
	"context"
	"crypto/rand"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// The bounds of what skills add to a conversation.
const (
	maxStacked    = 6        // skills that one input calls
	recentTouched = 20       // files touched last that may bring skills of folders below
	maxPathText   = 8 << 10  // bytes of a skill that a touched file brings
	maxPathAll    = 24 << 10 // ... of all of them at once
	maxPathNew    = 5        // skills that touched files bring at once
	recentPaths   = 5        // files touched last that a skill may be for
	againText     = 20_000   // bytes of a text that comes again after a compaction, 5,000 tokens
	againAll      = 100_000  // ... of all of them, 25,000 tokens
	pathHeading   = "## Skills that apply to the current files"
	pathHeadingK  = "## 현재 파일에 자동 적용된 스킬"
)

// extra returns what belongs into a conversation of skills as of now.
func (k *Skills) extra(ctx context.Context, at plug.Moment) []agent.ContextAdded {
	if len(at.Fresh) > 0 {
		k.Set.Refresh()
	}
	for _, path := range at.Task.Files[max(0, len(at.Task.Files)-recentTouched):] {
		k.Set.Touch(path)
	}
	k.mu.Lock()
	k.present = at.Keys(transcript.SkillSource)
	if at.Turn {
		k.active = slices.Clone(at.Active)
	}
	if slices.ContainsFunc(at.Fresh, func(in agent.InputAdded) bool { return in.Origin == "" }) {
		k.held = nil
	}
	active := k.active
	k.mu.Unlock()
	k.lending(active)
	var all []agent.ContextAdded
	if k.Offered() {
		all = append(all, k.listing(at)...)
		all = append(all, k.byPath(ctx, at)...)
	}
	all = append(all, k.again(ctx, at)...)
	if at.Turn && k.b.Child == nil {
		all = append(all, k.typed(ctx, at)...)
	}
	return all
}

// listing is what the model is told of the skills that there are.
func (k *Skills) listing(at plug.Moment) []agent.ContextAdded {
	window := k.cfg.Window(k.b.Model())
	budget := skills.Budget(window)
	if k.cfg.Budget > 0 && window > 0 {
		budget = int(float64(window) * 4 * k.cfg.Budget)
	}
	k.mu.Lock()
	uses := make(map[string]int, len(k.uses))
	for name, n := range k.uses {
		uses[name] = n
	}
	k.mu.Unlock()
	recent := k.recent(at)
	text, _ := skills.Listing(k.Set.Own(), budget, cmp.Or(k.cfg.Longest, skills.MaxDescribed),
		func(s skills.Skill) int { return uses[s.Name] },
		func(s skills.Skill) bool {
			return at.Has(fromPathSkills, s.Name) || slices.ContainsFunc(recent, s.For)
		})
	if text == "" && at.Has(fromSkills, "") {
		text = "There are no skills any more."
	}
	if text == "" {
		return nil
	}
	return []agent.ContextAdded{{Source: fromSkills, Title: "skills", Text: text}}
}

// recent are the files that the conversation is about, from the working folder: those
// touched last, and those that the newest input names.
func (k *Skills) recent(at plug.Moment) (list []string) {
	add := func(path string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(k.workdir, path)
		}
		if rel, err := filepath.Rel(k.workdir, path); err == nil && filepath.IsLocal(rel) && rel != "." {
			list = append(list, filepath.ToSlash(rel))
		}
	}
	for _, path := range at.Task.Files[max(0, len(at.Task.Files)-recentPaths):] {
		add(path)
	}
	for _, in := range at.Fresh {
		if in.Origin != "" {
			continue
		}
		words := strings.FieldsFunc(in.Text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`()[]<>,;", r) })
		for _, w := range words[:min(len(words), 200)] {
			w = strings.TrimPrefix(strings.TrimRight(w, ".:!?"), "@")
			if strings.ContainsAny(w, "./") && len(w) < 300 && !strings.Contains(w, "://") {
				add(w)
			}
		}
	}
	return list
}

// byPath returns the texts of the skills that are for files of now, each once. They allow
// nothing and run nothing.
func (k *Skills) byPath(ctx context.Context, at plug.Moment) (all []agent.ContextAdded) {
	recent := k.recent(at)
	if len(recent) == 0 {
		return nil
	}
	left := maxPathAll
	for _, s := range k.Set.Own() {
		if s.Off != "" || s.NoModel || len(s.Paths) == 0 || len(all) == maxPathNew || at.Has(fromPathSkills, s.Name) || !slices.ContainsFunc(recent, s.For) {
			continue
		}
		text, err := k.prepare(ctx, s, "", nil, notCalled)
		if err != nil || text == "" {
			continue
		}
		if len(text) > maxPathText {
			text = strings.ToValidUTF8(text[:maxPathText], "") + "\n[the rest was left out: call the skill to read all of it]"
		}
		if left -= len(text); left < 0 {
			break
		}
		run := "sk_" + rand.Text()[:16]
		done := agent.SkillCompleted{Run: run, Skill: s.Name, OK: true}
		if err := k.b.Record(agent.SkillActivated{Run: run, Skill: s.Name, Source: sourceOf(s), By: agent.SkillByPath}, done); err != nil {
			return all
		}
		heading := pathHeading
		if k.cfg.Korean {
			heading = pathHeadingK
		}
		all = append(all, agent.ContextAdded{
			Source: fromPathSkills, Key: s.Name, Title: "skill " + s.Name, From: []string{s.File},
			Text: heading + "\n\n### " + s.Name + "\n" + text,
		})
	}
	return all
}

// again returns the texts of skills that a compaction has put away, those called last
// first, as far as they fit.
func (k *Skills) again(ctx context.Context, at plug.Moment) (all []agent.ContextAdded) {
	left := againAll
	for _, s := range slices.Backward(at.Skills) {
		if at.Has(transcript.SkillSource, s.Run) {
			continue
		}
		text := k.recorded(ctx, s)
		if text == "" {
			continue
		}
		if len(text) > againText {
			text = strings.ToValidUTF8(text[:againText], "") + "\n[the rest was left out: call the skill to read all of it]"
		}
		if left -= len(text); left < 0 {
			break
		}
		all = append(all, agent.ContextAdded{Source: transcript.SkillSource, Key: s.Run, Title: s.Name, Text: text})
	}
	return all
}

// recorded is the text of a skill as the log has it.
func (k *Skills) recorded(ctx context.Context, s agent.SkillText) string {
	for e, err := range k.b.Events(ctx, s.Seq-1) {
		if err != nil {
			return ""
		}
		done, _ := e.Body.(agent.SkillCompleted)
		if done.Run == s.Run {
			return done.Text
		}
		return ""
	}
	return ""
}

// typed carries out the skills that the newest input calls, and returns their texts. An
// input is carried out once, whatever happens.
func (k *Skills) typed(ctx context.Context, at plug.Moment) (all []agent.ContextAdded) {
	for _, in := range at.Fresh {
		if in.Origin != "" || in.Text == "" {
			continue
		}
		called, arguments := k.calls(in.Text)
		for _, s := range called {
			if slices.ContainsFunc(at.Active, func(t agent.TurnSkill) bool { return t.Call == in.Input && t.Skill == s.Name && t.Done }) || ctx.Err() != nil {
				continue
			}
			if c, ok := k.run(ctx, s, arguments, in.Input); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// run carries out one skill that was typed.
func (k *Skills) run(ctx context.Context, s skills.Skill, arguments, input string) (agent.ContextAdded, bool) {
	var done agent.SkillCompleted
	err := k.errFor(s)
	if err == nil {
		done, err = k.start(ctx, s, starting{arguments: arguments, by: agent.SkillByUser, call: input, key: "skill:" + input + ":" + s.Name})
		if err != nil {
			return agent.ContextAdded{}, false // the turn ends, or the log cannot be written
		}
	} else {
		done = agent.SkillCompleted{Run: "sk_" + rand.Text()[:16], Skill: s.Name, Error: err.Error()}
	}
	c := agent.ContextAdded{Source: transcript.SkillSource, Key: done.Run, Title: s.Name, Text: done.Text}
	switch {
	case !done.OK:
		k.Note("the skill " + s.Name + " did not come to its end: " + done.Error)
		c.Text = "The user has called the skill " + s.Name + ", and it did not come to its end: " + done.Error + "\nTell the user so. Do not do what it may have been for in its place."
	case done.Same != "":
		c.Text = "The user has called the skill " + s.Name + " again. Its text stands above and holds."
	}
	if err := k.completed(done); err != nil {
		return agent.ContextAdded{}, false
	}
	return c, true
}

// calls reads an input that calls skills: "/one /two and their arguments". A skill that
// runs in a session of its own is the last. What is a command of another sort is none.
func (k *Skills) calls(text string) (called []skills.Skill, arguments string) {
	arguments = strings.TrimSpace(text)
	if !strings.HasPrefix(arguments, "/") {
		return nil, arguments
	}
	for len(called) < maxStacked {
		name, rest, ok := k.cfg.Split(arguments)
		if !ok || name == "" {
			break
		}
		if len(called) == 0 && k.cfg.BuiltIn(name) {
			break
		}
		s, _ := k.Set.Find(name)
		if s.Name == "" || !strings.EqualFold(s.Name, name) && !strings.EqualFold(s.Title, name) {
			break // what ends in it is not meant by who types a message
		}
		if _, ok := k.cfg.Command(k.workdir)(name); ok && !strings.EqualFold(s.Name, name) {
			break // it only calls itself so, and the command is meant
		}
		if _, ok := k.cfg.Command(k.workdir)(s.Name); ok && s.Place.Scope == frontmatter.BuiltIn {
			break
		}
		called, arguments = append(called, s), rest
		if s.Fork {
			break
		}
	}
	return called, arguments
}

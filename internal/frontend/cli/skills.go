package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/near"
	"dure/internal/frontend/text"
)

// SkillScopes are where a person keeps skills, the one to take when none is named first.
func SkillScopes() []string { return []string{"project", "user"} }

// Skills lists the skills of a folder.
func (c *CLI) Skills(ctx context.Context, workdir string, asJSON bool) error {
	return tell(ctx, c, query.ListSkills{Workdir: workdir}, asJSON, func(w *bufio.Writer, list []query.SkillInfo) {
		writeLines(w, c.skillLines(list, c.columns(), false))
	})
}

// skillLines are a list of skills for a screen: what comes with the program by name, the
// others with what they are for and what is wrong with them. With typed, only those that a
// person may call.
func (c *CLI) skillLines(list []query.SkillInfo, columns int, typed bool) (lines []string) {
	const usual = 100 // cells, where nobody reads on a screen
	if columns <= 0 {
		columns = usual
	}
	var ready []string
	for _, s := range list {
		name := text.OneLine(s.Name)
		switch {
		case typed && (!s.Typed || !s.Usable):
			continue
		case s.Source == "builtin" && s.Usable:
			ready = append(ready, name)
			continue
		}
		if s.Typed {
			name = strings.TrimSpace("/" + name + " " + text.OneLine(s.Hint))
		}
		lines = append(lines, name+"  ("+s.Source+")")
		add := func(what string) {
			for _, l := range text.Wrap(what, max(columns-2, 10)) {
				lines = append(lines, "  "+l)
			}
		}
		if s.Description != "" {
			add(text.OneLine(s.Description))
		}
		if s.Off != "" {
			add(c.Text.Say(text.SkillOff, "why", advice(c.Text, s.Off)))
		}
		if typed {
			continue
		}
		add(text.OneLine(s.Path))
		for _, w := range s.Warnings {
			if w != s.Off {
				add("! " + advice(c.Text, w))
			}
		}
	}
	if len(ready) > 0 {
		for i, l := range text.Wrap(c.Text.Say(text.SkillsReady, "list", strings.Join(ready, ", ")), max(columns-2, 10)) {
			if i > 0 {
				l = "  " + l
			}
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		lines = []string{c.Text.Say(text.SkillsNone)}
	}
	return lines
}

// advice is what is wrong with a file, and what to do about it behind the last semicolon, in
// the person's language.
func advice(t text.Catalog, s string) string {
	s = text.OneLine(s)
	at := strings.LastIndex(s, "; ")
	if at < 0 {
		return t.Phrase(s)
	}
	return t.Phrase(s[:at]) + "; " + t.Phrase(s[at+2:])
}

// Skill writes one skill.
func (c *CLI) Skill(s query.SkillInfo, asJSON bool) error {
	return c.put(s, asJSON, func(w *bufio.Writer) {
		own := s
		own.Source = strings.TrimSpace(s.Source)
		for _, l := range c.skillLines([]query.SkillInfo{shown(own)}, c.columns(), false) {
			fmt.Fprintln(w, l)
		}
		if len(s.Tools) > 0 {
			fmt.Fprintf(w, "  %s\n", text.OneLine("allowed-tools: "+strings.Join(s.Tools, ", ")))
		}
		if s.Text != "" {
			fmt.Fprintf(w, "\n%s\n", strings.TrimRight(text.Clean(s.Text), "\n"))
		}
	})
}

// slashSkills lists the skills of the folder, with whether they count, or says more of
// one.
func (ch *chat) slashSkills(ctx context.Context, arg string) {
	list, ok := asked[[]query.SkillInfo](ctx, ch, query.ListSkills{Workdir: ch.v.Workdir})
	if !ok {
		return
	}
	if arg = strings.TrimPrefix(arg, "/"); arg != "" {
		var names []string
		for _, s := range list {
			names = append(names, s.Name)
		}
		list = slices.DeleteFunc(list, func(s query.SkillInfo) bool { return !strings.EqualFold(s.Name, arg) })
		if len(list) == 0 {
			said := ch.Text.Say(text.SkillUnknown, "name", text.OneLine(bounded(arg)))
			if like := near.Nearest(arg, names); like != "" {
				said += " " + ch.Text.Say(text.CommandNear, "list", "/skills "+text.OneLine(like))
			}
			ch.v.note(yellow, said)
			return
		}
		for i := range list {
			list[i] = shown(list[i])
		}
	}
	ch.notes(ch.skillLines(list, ch.s.usable()-2, false))
}

// shown is a skill as a list has it that is not only named.
func shown(s query.SkillInfo) query.SkillInfo {
	if s.Source == "builtin" {
		s.Source = "built in"
	}
	return s
}

// Checked writes which skills are as the standard wants them, and what is wrong with the
// others.
func (c *CLI) CheckedSkills(list []query.SkillInfo, asJSON bool) error {
	return c.put(list, asJSON, func(w *bufio.Writer) {
		for _, s := range list {
			key := text.SkillInvalid
			if s.Valid {
				key = text.SkillValid
			}
			fmt.Fprintln(w, c.Text.Say(key, "path", text.OneLine(s.Path)))
			for _, l := range s.Warnings {
				fmt.Fprintln(w, "  "+advice(c.Text, l))
			}
		}
	})
}

// skillLine says that a skill is in force.
func skillLine(t text.Catalog, b agent.SkillActivated) string {
	key := text.SkillStarted
	switch b.By {
	case agent.SkillByPath:
		key = text.SkillByFile
	case agent.SkillByCommand:
		key = text.SkillByTyping
	}
	return t.Say(key, "name", text.OneLine(bounded(b.Skill)))
}

// skillDone says how a skill came out, where that is not plain from what follows.
func (v *painter) skillDone(b agent.SkillCompleted) {
	name := text.OneLine(bounded(b.Skill))
	switch {
	case !b.OK:
		v.note(yellow, v.t.Say(text.SkillFailed, "name", name, "error", text.OneLine(bounded(b.Error))))
	case b.Session != "":
		v.note(dim, v.t.Say(text.SkillDone, "name", name, "steps", b.Steps))
	}
}

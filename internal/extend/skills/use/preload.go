package use

import (
	"context"
	"runtime"
	"strings"

	"dure/internal/extend/skills"
)

// maxPreloaded bounds the bytes of all skills that a type of agents begins with. One that
// does not fit is named, so that it can be loaded.
const maxPreloaded = 100_000

// notPreloaded stands in the place of commands in the text of skills that an agent begins
// with: nobody has called them.
const notPreloaded = "[this command is run when the skill is called]"

// Preloaded returns the skills that a type of agents begins with, as a part of what it is
// told to be. Why one is missing is told to the people who look at the log.
func (k *Skills) Preloaded(names []string) string {
	if k == nil {
		return ""
	}
	var b strings.Builder
	for _, name := range names {
		text, why := k.whole(name)
		if why == "" && b.Len()+len(text) > maxPreloaded {
			why = "the skills before it take all the room that there is"
		}
		if why != "" {
			k.Note("an agent begins without the skill " + clip(name) + ": " + why)
			continue
		}
		b.WriteString("\n\n## Skill: " + name + "\n\n" + text)
	}
	return b.String()
}

// whole returns the text of a skill without its commands, or why it cannot be had.
func (k *Skills) whole(name string) (text, why string) {
	s, like := k.Set.Find(name)
	switch {
	case len(like) > 0:
		return "", "it may be one of " + strings.Join(like, ", ")
	case s.Name == "":
		return "", "there is none of this name"
	case s.Off != "":
		return "", s.Off
	case s.NoModel:
		return "", "it is for people to call"
	}
	text, err := k.Set.Prepare(context.Background(), s, skills.Request{Vars: k.vars(), NotRun: notPreloaded, Windows: runtime.GOOS == "windows"})
	if err != nil {
		return "", err.Error()
	}
	return k.cfg.Redact(text), ""
}

// clip is a name as a note has it.
func clip(name string) string {
	name = strings.Join(strings.Fields(name), " ")
	return string([]rune(name)[:min(100, len([]rune(name)))])
}

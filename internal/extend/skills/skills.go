// Package skills knows the skills of a session: folders with a SKILL.md that says how a
// kind of work is done. It finds them in the places that it is given, reads what stands
// in front of their texts, says which of two of a name counts and what is wrong with
// each, and makes of a text with its arguments what a model reads.
//
// It runs nothing, asks nobody and decides nothing: commands that stand in a text go
// through a function that it is given. Texts are read when they are needed, and not
// before. What repositories bring is bounded in number, depth and size, and never leads
// out of them. It starts no goroutines.
package skills

import (
	"encoding/json"
	"strings"

	"dure/internal/base/frontmatter"
)

// The bounds of what is read. A skill that is over one of them is listed with its
// warning and not used.
const (
	MaxSkills = 2_000     // of all places
	MaxBody   = 256 << 10 // bytes of a SKILL.md
	maxHead   = 72 << 10  // bytes that its fields are looked for in
	maxDepth  = 6         // folders between a place and a skill, its own too
	maxFolder = 20_000    // entries of folders that are looked at in a place
)

// The lengths of the fields that a model or a person reads, in characters.
const (
	MaxDescribed = 1536 // description and when_to_use, in the list for models
	maxField     = 4_000
	maxNames     = 100 // names of arguments, rules, globs
)

// A Skill is one as its file says. Zero fields say nothing.
type Skill struct {
	// Name is what it is called by: its folder, with those above it up to its place
	// and colons between them; of a plugin, the plugin's name and a colon before it.
	Name string

	Title       string // name in its file
	Description string
	When        string // when it is of use
	Hint        string // its arguments, as they are shown
	Arguments   []string
	Allowed     []string // rules that hold for the turn
	Without     []string // tools that the turn does not have
	Model       string   // "" = the session's
	Effort      string
	Agent       string
	Shell       string // bash or powershell; "" = bash
	Version     string
	Fork        bool     // it runs in a session of its own
	Background  bool     // ... and nobody waits for it where a person is there
	Paths       []string // globs of the files that it is for
	Hooks       json.RawMessage
	NoModel     bool // the model is not told of it and cannot call it
	NoUser      bool // it cannot be typed
	Bare        bool // models are told its name alone

	Place frontmatter.Place
	Dir   string // its folder; "" = it is built in
	File  string // its SKILL.md; of one that is built in, builtin:NAME

	// Strict: a command in its text that fails takes the whole skill back, as in
	// folders of .claude.
	Strict bool

	// Powerless: the file is not what was trusted, so that its rules, hooks and model
	// are not here, and no command in its text is run.
	Powerless bool

	Valid  bool                // it is as the open standard for skills wants it
	Faults []frontmatter.Fault // what is wrong with it, or was read leniently
	Off    string              // why it cannot be used, in English; "" = it can

	size int64
	root string // resolved; that its file may not lead out of; "" = it may
}

// Source says where it comes from: managed, user, project, plugin or builtin.
func (s Skill) Source() string { return string(s.Place.Scope) }

// Described is what it is for, as a model is told: at most [MaxDescribed] characters.
func (s Skill) Described() string {
	text := strings.TrimSpace(s.Description + " " + s.When)
	return cut(strings.Join(strings.Fields(text), " "), MaxDescribed)
}

// Warnings are the faults as lines.
func (s Skill) Warnings() []string {
	list := []string{}
	for _, f := range s.Faults {
		list = append(list, f.Advice())
	}
	return list
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return strings.TrimRight(s[:i], " ") + "…"
		}
		count++
	}
	return s
}

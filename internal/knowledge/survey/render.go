package survey

import (
	"fmt"
	"slices"
	"strings"
)

// Text is a report as a model reads it.
func (r Report) Text() string {
	var b strings.Builder
	line := func(name string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(list, ", "))
		}
	}
	more := ""
	if r.More {
		more = ", and more"
	}
	fmt.Fprintf(&b, "Files: %d%s\n", r.Files, more)
	line("Languages (files)", r.languages())
	line("Frameworks", r.Frameworks)
	line("Tests with", r.Tests)
	line("Manifests", r.Manifests)
	line("Checks run by", r.CI)
	line("Containers", r.Containers)
	line("Files that instruct agents", r.Instructions)
	if r.Readme != nil {
		line("README", slices.DeleteFunc([]string{r.Readme.Path, r.Readme.Title, r.Readme.Summary}, func(s string) bool { return s == "" }))
	}
	if len(r.Commands) > 0 {
		b.WriteString("Commands:\n")
		for _, c := range r.Commands {
			fmt.Fprintf(&b, "- %s: %s (%s)\n", c.Kind, c.shown(), c.From)
		}
	}
	line("Folders", r.Tree)
	return b.String()
}

func (r Report) languages() (list []string) {
	for _, l := range r.Languages {
		list = append(list, fmt.Sprintf("%s (%d)", l.Name, l.Files))
	}
	return list
}

// shown is a command with the folder that it is given in.
func (c Command) shown() string {
	if c.Dir == "" {
		return c.Run
	}
	return "in " + c.Dir + ": " + c.Run
}

// Words are the words of a file of instructions.
type Words struct {
	Overview, Conventions, Commands, Work, Cautions string // headings
	Languages, Frameworks, Folders, Others          string // before lists
	Say                                             string // what is to be said here, as a comment
	Kinds                                           map[string]string
}

// Draft is the beginning of a file of instructions: what the survey has found, and
// a place for what only people know.
func (r Report) Draft(title string, w Words) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", plain(title, maxName))
	section := func(heading string) { fmt.Fprintf(&b, "\n## %s\n\n", heading) }
	list := func(name string, of []string) {
		if len(of) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", name, strings.Join(of, ", "))
		}
	}
	section(w.Overview)
	if r.Readme != nil { // what it says is somebody's text, and these are instructions
		list("README", []string{"`" + r.Readme.Path + "`"})
	}
	list(w.Languages, r.languages())
	list(w.Frameworks, r.Frameworks)
	var folders []string
	for _, f := range r.Folders {
		folders = append(folders, "`"+f.Name+"/`")
	}
	list(w.Folders, folders)
	list(w.Others, r.quoted())
	fmt.Fprintf(&b, "\n<!-- %s -->\n", w.Say)
	section(w.Conventions)
	fmt.Fprintf(&b, "<!-- %s -->\n", w.Say)
	section(w.Commands)
	for _, c := range r.Commands {
		fmt.Fprintf(&b, "- %s: `%s`", w.kind(c.Kind), c.Run)
		if c.Dir != "" {
			fmt.Fprintf(&b, " (`%s/`)", c.Dir)
		}
		b.WriteString("\n")
	}
	if len(r.Commands) == 0 {
		fmt.Fprintf(&b, "<!-- %s -->\n", w.Say)
	}
	for _, heading := range []string{w.Work, w.Cautions} {
		section(heading)
		fmt.Fprintf(&b, "<!-- %s -->\n", w.Say)
	}
	return b.String()
}

func (w Words) kind(kind string) string {
	if said := w.Kinds[kind]; said != "" {
		return said
	}
	return kind
}

// A Suggestion is what may be of use in the project: a hook or a skill.
type Suggestion struct {
	Kind  string `json:"kind"` // hook or skill
	Name  string `json:"name"` // of the skill; of a hook its event
	Run   string `json:"run,omitempty"`
	About string `json:"about,omitempty"`
}

// Suggest returns what may be of use. Nothing of it is done.
func (r Report) Suggest() (all []Suggestion) {
	for _, c := range r.Commands {
		if c.Kind == "format" && c.Dir == "" {
			all = append(all, Suggestion{Kind: "hook", Name: "PostToolUse", Run: c.Run, About: c.From})
			break
		}
	}
	if slices.ContainsFunc(r.Commands, func(c Command) bool { return c.Kind == "test" }) {
		all = append(all, Suggestion{Kind: "skill", Name: "fix-tests"})
	}
	if len(r.CI) > 0 {
		all = append(all, Suggestion{Kind: "skill", Name: "mend-ci"})
	}
	return all
}

// quoted are the files that instruct agents.
func (r Report) quoted() (list []string) {
	for _, f := range r.Instructions {
		list = append(list, "`"+f+"`")
	}
	return list
}

package survey

import (
	"fmt"
	"slices"
	"strings"

	"dure/agent/query"
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
			fmt.Fprintf(&b, "- %s: %s (%s)\n", c.Kind, shown(c), c.From)
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
func shown(c query.SurveyCommand) string {
	if c.Dir == "" {
		return c.Run
	}
	return "in " + c.Dir + ": " + c.Run
}

// worded are the kinds of commands that have a word.
var worded = []string{"build", "test", "lint", "format", "run", "ci"}

// Draft is the beginning of a file of instructions: what the survey has found, and
// a place for what only people know. word returns the texts that are not the project's own:
// overview, conventions, commands, work and cautions (headings); languages, frameworks,
// folders and others (before lists); say (a comment: what is to be said here); worded.
func (r Report) Draft(title string, word func(name string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", plain(title, maxName))
	section := func(heading string) { fmt.Fprintf(&b, "\n## %s\n\n", word(heading)) }
	blank := func() { fmt.Fprintf(&b, "<!-- %s -->\n", word("say")) }
	list := func(name string, of []string) {
		if len(of) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", name, strings.Join(of, ", "))
		}
	}
	section("overview")
	if r.Readme != nil { // what it says is somebody's text, and these are instructions
		list("README", []string{"`" + r.Readme.Path + "`"})
	}
	list(word("languages"), r.languages())
	list(word("frameworks"), r.Frameworks)
	var top []string
	for _, f := range r.Folders {
		top = append(top, "`"+f.Name+"/`")
	}
	list(word("folders"), top)
	list(word("others"), r.quoted())
	b.WriteString("\n")
	blank()
	section("conventions")
	blank()
	section("commands")
	for _, c := range r.Commands {
		name := c.Kind
		if slices.Contains(worded, c.Kind) {
			name = word(c.Kind)
		}
		fmt.Fprintf(&b, "- %s: `%s`", name, c.Run)
		if c.Dir != "" {
			fmt.Fprintf(&b, " (`%s/`)", c.Dir)
		}
		b.WriteString("\n")
	}
	if len(r.Commands) == 0 {
		blank()
	}
	for _, heading := range []string{"work", "cautions"} {
		section(heading)
		blank()
	}
	return b.String()
}

// Suggest returns what may be of use. Nothing of it is done.
func (r Report) Suggest() (all []query.Suggestion) {
	for _, c := range r.Commands {
		if c.Kind == "format" && c.Dir == "" {
			all = append(all, query.Suggestion{Kind: "hook", Name: "PostToolUse", Run: c.Run, About: c.From})
			break
		}
	}
	if slices.ContainsFunc(r.Commands, func(c query.SurveyCommand) bool { return c.Kind == "test" }) {
		all = append(all, query.Suggestion{Kind: "skill", Name: "fix-tests"})
	}
	if len(r.CI) > 0 {
		all = append(all, query.Suggestion{Kind: "skill", Name: "mend-ci"})
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

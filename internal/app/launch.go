package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/calc"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/launch"
	"dure/internal/extend/skills/builtin"
	"dure/internal/extend/swarm"
	"dure/internal/extend/swarm/presets"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/workspace"
	"dure/internal/tools/shell"
)

// launched answers what is launched from the prompt; nil = the query is none of these.
func (a *App) launched(ctx context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case query.Calculate:
		return calculate(q.Text)
	case query.FindEmoji:
		return launch.Emojis(q.Text, q.Limit), nil
	case query.ListSnippets:
		list, err := a.snippets().List()
		return list, launchProblem(a.snippets().Dir, err)
	case query.FillSnippet:
		return a.fillSnippet(q)
	case query.ListLinks:
		return a.links()
	case query.FillLink:
		return a.fillLink(q)
	case query.FindFiles:
		return a.findFiles(ctx, q)
	case query.DescribeSystem:
		return a.system(), nil
	case query.ListPalette:
		return a.palette(q)
	case query.SearchWeb:
		return a.searchWeb(ctx, q)
	}
	return nil, nil
}

// calculateFix is said with each mistake in a calculation.
const calculateFix = "write it like: dure calc '(1 + 2) * 3', '5 ft 3 in to cm', '200 + 10%', '255 in hex'"

func calculate(s string) (query.Calculation, error) {
	r, err := calc.Eval(s)
	if e, ok := errors.AsType[*calc.Error](err); ok {
		return query.Calculation{}, &agent.Problem{Code: agent.ProblemUsage, Message: mistake(e), Fix: calculateFix}
	}
	return query.Calculation{Text: s, Result: r.Text, Exact: r.Exact, Fraction: r.Fraction}, err
}

// mistake says in a sentence what is wrong with a calculation. internal/frontend/text has them in
// Korean.
func mistake(e *calc.Error) string {
	said := map[calc.Why]string{
		calc.Empty: "there is nothing to calculate", calc.Long: "the calculation is too long, or too deep",
		calc.Character: "%s means nothing here", calc.Number: "%s is no number", calc.Expected: "a number is missing",
		calc.Unexpected: "%s should not stand here", calc.Unclosed: "a parenthesis is not closed",
		calc.Unknown: "%s is neither a unit nor a function", calc.Zero: "nothing is divided by zero",
		calc.Units: "these units do not go together: %s", calc.Degrees: "temperatures can only be converted",
		calc.Large: "the number gets too large", calc.Root: "a negative number has no root",
		calc.Whole: "a whole number is needed", calc.Arguments: "%s takes another number of arguments",
	}[e.Why]
	if strings.Contains(said, "%s") {
		said = fmt.Sprintf(said, cmp.Or(e.What, "this"))
	}
	return fmt.Sprintf("column %d: %s", e.Column, said)
}

// snippets are the user's.
func (a *App) snippets() launch.Snippets {
	user := a.cfg.User.Name
	if user == "" {
		env := getenv(a.opts.Environ)
		user = cmp.Or(env("USER"), env("USERNAME"))
	}
	return launch.Snippets{Dir: filepath.Join(a.cfg.Home, "snippets"), Workdir: a.opts.Workdir, User: user, Now: time.Now}
}

func (a *App) fillSnippet(q query.FillSnippet) (f query.FilledSnippet, err error) {
	sn, err := a.snippets().Find(q.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("there is no snippet %q", q.Name), Fix: "see which there are with: dure snippet list"}
	case err == nil && sn.Error != "":
		err = errors.New(sn.Error)
	}
	if err == nil {
		f, err = a.snippets().Fill(sn, q.Values)
	}
	return f, launchProblem(cmp.Or(sn.Path, a.snippets().Dir), err)
}

// MakeSnippet makes the file of a new snippet, with a text or as an example, and returns
// its path.
func (a *App) MakeSnippet(name, text string) (path string, err error) {
	path, err = a.snippets().Make(name, text)
	switch {
	case errors.Is(err, fs.ErrExist):
		return path, &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("there is a snippet %q already", name), Fix: "edit it: " + path}
	case errors.Is(err, launch.ErrName):
		return path, nameProblem(name)
	}
	return path, launchProblem(cmp.Or(path, a.snippets().Dir), err)
}

func nameProblem(name string) error {
	return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("%q is no name: a name has 1 to 64 letters, digits, - and _", name), Fix: "take another name"}
}

// launchProblem is a file of snippets or links that cannot be used.
func launchProblem(path string, err error) error {
	if err == nil {
		return nil
	}
	return agent.SettingsProblem(path, err)
}

// linkFile is where the user's links stand.
func (a *App) linkFile() string { return filepath.Join(a.cfg.Home, "links.json") }

func (a *App) links() ([]query.Link, error) {
	list, err := launch.Links(a.linkFile())
	return list, launchProblem(a.linkFile(), err)
}

func (a *App) fillLink(q query.FillLink) (string, error) {
	list, err := a.links()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list, func(l query.Link) bool { return l.Name == q.Name })
	if i < 0 {
		return "", &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("there is no link %q", q.Name), Fix: "see which there are with: dure link list"}
	}
	address, err := launch.FillLink(list[i], q.Values)
	if err != nil {
		return "", &agent.Problem{Code: agent.ProblemUsage, Message: err.Error(), Fix: "write: dure link open " + list[i].Name + " " + strings.ToUpper(strings.Join(list[i].Parameters, " ")), Err: err}
	}
	return address, nil
}

// SetLink writes a link into the user's file, in the place of one of its name.
func (a *App) SetLink(l query.Link) error {
	err := launch.SetLink(a.linkFile(), l)
	if _, broken := launch.Links(a.linkFile()); err != nil && broken == nil {
		return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("the link %q: %v", l.Name, err), Fix: "write it like: dure link add docs 'https://example.com/search?q={query}'", Err: err}
	}
	return launchProblem(a.linkFile(), err)
}

// RemoveLink takes a link out of the user's file.
func (a *App) RemoveLink(name string) error {
	list, err := a.links()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(l query.Link) bool { return l.Name == name }) {
		return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("there is no link %q", name), Fix: "see which there are with: dure link list"}
	}
	return launchProblem(a.linkFile(), launch.RemoveLink(a.linkFile(), name))
}

// findFiles looks for files in a folder.
func (a *App) findFiles(ctx context.Context, q query.FindFiles) ([]string, error) {
	dir := cmp.Or(q.Workdir, a.opts.Workdir)
	ws, err := workspace.New(workspace.Config{Root: dir})
	if err != nil {
		return nil, workspace.Problem(dir, err)
	}
	if ws, err = workspace.New(workspace.Config{Root: dir, Git: finder(ws)("git")}); err != nil {
		return nil, workspace.Problem(dir, err)
	}
	l, err := ws.List(ctx, ws.Root())
	if err != nil {
		return nil, workspace.Problem(dir, err)
	}
	return append([]string{}, mention.Complete(q.Text, l.Paths, q.Limit)...), nil
}

// system says what the program runs on.
func (a *App) system() query.System {
	m := shell.LookAt(a.opts.Workdir)
	return query.System{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Name: m.Name, Version: a.opts.Version, CPUs: runtime.NumCPU(),
		Memory: m.Memory, MemoryFree: m.MemoryFree, DiskFree: m.DiskFree, Workdir: a.opts.Workdir,
		Home: a.cfg.Home, Data: a.cfg.Data, Time: time.Now().Format("2006-01-02 15:04 MST"), Language: a.cfg.Language,
	}
}

// palette lists what can be launched. A file that cannot be read is left out: the lists
// of its kind say what is wrong with it.
func (a *App) palette(q query.ListPalette) ([]query.PaletteEntry, error) {
	all := []query.PaletteEntry{}
	typed, err := a.commands.List(context.Background(), query.ListCommands{Workdir: q.Workdir, Language: a.cfg.Language})
	if err != nil {
		return nil, err
	}
	for _, c := range typed {
		if c.Off != "" {
			continue
		}
		kind := "command"
		if c.Kind == query.CommandSkill {
			kind = "skill"
		}
		all = append(all, query.PaletteEntry{Kind: kind, Name: c.Name, Description: c.Description, Use: strings.TrimSpace("/" + c.Name + " " + c.Hint)})
	}
	all = append(all, a.bundledSkills(all)...)
	for _, name := range bundled(presets.Files, "*.md") {
		d := fields(presets.Files, name+".md")
		all = append(all, query.PaletteEntry{Kind: "agent", Name: name, Description: ownAbout(a.cfg.Language, d["name"], d["description"]), Use: "dure --agent " + name})
	}
	snippets, _ := a.snippets().List()
	for _, s := range snippets {
		if s.Error == "" {
			all = append(all, query.PaletteEntry{Kind: "snippet", Name: s.Name, Description: cmp.Or(s.Description, firstLine(s.Text)), Use: "dure snippet use " + s.Name})
		}
	}
	links, _ := a.links()
	for _, l := range links {
		all = append(all, query.PaletteEntry{Kind: "link", Name: l.Name, Description: cmp.Or(l.Description, l.URL), Use: strings.TrimSpace("dure link open " + l.Name + " " + strings.ToUpper(strings.Join(l.Parameters, " ")))})
	}
	return all, nil
}

// bundledSkills are the skills that come with the program and are not listed, nor is a
// command of their name: what is typed would mean that.
func (a *App) bundledSkills(listed []query.PaletteEntry) (all []query.PaletteEntry) {
	if a.cfg.Extend.NoBundledSkills {
		return nil
	}
	for _, name := range bundled(builtin.Files, "*/SKILL.md") {
		if slices.ContainsFunc(listed, func(e query.PaletteEntry) bool { return e.Name == name && e.Kind != "agent" }) {
			continue
		}
		d := fields(builtin.Files, name+"/SKILL.md")
		all = append(all, query.PaletteEntry{Kind: "skill", Name: name, Description: ownAbout(a.cfg.Language, name, d["description"]), Use: strings.TrimSpace("/" + name + " " + d["argument-hint"])})
	}
	return all
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// bundled are the names of files that come with the program.
func bundled(files fs.FS, pattern string) (names []string) {
	all, _ := fs.Glob(files, pattern) // the pattern is whole
	for _, name := range all {
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "/SKILL")
		names = append(names, name)
	}
	return names
}

// fields are the plain fields of a file that comes with the program.
func fields(files fs.FS, name string) map[string]string {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil
	}
	d, err := frontmatter.Parse(data)
	if err != nil {
		return nil
	}
	all := map[string]string{}
	for _, f := range d.Fields {
		if s, err := f.Text(); err == nil {
			all[f.Key] = s
		} else if m, err := f.Map(); err == nil {
			for k, v := range m {
				all[f.Key+"."+k] = v
			}
		}
	}
	return all
}

// ownAbout is how a skill or an agent that comes with the program is described to people:
// in their language where it has it, else as models read it. Names of the two are apart.
func ownAbout(language, name, about string) string {
	if language != "ko" {
		return about
	}
	return cmp.Or(koreans()[strings.ToLower(name)], about)
}

// koreans are the descriptions in Korean, by names in small letters.
var koreans = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for pattern, files := range map[string]fs.FS{"*/SKILL.md": builtin.Files, "*.md": presets.Files, "kinds/*.md": swarm.Kinds} {
		names, _ := fs.Glob(files, pattern) // the pattern is whole
		for _, name := range names {
			d := fields(files, name)
			all[strings.ToLower(d["name"])] = d["metadata.ko"]
		}
	}
	return all
})

package commands

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/base/near"
)

// Bounds of the files of commands. What is beyond them is left out, and said.
const (
	maxFile     = 256 << 10 // bytes of one file
	maxFiles    = 2_000     // of one place
	maxLook     = 20_000    // entries of one place, of whatever sort
	maxDepth    = 8         // folders in each other
	maxName     = 128       // bytes of a name, with its folders
	maxAbout    = 1_536     // characters of a description
	maxWarnings = 20        // on one file
)

// A Command is a command that stands in a file: its name is that of the file, behind
// those of the folders that it lies in, as in git:tidy.
type Command struct {
	Name        string
	Description string // "" in the file = its first paragraph
	Hint        string
	Names       []string // declared arguments

	Allowed   []string // rules that hold while it is carried out
	Forbidden []string // tools that are not there meanwhile
	Model     string   // "" = the session's
	Effort    string
	Hooks     json.RawMessage // that hold meanwhile
	Fork      bool            // it is carried out in a session of its own
	Agent     string          // ... of that type

	// Background: nobody waits for that session where a person is there to hear of its end.
	Background bool

	Hidden   bool // it may not be typed
	OnlyUser bool // a model may not call it

	Powerless bool // the file is not what was trusted: its rules, hooks, model and commands do not count

	Body  string
	Path  string
	Place frontmatter.Place

	Warnings []frontmatter.Fault
	Broken   *frontmatter.Fault // why it cannot be used; nil = it can
}

// Source returns how the command names where it comes from.
func (c Command) Source() string { return "command:" + c.Name }

// Info is the command as front-ends list it.
func (c Command) Info() query.CommandInfo {
	i := query.CommandInfo{
		Name: c.Name, Description: c.Description, Hint: c.Hint, Session: true,
		Kind: query.CommandCustom, Scope: string(c.Place.Scope), Path: c.Path,
	}
	switch {
	case c.Broken != nil:
		i.Off = c.Broken.Advice()
	case !c.Place.Trusted:
		i.Off = "the folder is not trusted: dure trust"
	case c.Hidden:
		i.Off = "its file says that it is not for users (user-invocable: false)"
	}
	for _, w := range c.Warnings {
		i.Warnings = append(i.Warnings, w.Advice())
	}
	return i
}

// Discover reads the commands of places, in their order: of two of a name the first
// counts. The list is sorted by name.
func Discover(places []frontmatter.Place) []Command {
	byName := map[string]bool{}
	var all []Command
	for _, p := range places {
		for _, c := range in(p) {
			if !byName[c.Name] {
				byName[c.Name] = true
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b Command) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// in reads the commands of one place. A link in what a repository or a plugin brings is
// followed only where it stays in there.
func in(p frontmatter.Place) (all []Command) {
	base := p.Dir
	switch p.Scope {
	case frontmatter.Project: // DIR/.dure/commands
		base = filepath.Dir(filepath.Dir(p.Dir))
	case frontmatter.Plugin:
		base = cmp.Or(p.Root, p.Dir)
	}
	rel, err := filepath.Rel(base, p.Dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil // most places are not there
	}
	defer root.Close()
	dir, err := root.OpenRoot(rel)
	if err != nil {
		return nil
	}
	defer dir.Close()
	anywhere := p.Scope != frontmatter.Project && p.Scope != frontmatter.Plugin
	left := maxLook
	_ = fs.WalkDir(dir.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		left--
		switch {
		case err != nil && name == ".", left < 0:
			return fs.SkipAll
		case err != nil || strings.Count(name, "/") >= maxDepth:
			return skip(e)
		case e.IsDir() || !strings.EqualFold(path.Ext(name), ".md"):
			return nil
		case len(all) >= maxFiles:
			return fs.SkipAll
		}
		data, err := read(dir, p.Dir, name, anywhere)
		if err != nil {
			all = append(all, Command{Name: nameOf(p, name), Path: filepath.Join(p.Dir, filepath.FromSlash(name)), Place: p, Broken: &frontmatter.Fault{Message: why(err)}})
			return nil
		}
		c := Parse(p, name, data)
		if p.Trusted && !p.Has(c.Path, data) {
			c.disarm()
		}
		all = append(all, c)
		return nil
	})
	return all
}

func skip(e fs.DirEntry) error {
	if e != nil && e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// read reads a file of a place. Where links may lead anywhere, they are followed.
func read(dir *os.Root, at, name string, anywhere bool) ([]byte, error) {
	stat, open, path := dir.Stat, dir.Open, filepath.FromSlash(name)
	if anywhere {
		stat, open, path = os.Stat, os.Open, filepath.Join(at, path)
	}
	if err := ordinary(stat(path)); err != nil { // who opens a pipe waits for a writer
		return nil, err
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := ordinary(f.Stat()); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// ordinary says what keeps something from being read.
func ordinary(info fs.FileInfo, err error) error {
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no file")
	case info.Size() > maxFile:
		return fmt.Errorf("it has %d bytes; %d are the most", info.Size(), maxFile)
	}
	return nil
}

// why is an error without the path, which is said already.
func why(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return err.Error()
}

// nameOf returns the name of the command in a file, from its path below a place.
func nameOf(p frontmatter.Place, name string) string {
	n := strings.ReplaceAll(strings.TrimSuffix(name, path.Ext(name)), "/", ":")
	if p.Plugin != "" {
		id, _, _ := strings.Cut(p.Plugin, "@")
		n = id + ":" + n
	}
	return norm.NFC.String(n) // some disks write letters of several parts apart
}

// Parse reads the file of a command; name is its path below the place, with slashes. A
// field that cannot be read as it was meant makes the command one that cannot be used,
// unless nothing depends on it.
func Parse(p frontmatter.Place, name string, data []byte) Command {
	c := Command{Name: nameOf(p, name), Path: filepath.Join(p.Dir, filepath.FromSlash(name)), Place: p}
	if !typable(c.Name) {
		c.Broken = &frontmatter.Fault{Message: "its name cannot be typed", Fix: "name the file with letters, digits, - and _"}
		c.Name = strings.ToValidUTF8(c.Name[:min(len(c.Name), maxName)], "")
	}
	doc, err := frontmatter.Parse(data)
	c.Body, c.Warnings = strings.TrimSpace(doc.Body), doc.Warnings
	if err != nil {
		c.broken(frontmatter.FaultOf(err))
	}
	for _, f := range doc.Fields {
		if err := c.field(f); err != nil {
			c.broken(frontmatter.FaultOf(err))
		}
	}
	if _, said := doc.Get("background"); !said {
		c.Background = c.Fork
	}
	if c.Body == "" && c.Broken == nil {
		c.broken(&frontmatter.Fault{Message: "it says nothing", Fix: "write what the command asks for behind the fields"})
	}
	c.Description = text(cmp.Or(c.Description, paragraph(c.Body)))
	c.Warnings = c.Warnings[:min(len(c.Warnings), maxWarnings)]
	return c
}

func (c *Command) broken(f *frontmatter.Fault) {
	if c.Broken == nil {
		c.Broken = f
	}
}

func (c *Command) warn(f frontmatter.Field, message, fix string) {
	c.Warnings = append(c.Warnings, frontmatter.Fault{Line: f.Value.Line, Column: f.Value.Column, Key: f.Key, Message: f.Key + " " + message, Fix: fix})
}

// disarm takes the powers from a command whose file is not what was trusted. What it
// takes away from others stays.
func (c *Command) disarm() {
	var powers []string
	for name, has := range map[string]bool{
		"allowed-tools": len(c.Allowed) > 0, "hooks": c.Hooks != nil, "model": c.Model != "", "commands in its text": len(frontmatter.Inlines(c.Body)) > 0,
	} {
		if has {
			powers = append(powers, name)
		}
	}
	if len(powers) == 0 {
		return
	}
	slices.Sort(powers)
	c.Powerless, c.Allowed, c.Hooks, c.Model = true, nil, nil, ""
	c.Warnings = append([]frontmatter.Fault{frontmatter.Uncovered(powers...)}, c.Warnings...)
}

// fields are those that count, as they are written.
var fields = []string{
	"description", "argument-hint", "arguments", "allowed-tools", "disallowed-tools", "model", "effort", "agent", "context",
	"user-invocable", "disable-model-invocation", "hooks", "background",
}

// field takes one field over.
func (c *Command) field(f frontmatter.Field) (err error) {
	var yes bool
	switch frontmatter.Plain(f.Key) {
	case "description":
		c.Description, err = f.Text()
	case "argumenthint":
		c.Hint, err = hint(f)
	case "arguments":
		c.Names, err = f.List(strings.Fields)
	case "allowedtools":
		c.Allowed, err = f.List(frontmatter.Words)
	case "disallowedtools":
		c.Forbidden, err = f.List(frontmatter.Words)
	case "model":
		if c.Model, err = f.Text(); c.Model == "inherit" {
			c.Model = ""
		}
	case "effort":
		c.Effort, err = f.Text()
	case "agent":
		c.Agent, err = f.Text()
	case "context":
		var s string
		if s, err = f.Text(); err == nil && s != "fork" && s != "" && s != "main" {
			return f.Fault("write fork, or leave it out", "is neither fork nor main")
		}
		c.Fork = s == "fork"
	case "userinvocable":
		yes, err = f.Bool()
		c.Hidden = err == nil && !yes
	case "disablemodelinvocation":
		c.OnlyUser, err = f.Bool()
	case "name", "paths":
		c.warn(f, "does not count for a command", "leave it out, or make a skill of it")
	case "hooks":
		if c.Hooks, err = f.JSON(); string(c.Hooks) == "null" {
			c.Hooks = nil
		}
	case "background":
		c.Background, err = f.Bool()
	case "whentouse", "shell", "metadata", "license", "compatibility", "version":
	default:
		fix := "leave it out"
		if like := near.Nearest(f.Key, fields); like != "" {
			fix = "did you mean " + like + "?"
		}
		c.warn(f, "is not known here", fix)
	}
	return err
}

// hint is an argument-hint, which people write in brackets: YAML takes those for a list.
func hint(f frontmatter.Field) (string, error) {
	if list, err := f.List(nil); err == nil && len(list) > 1 {
		return "[" + strings.Join(list, ", ") + "]", nil
	} else if s, terr := f.Text(); terr != nil && err == nil && len(list) == 1 {
		return "[" + list[0] + "]", nil
	} else {
		return s, terr
	}
}

// typable reports whether a name can be typed behind a slash, as one word that is no
// path.
func typable(name string) bool {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.HasPrefix(name, ":") || strings.HasSuffix(name, ":") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsGraphic(r) || strings.ContainsRune(`/\"'`+"`", r)
	})
}

// paragraph is the first paragraph of a body, without the signs of a heading.
func paragraph(body string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(body), "\n\n")
	return strings.TrimLeft(first, "# ")
}

// text is a text as one line of at most maxAbout characters.
func text(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= maxAbout {
		return s
	}
	return string([]rune(s)[:maxAbout])
}

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/base/record"
)

// Snippets are those of a folder: NAME.md or NAME.txt, with fields before the text if
// there is a description to give. In the text {{name}} is a variable and
// {{name: value}} one that has a value unless another is given; {{date}}, {{time}},
// {{datetime}}, {{weekday}}, {{year}}, {{workdir}}, {{folder}} and {{user}} are known by
// themselves. \{{ stands for {{.
type Snippets struct {
	Dir     string // it need not exist
	Workdir string
	User    string
	Now     func() time.Time // required
}

// List returns all snippets by name. One that cannot be read says so itself.
func (s Snippets) List() ([]query.Snippet, error) {
	all := []query.Snippet{}
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, fmt.Errorf("listing snippets: %w", err)
	}
	for _, e := range entries {
		name, ok := snippetName(e.Name())
		if !ok || len(all) == maxFiles {
			continue
		}
		if i := slices.IndexFunc(all, func(o query.Snippet) bool { return o.Name == name }); i >= 0 {
			continue // NAME.md comes before NAME.txt
		}
		all = append(all, s.read(name, filepath.Join(s.Dir, e.Name())))
	}
	slices.SortFunc(all, func(a, b query.Snippet) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// snippetName is the name of the snippet that a file has.
func snippetName(file string) (string, bool) {
	ext := filepath.Ext(file)
	name := strings.TrimSuffix(file, ext)
	return name, (ext == ".md" || ext == ".txt") && named(name)
}

func (s Snippets) read(name, path string) query.Snippet {
	sn := query.Snippet{Name: name, Path: path}
	text, err := readFile(path)
	if err != nil {
		sn.Error = err.Error()
		return sn
	}
	d, err := frontmatter.Parse([]byte(text))
	if err != nil {
		sn.Error = err.Error()
		return sn
	}
	if f, ok := d.Get("description"); ok {
		if sn.Description, err = f.Text(); err != nil {
			sn.Error = err.Error()
			return sn
		}
	}
	sn.Text = strings.TrimRight(d.Body, "\n")
	for _, g := range gaps(sn.Text) {
		if _, ok := s.known(g.name); ok || slices.ContainsFunc(sn.Variables, func(v query.Variable) bool { return v.Name == g.name }) {
			continue
		}
		if len(sn.Variables) == maxGaps {
			sn.Error = fmt.Sprintf("it has more than %d variables", maxGaps)
			return sn
		}
		sn.Variables = append(sn.Variables, query.Variable{Name: g.name, Default: g.value, Needed: !g.has})
	}
	return sn
}

// Find returns one snippet; [fs.ErrNotExist] = there is none of that name.
func (s Snippets) Find(name string) (query.Snippet, error) {
	if named(name) {
		for _, ext := range []string{".md", ".txt"} {
			path := filepath.Join(s.Dir, name+ext)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return s.read(name, path), nil
			}
		}
	}
	return query.Snippet{}, fmt.Errorf("finding the snippet %q: %w", name, fs.ErrNotExist)
}

// Fill puts values into a snippet.
func (s Snippets) Fill(sn query.Snippet, values map[string]string) (query.FilledSnippet, error) {
	f := query.FilledSnippet{Name: sn.Name}
	used := map[string]bool{}
	defaults := map[string]string{}
	for _, v := range sn.Variables {
		if !v.Needed {
			defaults[v.Name] = v.Default
		}
	}
	var b strings.Builder
	at := 0
	for _, g := range gaps(sn.Text) {
		b.WriteString(plain(sn.Text[at:g.from]))
		at = g.to
		given, ok := values[g.name]
		used[g.name] = true
		if !ok {
			given, ok = s.known(g.name)
		}
		if !ok {
			given, ok = defaults[g.name]
		}
		if !ok {
			given = sn.Text[g.from:g.to]
			if !slices.Contains(f.Missing, g.name) {
				f.Missing = append(f.Missing, g.name)
			}
		}
		b.WriteString(given)
		if b.Len() > maxFilled {
			return f, fmt.Errorf("filling in the snippet %s: it gets longer than %d bytes", sn.Name, maxFilled)
		}
	}
	b.WriteString(plain(sn.Text[at:]))
	f.Text = b.String()
	for name := range values {
		if !used[name] {
			f.Unused = append(f.Unused, name)
		}
	}
	slices.Sort(f.Unused)
	return f, nil
}

// known is the value of a variable that is known by itself.
func (s Snippets) known(name string) (string, bool) {
	now := s.Now()
	switch name {
	case "date":
		return now.Format("2006-01-02"), true
	case "time":
		return now.Format("15:04"), true
	case "datetime":
		return now.Format("2006-01-02 15:04"), true
	case "weekday":
		return now.Weekday().String(), true
	case "year":
		return now.Format("2006"), true
	case "workdir":
		return s.Workdir, true
	case "folder":
		return filepath.Base(s.Workdir), true
	case "user":
		return s.User, s.User != ""
	}
	return "", false
}

// Template is what a new snippet begins with.
const Template = `---
description: 
---
{{date}} {{name}}: {{text: nothing yet}}
`

// Make makes the file of a new snippet and returns its path; [fs.ErrExist] = there is one.
func (s Snippets) Make(name, text string) (string, error) {
	if !named(name) {
		return "", fmt.Errorf("making the snippet %q: %w", name, ErrName)
	}
	if len(text) > maxFile {
		return "", fmt.Errorf("making the snippet %s: the text has more than %d bytes", name, maxFile)
	}
	if sn, err := s.Find(name); err == nil {
		return sn.Path, fmt.Errorf("making the snippet %s: %w", name, fs.ErrExist)
	}
	if text == "" {
		text = Template
	} else if text = strings.TrimRight(text, "\n") + "\n"; strings.HasPrefix(text, "---") {
		text = "---\n---\n" + text // it is text, and no fields
	}
	path := filepath.Join(s.Dir, name+".md")
	return path, record.Make(path, text, true)
}

// gap is a variable in a text.
type gap struct {
	name, value string
	has         bool // there is a value
	from, to    int
}

// gaps finds the variables of a text. What is no name in braces is text.
func gaps(text string) (all []gap) {
	for at := 0; ; {
		i := strings.Index(text[at:], "{{")
		if i < 0 {
			return all
		}
		from := at + i
		end := strings.Index(text[from:], "}}")
		if end < 0 {
			return all
		}
		at = from + 2
		if from > 0 && text[from-1] == '\\' {
			continue
		}
		name, value, has := strings.Cut(text[from+2:from+end], ":")
		if name = strings.TrimSpace(name); named(name) && !strings.Contains(value, "\n") {
			at = from + end + 2
			all = append(all, gap{name, strings.TrimSpace(value), has, from, at})
		}
	}
}

// plain takes the backslashes away that kept braces from being variables.
func plain(text string) string { return strings.ReplaceAll(text, `\{{`, "{{") }

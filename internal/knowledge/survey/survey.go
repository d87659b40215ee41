// Package survey looks at a project and says what is there: languages, what builds and
// tests it, what other agents are told, how its folders lie.
//
// It reads beginnings of files through a function that it is given, few and small ones,
// and names nothing that is hidden from it. What it finds is data of somebody else: it is
// cut and cleaned to one line each, and of commands it takes names and never what stands
// behind them. It runs nothing, writes nothing and starts no goroutines.
package survey

import (
	"cmp"
	"context"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"dure/agent/query"
	"dure/internal/safety/workspace"
)

// Bounds of a survey.
const (
	maxFiles    = 50_000   // that are looked at by name
	maxReads    = 60       // files that are opened
	maxRead     = 64 << 10 // bytes of one
	maxCommands = 40
	maxListed   = 30  // entries of any other list
	maxTree     = 120 // lines
	maxName     = 120 // characters of a path
	maxSummary  = 300 // characters of what a README says
)

// Config says what is surveyed.
type Config struct {
	Files []string // of the project, relative, with slashes
	More  bool     // there are more

	// Read returns the beginning of a regular file of the project. Required.
	Read func(file string, limit int) ([]byte, error)

	// Hidden reports what is neither to be read nor named. nil = nothing is.
	Hidden func(file string) bool
}

// Report is what was found.
type Report struct{ query.Survey }

// lookTime limits how long a project is looked at.
const lookTime = 10 * time.Second

// Workspace surveys the folder of a workspace. What hidden reports is neither read nor named.
func Workspace(ctx context.Context, ws *workspace.Workspace, hidden func(file string) bool) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	list, err := ws.List(ctx, ws.Root())
	if err != nil {
		return Report{}, workspace.Problem(ws.Root(), err)
	}
	var files []string
	for i, f := range list.Paths {
		if list.Regular[i] { // a link leads to what is listed as itself, or out of here
			files = append(files, f)
		}
	}
	return Look(ctx, Config{
		Files: files, More: list.More, Hidden: hidden,
		Read: func(f string, limit int) ([]byte, error) {
			r, err := ws.Open(filepath.Join(ws.Root(), filepath.FromSlash(f)))
			if err != nil {
				return nil, err
			}
			defer func() { _ = r.Close() }() // only read
			return io.ReadAll(io.LimitReader(r, int64(limit)))
		},
	}), nil
}

// looking is a survey in the making.
type looking struct {
	Config
	ctx   context.Context
	reads int
	has   map[string]bool // files
	r     Report
}

// Look surveys a project. When ctx ends, it returns what it has found by then.
func Look(ctx context.Context, c Config) Report {
	l := &looking{Config: c, ctx: ctx, has: map[string]bool{}}
	var files []string
	for _, f := range c.Files {
		if len(files) == maxFiles {
			l.More = true
			break
		}
		if sound(f) && (c.Hidden == nil || !c.Hidden(f)) {
			files = append(files, f)
			l.has[f] = true
		}
	}
	l.r.Files, l.r.More = len(files), l.More
	l.languages(files)
	l.folders(files)
	// What lies near the top says most.
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	for _, f := range files {
		if ctx.Err() != nil {
			break
		}
		l.file(f)
	}
	l.r.Commands = l.r.Commands[:min(len(l.r.Commands), maxCommands)]
	return l.r
}

// sound reports whether a path can be shown as it is.
func sound(f string) bool {
	return f != "" && len(f) <= maxName && !strings.ContainsFunc(f, func(r rune) bool {
		return !unicode.IsPrint(r) || strings.ContainsRune("`<>|\"", r) || r == unicode.ReplacementChar
	})
}

// read returns the beginning of a file; "" = it cannot be had, or enough was read.
func (l *looking) read(f string) string {
	if l.reads++; l.reads > maxReads || l.ctx.Err() != nil {
		return ""
	}
	data, err := l.Read(f, maxRead)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(data[:min(len(data), maxRead)]), "")
}

func (l *looking) languages(files []string) {
	count := map[string]int{}
	for _, f := range files {
		if name := languageOf[strings.ToLower(path.Ext(f))]; name != "" {
			count[name]++
		}
	}
	for name, n := range count {
		l.r.Languages = append(l.r.Languages, query.SurveyCount{Name: name, Files: n})
	}
	slices.SortFunc(l.r.Languages, func(a, b query.SurveyCount) int { return cmp.Or(b.Files-a.Files, strings.Compare(a.Name, b.Name)) })
	l.r.Languages = append([]query.SurveyCount{}, l.r.Languages[:min(len(l.r.Languages), maxListed)]...)
}

// folders counts files by folder, and draws the upper three levels.
func (l *looking) folders(files []string) {
	const levels = 3
	count, tree := map[string]int{}, map[string]bool{}
	for _, f := range files {
		parts := strings.Split(f, "/")
		if len(parts) > 1 {
			count[parts[0]]++
		}
		for i := 1; i < len(parts) && i <= levels; i++ {
			tree[strings.Join(parts[:i], "/")+"/"] = true
		}
	}
	for name, n := range count {
		l.r.Folders = append(l.r.Folders, query.SurveyCount{Name: name, Files: n})
	}
	slices.SortFunc(l.r.Folders, func(a, b query.SurveyCount) int { return cmp.Or(b.Files-a.Files, strings.Compare(a.Name, b.Name)) })
	l.r.Folders = l.r.Folders[:min(len(l.r.Folders), maxListed)]
	l.r.Tree = slices.Sorted(maps.Keys(tree))
	l.r.Tree = l.r.Tree[:min(len(l.r.Tree), maxTree)]
}

// file takes in what one file says.
func (l *looking) file(f string) {
	dir, base := path.Split(f)
	dir = strings.TrimSuffix(dir, "/")
	low := strings.ToLower(base)
	const deepest = 2 // folders above a manifest
	deep := strings.Count(f, "/")
	switch {
	case instructs(f, low):
		note(&l.r.Instructions, f)
	case ciOf(f) != "":
		note(&l.r.CI, ciOf(f))
		if ciOf(f) == actions {
			l.workflow(f)
		}
	case low == "dockerfile" || low == "containerfile" || strings.HasPrefix(low, "docker-compose.") || low == "compose.yaml" || low == "compose.yml":
		note(&l.r.Containers, f)
	case dir == "" && l.r.Readme == nil && slices.Contains([]string{"readme.md", "readme", "readme.txt", "readme.rst"}, low):
		l.readme(f)
	case deep <= deepest:
		for _, m := range manifests {
			if ok, _ := path.Match(m.name, low); ok {
				note(&l.r.Manifests, f)
				m.take(l, f, dir)
				break
			}
		}
	}
}

// note adds an entry to a list once.
func note(list *[]string, s string) {
	if !slices.Contains(*list, s) && len(*list) < maxListed {
		*list = append(*list, s)
	}
}

// command adds a command once.
func (l *looking) command(kind, run, dir, from string) {
	c := query.SurveyCommand{Kind: kind, Run: run, Dir: dir, From: from}
	if !slices.ContainsFunc(l.r.Commands, func(have query.SurveyCommand) bool { return have.Run == run && have.Dir == dir }) {
		l.r.Commands = append(l.r.Commands, c)
	}
}

// readme takes the first heading, and the first paragraph behind it.
func (l *looking) readme(f string) {
	r := &query.SurveyReadme{Path: f}
	l.r.Readme = r
	var words []string
	for line := range strings.Lines(l.read(f)) {
		line = strings.TrimSpace(line)
		switch {
		case r.Title == "" && strings.HasPrefix(line, "# "):
			r.Title = plain(line[2:], maxName)
		case strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "[!") || strings.HasPrefix(line, "!["):
			if len(words) > 0 {
				line = ""
			} else {
				continue
			}
		case line != "":
			words = append(words, line)
		}
		if line == "" && len(words) > 0 {
			break
		}
	}
	r.Summary = plain(strings.Join(words, " "), maxSummary)
}

// plain is a text on one line, without what does not show, cut to most characters.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == '`' || r == '<' || r == '>':
			return -1
		}
		return r
	}, s)
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

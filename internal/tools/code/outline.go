package code

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed outline.md
var outlineText string

// Limits of an outline.
const (
	outlineLimit  = time.Minute
	outlineBudget = 12_000  // characters of a result
	outlineBody   = 11_500  // of it for symbols
	outlineDepth  = 2       // levels, unless the call says otherwise
	maxDepth      = 6       // levels
	maxSymbols    = 2_000   // of one call
	maxFiles      = 300     // of a folder
	maxSource     = 2 << 20 // bytes of a file
	maxHeading    = 140     // bytes of what is shown of a declaration
)

var errLarge = errors.New("the file is too large")

// symbol is something that a file declares.
type symbol struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Line  int    `json:"line"` // from 1
	End   int    `json:"end"`  // the last line of it
	Level int    `json:"level"`
	text  string // the declaration as it is written, on one line
}

// fileOutline is what one file declares.
type fileOutline struct {
	Path     string   `json:"path"`
	Language string   `json:"language"`
	Lines    int      `json:"lines"`
	Symbols  []symbol `json:"symbols"`
	Exact    bool     `json:"exact"`
	note     string
}

type outlineInput struct {
	Path  string    `json:"path"`
	Depth kit.Whole `json:"depth"`
}

func (c *Code) outline() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "code__outline", Description: kit.Describe(outlineText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string"},` +
				`"depth":{"type":"integer","minimum":1,"description":"levels, default 2"}},` +
				`"required":["path"],"additionalProperties":false}`),
			Class: agent.Read, Group: "code", Risk: agent.RiskLow, Limit: outlineLimit, Budget: outlineBudget,
			Aliases: map[string]string{"file_path": "path", "file": "path", "directory": "path"},
		},
		Touches: func(tc agent.ToolContext, call agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[outlineInput](call)
			if err != nil {
				return agent.Effects{}, err
			}
			abs, err := c.pin(tc, call, in.Path)
			return agent.Effects{Reads: []string{abs}}, err
		},
		Does: c.runOutline,
	}
}

func (c *Code) runOutline(ctx context.Context, tc agent.ToolContext, call agent.Call) (agent.Result, error) {
	in, err := kit.Decode[outlineInput](call)
	if err != nil {
		return agent.Result{}, err
	}
	abs, resolved, err := c.arrive(tc, call, in.Path)
	if err != nil {
		return agent.Result{}, err
	}
	info, err := c.Workspace.Stat(resolved)
	if err != nil {
		return agent.Result{}, explain(abs, err)
	}
	depth := outlineDepth
	if in.Depth > 0 {
		depth = min(int(in.Depth), maxDepth)
	}
	var files []fileOutline
	var notes []string
	if info.IsDir() {
		files, notes, err = c.folder(ctx, tc, abs, resolved)
	} else {
		var f fileOutline
		f, err = c.file(tc, abs, resolved)
		files = []fileOutline{f}
	}
	if err != nil {
		return agent.Result{}, err
	}
	return render(files, notes, depth, info.IsDir()), nil
}

// file outlines a file that was named.
func (c *Code) file(tc agent.ToolContext, abs, resolved string) (fileOutline, error) {
	l := languageOf(abs)
	if l == nil {
		return fileOutline{}, kit.Refuse(agent.ErrInput, "there is no outline for "+filepath.Base(abs)+": its language is not known", "Read the file, or search it with grep.")
	}
	file, err := c.Workspace.Open(resolved)
	if err != nil {
		return fileOutline{}, explain(abs, err)
	}
	defer file.Close()
	text, err := source(file)
	if err != nil {
		return fileOutline{}, explain(abs, err)
	}
	return l.outline(kit.Relative(abs, tc.Workdir), text), nil
}

// source reads the text of a file.
func source(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxSource {
		return "", errLarge
	}
	t, err := workspace.DecodeText(data)
	return t.Content, err
}

// folder outlines the sources below a folder. What cannot be read is left out,
// and so are files of data: those have to be named.
func (c *Code) folder(ctx context.Context, tc agent.ToolContext, abs, resolved string) ([]fileOutline, []string, error) {
	list, err := c.Workspace.List(ctx, resolved)
	if err != nil {
		return nil, nil, explain(abs, err)
	}
	root, err := c.Workspace.OpenRoot(resolved)
	if err != nil {
		return nil, nil, explain(abs, err)
	}
	defer func() { _ = root.Close() }() // only read
	var files []fileOutline
	symbols, more := 0, 0
	for _, p := range list.Paths {
		l := languageOf(p)
		if l == nil || l.data {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if len(files) == maxFiles || symbols >= maxSymbols {
			more++
			continue
		}
		text, ok := below(root, p)
		if !ok {
			continue
		}
		f := l.outline(kit.Relative(filepath.Join(abs, filepath.FromSlash(p)), tc.Workdir), text)
		symbols += len(f.Symbols)
		files = append(files, f)
	}
	var notes []string
	if more > 0 {
		notes = append(notes, fmt.Sprintf("[%d more files are not outlined; name a folder below]", more))
	}
	if len(files) == 0 {
		notes = append(notes, "[no file of a known programming language]")
	}
	return files, notes, nil
}

// below reads a file below a folder; false = it is no text to outline.
func below(root *os.Root, p string) (string, bool) {
	p = filepath.FromSlash(p)
	info, err := root.Lstat(p)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
		return "", false
	}
	file, err := workspace.OpenRegular(root, p)
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }() // only read
	text, err := source(file)
	return text, err == nil
}

// outline reads what a text declares.
func (l *language) outline(name, text string) fileOutline {
	f := fileOutline{Path: name, Language: l.name, Lines: strings.Count(text, "\n"), Symbols: []symbol{}, Exact: l.exact}
	if text != "" && !strings.HasSuffix(text, "\n") {
		f.Lines++
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	list, note := l.read(l, text)
	if len(list) > maxSymbols {
		list, note = list[:maxSymbols], fmt.Sprintf("only the first %d symbols", maxSymbols)
	}
	for i := range list { // the end of what is broken may lie behind the file
		list[i].End = max(list[i].Line, min(list[i].End, f.Lines))
	}
	f.Symbols, f.note = append(f.Symbols, list...), note
	return f
}

// render writes outlines as deep as asked for, or, for a folder, as the budget
// allows.
func render(files []fileOutline, notes []string, depth int, many bool) agent.Result {
	text, left := write(files, depth)
	for many && left > 0 && depth > 1 {
		depth--
		text, left = write(files, depth)
	}
	if left > 0 {
		unit := "symbols"
		if many {
			unit = "files"
		}
		notes = append(notes, fmt.Sprintf("[%d more %s; name a smaller part, or a smaller depth]", left, unit))
	}
	for i := range files {
		files[i].Symbols = upTo(files[i].Symbols, depth)
	}
	r := agent.OK(strings.Join(append([]string{strings.TrimRight(text, "\n")}, notes...), "\n"))
	if len(files) == 0 {
		r.Text = strings.Join(notes, "\n")
	}
	r.Output = kit.Structured(struct {
		Depth int           `json:"depth"`
		Files []fileOutline `json:"files"`
	}{depth, append([]fileOutline{}, files...)})
	return r
}

func upTo(list []symbol, depth int) []symbol {
	kept := []symbol{}
	for _, s := range list {
		if s.Level <= depth {
			kept = append(kept, s)
		}
	}
	return kept
}

// write returns the outlines, and how much did not fit: symbols of a single
// file, or files.
func write(files []fileOutline, depth int) (string, int) {
	var b strings.Builder
	size := 0
	for i, f := range files {
		var part strings.Builder
		title := fmt.Sprintf("%s (%s, %d lines", kit.Name(f.Path), f.Language, f.Lines)
		if f.Lines == 1 {
			title = strings.TrimSuffix(title, "s")
		}
		if !f.Exact {
			title += ", best effort"
		}
		if f.note != "" {
			title += "; " + f.note
		}
		part.WriteString(title + ")\n")
		list := upTo(f.Symbols, depth)
		for j, s := range list {
			line := fmt.Sprintf("%d-%d\t%s%s\n", s.Line, s.End, strings.Repeat("  ", s.Level-1), s.text)
			if len(files) == 1 && part.Len()+len(line) > outlineBody {
				return part.String(), len(list) - j
			}
			part.WriteString(line)
		}
		if n := utf8.RuneCountInString(part.String()); i > 0 && size+n > outlineBody {
			return b.String(), len(files) - i
		}
		size += utf8.RuneCountInString(part.String())
		b.WriteString(part.String())
	}
	return b.String(), 0
}

// heading makes one line of at most maxHeading bytes of a declaration.
func heading(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	s = strings.TrimSpace(strings.TrimRight(s, "{:= "))
	return kit.Cut(s, maxHeading)
}

// languageOf returns the language of a file by its name; nil = it is not known.
func languageOf(name string) *language {
	name = strings.ToLower(path.Base(filepath.ToSlash(name)))
	byName := languages()
	if l := byName[name]; l != nil {
		return l
	}
	return byName[path.Ext(name)]
}

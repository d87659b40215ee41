package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed grep.md
var grepText string

// Limits of one search.
const (
	grepBudget  = 8_000 // characters
	grepBody    = 7_600 // of it for matches
	grepLimit   = 250   // lines of output, unless the call says otherwise
	grepMost    = 2_000 // lines of output at most
	grepContext = 50    // lines around a match
	grepBatch   = 64    // files that are searched before their output is looked at, at first
	grepBatches = 8_192 // and at most
)

// The output modes.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

type grepInput struct {
	Pattern   string     `json:"pattern"`
	Path      string     `json:"path"`
	Glob      string     `json:"glob"`
	Type      string     `json:"type"`
	Mode      string     `json:"output_mode"`
	After     kit.Whole  `json:"-A"`
	Before    kit.Whole  `json:"-B"`
	Around    kit.Whole  `json:"-C"`
	Context   kit.Whole  `json:"context"`
	Numbers   *bool      `json:"-n"`
	Fold      bool       `json:"-i"`
	Parts     bool       `json:"-o"`
	Limit     kit.Whole  `json:"-"`
	Head      *kit.Whole `json:"head_limit"`
	Offset    kit.Whole  `json:"offset"`
	Multiline bool       `json:"multiline"`
}

// fileTypes are the patterns of the names that a type stands for.
var fileTypes = map[string]string{
	"c": "*.{c,h}", "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h}", "cs": "*.cs", "css": "*.{css,scss,less}", "go": "*.go", "html": "*.{html,htm}",
	"java": "*.java", "js": "*.{js,jsx,mjs,cjs}", "json": "*.{json,jsonl}", "kotlin": "*.{kt,kts}", "md": "*.{md,markdown,mdx}", "php": "*.php",
	"py": "*.{py,pyi}", "rb": "*.rb", "rust": "*.rs", "sh": "*.{sh,bash,zsh}", "sql": "*.sql", "swift": "*.swift", "toml": "*.toml",
	"ts": "*.{ts,tsx,mts,cts}", "txt": "*.txt", "xml": "*.xml", "yaml": "*.{yaml,yml}",
}

func (f *files) grep() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name:        "file-system__grep",
			Description: kit.Describe(grepText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"pattern":{"type":"string"},"path":{"type":"string"},` +
				`"glob":{"type":"string"},"type":{"type":"string","description":"go, py, ts, ..."},` +
				`"output_mode":{"type":"string","enum":["content","files_with_matches","count"]},` +
				`"-A":{"type":"integer"},"-B":{"type":"integer"},"-C":{"type":"integer"},"context":{"type":"integer"},` +
				`"-n":{"type":"boolean"},"-i":{"type":"boolean"},"-o":{"type":"boolean","description":"matching parts only"},` +
				`"head_limit":{"type":"integer"},"offset":{"type":"integer"},"multiline":{"type":"boolean"}},` +
				`"required":["pattern"],"additionalProperties":false}`),
			Class: agent.Read, Group: "files", Risk: agent.RiskLow, Limit: fileLimit, Budget: grepBudget,
			Aliases: merged(folderNames, map[string]string{"include": "glob", "regex": "pattern", "query": "pattern", "ignore_case": "-i"}),
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[grepInput](c)
			if err != nil || strings.HasPrefix(in.Path, handlePrefix) {
				return agent.Effects{}, err
			}
			return f.planFolder(tc, c, in.Path)
		},
		Does: f.runGrep,
	}
}

// check completes the input.
func (in *grepInput) check() error {
	switch in.Mode {
	case "":
		in.Mode = modeFiles
	case modeFiles, modeContent, modeCount:
	default:
		return kit.Refuse(agent.ErrInput, "output_mode is "+kit.Quote(in.Mode, 40), "Use content, files_with_matches or count.")
	}
	if in.Type != "" {
		if _, ok := fileTypes[in.Type]; !ok {
			return kit.Refuse(agent.ErrInput, "type "+kit.Quote(in.Type, 40)+" is not known", "Use glob, or one of "+strings.Join(slices.Sorted(maps.Keys(fileTypes)), ", ")+".")
		}
	}
	globs := in.globs()
	if len(globs) > maxPatterns {
		return kit.Refuse(agent.ErrInput, fmt.Sprintf("glob has %d patterns, more than %d", len(globs), maxPatterns), `Use a pattern such as "*.{ts,tsx}".`)
	}
	for _, p := range globs {
		if !validGlob(strings.TrimPrefix(p, "!")) {
			return kit.Refuse(agent.ErrInput, "glob is not valid: "+kit.Quote(p, 80), `Use a pattern such as "*.{ts,tsx}".`)
		}
	}
	around := max(in.Around, in.Context)
	in.Before = min(max(in.Before, around, 0), grepContext)
	in.After = min(max(in.After, around, 0), grepContext)
	switch {
	case in.Head == nil || *in.Head < 0:
		in.Limit = grepLimit
	case *in.Head == 0: // as much as there may be
		in.Limit = grepMost
	default:
		in.Limit = min(*in.Head, grepMost)
	}
	in.Offset = max(in.Offset, 0)
	if in.Path == "" {
		in.Path = "."
	}
	return nil
}

// globs splits several patterns: at spaces, and at commas outside braces.
func (in *grepInput) globs() []string {
	depth := 0
	return strings.FieldsFunc(in.Glob, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return r == ' ' || r == ',' && depth <= 0
	})
}

// wants reports whether a file, by its path below the folder, is to be searched.
func (in *grepInput) wants(p string) bool {
	if t := fileTypes[in.Type]; t != "" && !doublestar.MatchUnvalidated(t, path.Base(p)) {
		return false
	}
	any, want := false, false
	for _, g := range in.globs() {
		g, not := strings.CutPrefix(g, "!")
		name := p
		if !strings.Contains(g, "/") {
			name = path.Base(p)
		}
		hit := doublestar.MatchUnvalidated(strings.TrimPrefix(g, "/"), name)
		if not && hit {
			return false
		}
		any, want = any || !not, want || !not && hit
	}
	return want || !any
}

func (f *files) runGrep(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := kit.Decode[grepInput](c)
	if err != nil {
		return agent.Result{}, err
	}
	if err := in.check(); err != nil {
		return agent.Result{}, err
	}
	m, err := newMatcher(in.Pattern, in.Fold, in.Multiline)
	if err != nil {
		return agent.Result{}, err
	}
	g := &grepping{in: in, m: m}
	if file, handle, err := f.spilled(in.Path); err != nil {
		return agent.Result{}, err
	} else if handle {
		if err := g.one(ctx, f.Workspace, file, in.Path); err != nil {
			return agent.Result{}, f.explain(tc, in.Path, err)
		}
		return g.result(), nil
	}
	name, resolved, err := f.arrive(tc, c, in.Path)
	if err != nil {
		return agent.Result{}, err
	}
	info, err := f.FS.Stat(resolved)
	if err != nil {
		return agent.Result{}, f.explain(tc, name, err)
	}
	if info.IsDir() {
		g.show = func(p string) string { return kit.Relative(filepath.Join(name, filepath.FromSlash(p)), tc.Workdir) }
		err = g.all(ctx, f.Workspace, resolved)
	} else {
		err = g.one(ctx, f.FS, resolved, kit.Relative(name, tc.Workdir))
	}
	if err != nil {
		return agent.Result{}, f.explain(tc, name, err)
	}
	return g.result(), nil
}

// grepping is one search in progress.
type grepping struct {
	in     grepInput
	m      *matcher
	show   func(string) string // path below the folder to the name that is shown
	single bool                // one file was named: its name is not repeated

	names   []string // files with matches, shown
	lines   []string // output
	total   int      // lines of output so far, those before the offset included
	matches int
	size    int // characters of lines
	skipped map[string]int
	done    bool // enough has been found
}

func (g *grepping) searcher() *searcher {
	return &searcher{
		m: g.m, before: int(g.in.Before), after: int(g.in.After), parts: g.in.Parts, multiline: g.in.Multiline,
		lines: g.in.Mode == modeContent, one: g.in.Mode == modeFiles, most: int(g.in.Offset + g.in.Limit),
	}
}

// one searches a file that was named.
func (g *grepping) one(ctx context.Context, fsys workspace.FS, file, name string) error {
	g.single = true
	g.show = func(string) string { return name }
	opened, err := fsys.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	r, err := g.searcher().search(ctx, opened, true)
	if err != nil {
		return err
	}
	g.take("", r)
	return nil
}

// all searches the files below a folder, in the order of their names: a batch
// at a time, by as many workers as there are processors, which end with the
// batch. Batches grow, so that a search that is soon over stays small.
func (g *grepping) all(ctx context.Context, w *workspace.Workspace, dir string) error {
	list, err := w.List(ctx, dir)
	if err != nil {
		return err
	}
	top, err := w.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer top.Close()
	var files []string
	for i, p := range list.Paths {
		if list.Regular[i] && g.in.wants(p) {
			files = append(files, p)
		}
	}
	workers := make([]*searcher, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i] = g.searcher()
		workers[i].trail = workspace.NewTrail(top)
		defer workers[i].trail.Close()
	}
	size := grepBatch
	for len(files) > 0 && !g.done {
		batch := files[:min(len(files), size)]
		files = files[len(batch):]
		size = min(4*size, grepBatches)
		results, err := searchAll(ctx, workers, batch)
		if err != nil {
			return err
		}
		for j, r := range results {
			g.take(batch[j], r)
		}
	}
	if list.More {
		g.skip("beyond the first " + fmt.Sprint(workspace.MaxFiles))
	}
	return nil
}

// claim is how many files a worker takes at a time: most often of one folder.
const claim = 8

// searchAll searches files, each few by the worker that is free first.
func searchAll(ctx context.Context, workers []*searcher, batch []string) ([]found, error) {
	results := make([]found, len(batch))
	broken := make([]any, len(workers))
	var next atomic.Int64
	var wg sync.WaitGroup
	for i, s := range workers {
		wg.Go(func() {
			defer func() { broken[i] = recover() }()
			for ctx.Err() == nil {
				end := int(next.Add(claim))
				if end-claim >= len(batch) {
					return
				}
				for j := end - claim; j < min(end, len(batch)) && ctx.Err() == nil; j++ {
					results[j] = searchBelow(ctx, s, batch[j])
				}
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(broken, func(v any) bool { return v != nil }); i >= 0 {
		panic(broken[i]) // where the caller can catch it
	}
	return results, ctx.Err()
}

// searchBelow searches one file below a folder. What cannot be opened is left
// out: what is gone or not permitted. A link that has come into its place since
// it was listed is not followed.
func searchBelow(ctx context.Context, s *searcher, p string) found {
	dir, base := path.Split(p)
	folder, err := s.trail.To(strings.TrimSuffix(dir, "/"))
	if err != nil {
		return found{}
	}
	if s.raw == nil {
		s.raw = make([]byte, searchWindow)
	}
	n, large, err := folder.Read(base, s.raw)
	var r found
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}
	case err != nil:
	case large == nil:
		r, err = s.small(ctx, s.raw[:n])
	default:
		r, err = s.search(ctx, large, false)
		large.Close()
	}
	if err != nil {
		return found{skipped: "unreadable"}
	}
	return r
}

func (g *grepping) skip(why string) {
	if g.skipped == nil {
		g.skipped = map[string]int{}
	}
	g.skipped[why]++
}

// take adds what was found in one file to the output.
func (g *grepping) take(p string, r found) {
	if r.skipped != "" {
		g.skip(r.skipped)
	}
	if r.matches == 0 || g.done {
		return
	}
	name := g.show(p)
	g.matches += r.matches
	switch g.in.Mode {
	case modeFiles:
		if g.add(kit.Name(name)) {
			g.names = append(g.names, name)
		}
	case modeCount:
		if g.add(fmt.Sprintf("%s:%d", kit.Name(name), r.matches)) {
			g.names = append(g.names, name)
		}
	case modeContent:
		added, plain := false, kit.Name(name)
		for i, l := range r.lines {
			if l.gap || i == 0 && len(g.lines) > 0 && g.in.Before+g.in.After > 0 {
				g.add("--")
			}
			added = g.add(g.line(plain, l)) || added
		}
		if added {
			g.names = append(g.names, name)
		}
		g.done = g.done || r.more
	}
}

// line is a line of output in the manner of grep.
func (g *grepping) line(name string, l outLine) string {
	mark := ":"
	if !l.match {
		mark = "-"
	}
	text := l.text
	if g.in.Numbers == nil || *g.in.Numbers {
		text = fmt.Sprintf("%d%s%s", l.number, mark, text)
	}
	if !g.single {
		text = name + mark + text
	}
	return text
}

// add adds a line of output unless it is before the offset or behind the limit.
func (g *grepping) add(line string) bool {
	if g.done {
		return false
	}
	chars := len([]rune(line)) + 1
	switch {
	case g.total < int(g.in.Offset):
		g.total++
		return false
	case len(g.lines) == int(g.in.Limit), len(g.lines) > 0 && g.size+chars > grepBody:
		g.done = true
		return false
	}
	g.total++
	g.size += chars
	g.lines = append(g.lines, line)
	return true
}

func (g *grepping) result() agent.Result {
	var notes []string
	switch {
	case len(g.lines) == 0 && g.in.Offset > 0 && g.total > 0:
		notes = append(notes, fmt.Sprintf("[no more results: there are %d]", g.total))
	case len(g.lines) == 0:
		notes = append(notes, "[no matches]")
	case g.done:
		notes = append(notes, fmt.Sprintf("[there is more; continue with offset %d, or narrow the search]", int(g.in.Offset)+len(g.lines)))
	}
	if n := g.skipped[skippedBinary]; n > 0 && g.single {
		notes = append(notes, "[the file is binary and was not searched]")
	} else if n > 0 {
		notes = append(notes, fmt.Sprintf("[binary and not searched: %s]", plural(n, "file")))
	}
	if n := g.skipped[skippedLarge]; n > 0 {
		most := searchFile
		if g.in.Multiline {
			most = searchWhole
		}
		notes = append(notes, fmt.Sprintf("[larger than %d MiB and not searched: %s; name a file in path to search it, without multiline]", most>>20, plural(n, "file")))
	}
	for _, why := range slices.Sorted(maps.Keys(g.skipped)) {
		if why != skippedBinary && why != skippedLarge {
			notes = append(notes, fmt.Sprintf("[%s and not searched: %s]", why, plural(g.skipped[why], "file")))
		}
	}
	r := agent.OK(strings.Join(append(slices.Clone(g.lines), notes...), "\n"))
	r.Output = g.output()
	return r
}

// output is the answer for hooks and hosts.
func (g *grepping) output() json.RawMessage {
	out := struct {
		Mode     string   `json:"mode"`
		NumFiles int      `json:"numFiles"`
		Names    []string `json:"filenames"`
		Content  string   `json:"content,omitempty"`
		Lines    int      `json:"numLines,omitempty"`
		Matches  int      `json:"numMatches,omitempty"`
		Limit    int      `json:"appliedLimit,omitempty"`
		Offset   int      `json:"appliedOffset,omitempty"`
	}{Mode: g.in.Mode, NumFiles: len(g.names), Names: append([]string{}, g.names...), Offset: int(g.in.Offset)}
	if g.done {
		out.Limit = len(g.lines)
	}
	if g.in.Mode != modeFiles {
		out.Content, out.Matches = strings.Join(g.lines, "\n"), g.matches
	}
	if g.in.Mode == modeContent {
		out.Lines = len(g.lines)
	}
	return kit.Structured(out)
}

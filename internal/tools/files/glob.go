package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed glob.md
var globText string

// globMost is how many files one call shows.
const globMost = 100

// What a pattern may hold, and how many patterns a call may have. A comparison
// tries every way through the braces, so that their alternatives multiply.
const (
	maxPattern  = 1_000 // bytes
	maxBraces   = 8
	maxWays     = 1_000
	maxPatterns = 100
)

// validGlob reports whether a pattern can be used.
func validGlob(p string) bool {
	return p != "" && len(p) <= maxPattern && strings.Count(p, "{") <= maxBraces && fewWays(p) &&
		!strings.ContainsRune(p, 0) && doublestar.ValidatePattern(p)
}

// fewWays reports whether there are at most maxWays through the braces of a
// pattern. Each comma counts for the brace that was opened last, whether or not
// that is closed: that is too many at times, and never too few.
func fewWays(p string) bool {
	ways := 1
	for _, part := range strings.Split(p, "{")[1:] {
		if ways *= 1 + strings.Count(part, ","); ways > maxWays {
			return false
		}
	}
	return true
}

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (f *files) glob() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name:        "file-system__glob",
			Description: kit.Describe(globText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"pattern":{"type":"string"},"path":{"type":"string","description":"folder"}},` +
				`"required":["pattern"],"additionalProperties":false}`),
			Class: agent.Read, Group: "files", Risk: agent.RiskLow, Limit: fileLimit,
			Aliases: merged(folderNames, map[string]string{"glob": "pattern"}),
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[globInput](c)
			if err != nil {
				return agent.Effects{}, err
			}
			folder, _, err := in.split()
			if err != nil {
				return agent.Effects{}, err
			}
			return f.planFolder(tc, c, folder)
		},
		Does: f.runGlob,
	}
}

// split returns the folder that is searched and the pattern below it: the plain
// folders that a pattern begins with belong to the folder.
func (in globInput) split() (folder, pattern string, err error) {
	pattern = filepath.ToSlash(in.Pattern)
	if !validGlob(pattern) {
		return "", "", kit.Refuse(agent.ErrInput, "the pattern is empty, too long or not valid: "+kit.Quote(pattern, 80), `Use a glob such as "**/*.go".`)
	}
	base, rest := doublestar.SplitPattern(pattern)
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return "", "", kit.Refuse(agent.ErrInput, `the pattern has ".." behind a wildcard`, "Name the folder to search in path.")
	}
	folder = in.Path
	if folder == "" {
		folder = "."
	}
	switch {
	case path.IsAbs(base) || filepath.IsAbs(base) || strings.HasPrefix(base, "~"):
		folder = base
	case base != ".":
		folder = filepath.Join(folder, filepath.FromSlash(base))
	case !strings.Contains(pattern, "/"):
		rest = "**/" + rest
	}
	return folder, rest, nil
}

func (f *files) runGlob(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	start := time.Now()
	in, err := kit.Decode[globInput](c)
	if err != nil {
		return agent.Result{}, err
	}
	folder, pattern, err := in.split()
	if err != nil {
		return agent.Result{}, err
	}
	name, resolved, err := f.folder(tc, c, folder)
	if err != nil {
		return agent.Result{}, err
	}
	found, err := f.Workspace.List(ctx, resolved)
	if err != nil {
		return agent.Result{}, f.explain(tc, name, err)
	}
	matches, err := f.newest(ctx, resolved, found.Paths, pattern)
	if err != nil {
		return agent.Result{}, f.explain(tc, name, err)
	}
	most := min(len(matches), globMost)
	out := struct {
		Millis    int64    `json:"durationMs"`
		NumFiles  int      `json:"numFiles"`
		Filenames []string `json:"filenames"`
		Truncated bool     `json:"truncated"`
	}{time.Since(start).Milliseconds(), most, make([]string, 0, most), len(matches) > globMost || found.More}
	var text strings.Builder
	for _, m := range matches[:most] {
		abs := filepath.Join(name, filepath.FromSlash(m))
		out.Filenames = append(out.Filenames, abs)
		text.WriteString(shown(tc, abs) + "\n")
	}
	switch {
	case most == 0:
		text.WriteString("[no files match]")
	case out.Truncated:
		fmt.Fprintf(&text, "[the newest %d of %d; use a narrower pattern for others]", most, len(matches))
	}
	r := agent.OK(strings.TrimSuffix(text.String(), "\n"))
	r.Output = kit.Structured(out)
	return r, nil
}

// newest returns the paths that match, the last modified first, equal ones by name.
func (f *files) newest(ctx context.Context, dir string, paths []string, pattern string) ([]string, error) {
	root, err := f.Workspace.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	type match struct {
		path string
		at   time.Time
	}
	var matches []match
	for i, p := range paths {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !doublestar.MatchUnvalidated(pattern, p) {
			continue
		}
		info, err := root.Lstat(filepath.FromSlash(p))
		if err != nil || info.Mode()&fs.ModeDir != 0 {
			continue // gone
		}
		matches = append(matches, match{p, info.ModTime()})
	}
	slices.SortStableFunc(matches, func(a, b match) int { return b.at.Compare(a.at) })
	names := make([]string, len(matches))
	for i, m := range matches {
		names[i] = m.path
	}
	return names, nil
}

package files

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed list.md
var listText string

// Limits of a tree.
const (
	listBudget = 4_000 // characters
	listBody   = 3_800
	listDepth  = 10
)

type listInput struct {
	Path   string    `json:"path"`
	Ignore []string  `json:"ignore"`
	Depth  kit.Whole `json:"depth"`
}

func (f *files) list() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name:        "file-system__list",
			Description: kit.Describe(listText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"path":{"type":"string"},"ignore":{"type":"array","items":{"type":"string"},"description":"globs"},` +
				`"depth":{"type":"integer","minimum":1}},"additionalProperties":false}`),
			Class: agent.Read, Group: "files", Risk: agent.RiskLow, Limit: fileLimit, Budget: listBudget,
			Aliases: folderNames,
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[listInput](c)
			if err != nil {
				return agent.Effects{}, err
			}
			return f.planFolder(tc, c, in.Path)
		},
		Does: f.runList,
	}
}

// folderNames are what models call path.
var folderNames = map[string]string{"directory": "path", "dir": "path", "file_path": "path"}

// planFolder says that a call reads a folder, the working directory if it names none.
func (f *files) planFolder(tc agent.ToolContext, c agent.Call, folder string) (agent.Effects, error) {
	if folder == "" {
		folder = "."
	}
	abs, err := f.pin(tc, c, folder)
	return agent.Effects{Reads: []string{abs}}, err
}

// folder is [files.arrive] for an existing folder.
func (f *files) folder(tc agent.ToolContext, c agent.Call, path string) (name, resolved string, err error) {
	if name, resolved, err = f.arrive(tc, c, path); err != nil {
		return "", "", err
	}
	info, err := f.Workspace.Stat(resolved)
	if err != nil {
		return "", "", f.explain(tc, name, err)
	}
	if !info.IsDir() {
		return "", "", kit.Refuse(ErrFileType, name+" is not a folder", "Name a folder; the read tool shows files.")
	}
	return name, resolved, nil
}

func (f *files) runList(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := kit.Decode[listInput](c)
	if err != nil {
		return agent.Result{}, err
	}
	if in.Path == "" {
		in.Path = "."
	}
	if len(in.Ignore) > maxPatterns {
		return agent.Result{}, kit.Refuse(agent.ErrInput, fmt.Sprintf("ignore has %d patterns, more than %d", len(in.Ignore), maxPatterns), "Use fewer, such as *.log or dist/**.")
	}
	for _, p := range in.Ignore {
		if !validGlob(p) {
			return agent.Result{}, kit.Refuse(agent.ErrInput, "ignore has a pattern that is not valid: "+kit.Quote(p, 80), "Use globs such as *.log or dist/**.")
		}
	}
	name, resolved, err := f.folder(tc, c, in.Path)
	if err != nil {
		return agent.Result{}, err
	}
	found, err := f.Workspace.List(ctx, resolved)
	if err != nil {
		return agent.Result{}, f.explain(tc, name, err)
	}
	root := &node{folder: true}
	for _, p := range found.Paths {
		if !ignored(p, in.Ignore) {
			root.put(p)
		}
	}
	f.addUnlisted(root, resolved, in.Ignore)
	text, depth := root.fit(int(in.Depth))
	if text == "" {
		text = "[the folder is empty]\n"
	}
	text = strings.TrimSuffix(shown(tc, name), "/") + "/\n" + text
	if found.More {
		text += "[the folder has more files than can be listed]\n"
	}
	r := agent.OK(strings.TrimSuffix(text, "\n"))
	r.Output = kit.Structured(struct {
		Path     string `json:"path"`
		NumFiles int    `json:"numFiles"`
		Depth    int    `json:"depth"`
	}{name, root.files, depth})
	return r, nil
}

// addUnlisted adds what the folder itself holds and the listing left out: empty
// and ignored entries, which are not looked into.
func (f *files) addUnlisted(root *node, dir string, ignore []string) {
	entries, err := f.Workspace.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		_, listed := root.below[e.Name()]
		if listed || e.Name() == ".git" || workspace.Leftover(e.Name()) || ignored(e.Name(), ignore) {
			continue
		}
		n := &node{folder: e.IsDir(), remark: " (ignored)"}
		if e.IsDir() {
			if inner, err := f.Workspace.ReadDir(dir + "/" + e.Name()); err == nil && len(inner) == 0 {
				n.remark = " (empty)"
			}
		}
		if e.Type()&fs.ModeSymlink != 0 {
			n.remark = " (link)"
		}
		root.add(e.Name(), n)
	}
}

// ignored reports whether a path, or a folder that it is in, matches a pattern.
// A pattern without "/" matches names at any depth.
func ignored(p string, patterns []string) bool {
	for _, pat := range patterns {
		pat = strings.TrimSuffix(strings.TrimPrefix(pat, "./"), "/")
		for at := p; at != "."; at = path.Dir(at) {
			name := at
			if !strings.Contains(pat, "/") {
				name = path.Base(at)
			}
			if doublestar.MatchUnvalidated(pat, name) {
				return true
			}
		}
	}
	return false
}

// node is an entry of a tree.
type node struct {
	folder bool
	files  int // below it
	remark string
	below  map[string]*node
}

func (n *node) add(name string, child *node) {
	if n.below == nil {
		n.below = map[string]*node{}
	}
	n.below[name] = child
}

// put adds the file at a path, and the folders on the way.
func (n *node) put(p string) {
	n.files++
	name, rest, more := strings.Cut(p, "/")
	child, ok := n.below[name]
	if !ok {
		child = &node{folder: more}
		n.add(name, child)
	}
	if more {
		child.folder = true
		child.put(rest)
	}
}

// fit draws the tree as deep as asked for, or as the budget allows.
func (n *node) fit(depth int) (string, int) {
	if depth <= 0 || depth > listDepth {
		depth = listDepth
	}
	for ; depth > 1; depth-- {
		var b strings.Builder
		if n.draw(&b, "", depth) {
			return b.String(), depth
		}
	}
	var b strings.Builder
	n.draw(&b, "", 1)
	return b.String(), 1
}

// draw writes the entries below n, folders with the number of files in them
// where their own entries are not shown. It reports false when the budget is
// used up, which it says itself.
func (n *node) draw(b *strings.Builder, indent string, depth int) bool {
	names := make([]string, 0, len(n.below))
	for name := range n.below {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		c := n.below[name]
		line := indent + kit.Name(name)
		if c.folder {
			line += "/"
		}
		line += c.remark
		if c.folder && depth == 1 && c.remark == "" {
			line += fmt.Sprintf(" (%s)", plural(c.files, "file"))
		}
		if b.Len()+len(line) > listBody {
			fmt.Fprintf(b, "%s[%d more; list a folder below, or use ignore]\n", indent, len(names)-i)
			return false
		}
		b.WriteString(line + "\n")
		if c.folder && depth > 1 && !c.draw(b, indent+"  ", depth-1) {
			return false
		}
	}
	return true
}

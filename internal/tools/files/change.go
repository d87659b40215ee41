package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// A change is what a call is going to make of one file. It is worked out
// without touching the file: once before the call starts, for its mark, and
// again when it runs.
type change struct {
	path     string // absolute
	resolved string
	info     fs.FileInfo // nil = the file does not exist
	old      workspace.State
	data     []byte // the new bytes

	// The texts before and after, with their line ends; "" when the file before
	// was binary or too large to be compared.
	before, after string
	compared      bool

	edits    []editInput // nil = a write
	replaced int         // occurrences, by edits
	notes    []string    // for the model

	verb       string          // what was done, when it is no plain write or edit
	structured json.RawMessage // for hooks and hosts, in the place of the usual answer
}

// changer is a tool that changes one file. It is an [agent.Checker]. Prepare
// returns what it knows of the file also when the change cannot be made.
type changer struct {
	kit.Tool
	f       *files
	prepare func(context.Context, agent.ToolContext, agent.Call) (*change, error)
}

// work prepares the change, and refuses one that would write a mask.
func (w changer) work(ctx context.Context, tc agent.ToolContext, c agent.Call) (*change, error) {
	ch, err := w.prepare(ctx, tc, c)
	if ch == nil {
		return nil, err
	}
	if te, ok := errors.AsType[*agent.ToolError](err); ok && te.Code == ErrEditNoMatch {
		return ch, cmp.Or(w.f.unmasked(ch, string(c.Input)), err)
	} else if err != nil {
		return ch, err
	}
	return ch, w.f.unmasked(ch, ch.after)
}

// target reads the file that a call wants to change, and makes sure that the
// session knows what it is changing. Text is set when the file is one.
func (f *files) target(ctx context.Context, tc agent.ToolContext, c agent.Call, path string) (ch *change, text *workspace.Text, err error) {
	ch = &change{}
	if ch.path, ch.resolved, err = f.arrive(tc, c, path); err != nil {
		return nil, nil, err
	}
	data, info, err := f.load(ctx, ch.resolved)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ch, nil, nil
	case errors.Is(err, errLarge):
		ch.info, ch.old = info, workspace.State{Size: info.Size(), ModTime: info.ModTime()}
	case err != nil:
		return nil, nil, f.explain(tc, ch.path, err)
	default:
		ch.info, ch.old = info, workspace.StateOf(info, data)
		if t, err := workspace.DecodeText(data); err == nil {
			text, ch.before, ch.compared = &t, t.Content, true
		}
	}
	return ch, text, nil
}

// seen checks that the session has read the file as it is now. There is nothing
// to know about an empty file.
func (f *files) seen(ch *change, text *workspace.Text) error {
	if ch.info == nil || ch.old.Size == 0 && ch.old.SHA256 != "" {
		return nil
	}
	switch err := f.Tracker.Check(ch.resolved, ch.old); {
	case errors.Is(err, workspace.ErrUnseen) && text == nil && ch.old.SHA256 != "":
		return kit.Refuse(ErrFileBinary, ch.path+" exists and is not a text file", "Write to another path, or remove it with a command first.")
	case errors.Is(err, workspace.ErrUnseen):
		return kit.Refuse(ErrFileUnread, ch.path+" exists and has not been read in this session", "Read it first, then repeat the call.")
	case errors.Is(err, workspace.ErrChanged):
		return kit.Refuse(ErrFileChanged, ch.path+" has changed since it was read: someone else, or a command, wrote to it", "Read it again, then repeat the change on what it contains now.")
	}
	return nil
}

// editable checks that there is a text to edit, and that the session knows it.
func (f *files) editable(tc agent.ToolContext, ch *change, text *workspace.Text) error {
	switch {
	case ch.info == nil:
		return f.missing(tc, ch.path)
	case ch.old.SHA256 == "":
		return f.explain(tc, ch.path, errLarge)
	case text == nil:
		return f.explain(tc, ch.path, workspace.ErrBinary)
	}
	return f.seen(ch, text)
}

// Run makes the change.
func (w changer) Run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	return kit.Answer(w.apply(ctx, tc, c))
}

func (w changer) apply(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	ch, err := w.work(ctx, tc, c)
	if err != nil {
		return agent.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return agent.Result{}, err
	}
	sum := workspace.Sum(ch.data)
	if ch.info != nil && ch.old.SHA256 == sum {
		w.f.Tracker.Saw(ch.resolved, ch.old)
		r := agent.OK(shown(tc, ch.path) + " has this content already; nothing was written.")
		r.Files = []agent.FileState{{Path: ch.resolved, SHA256: sum}}
		r.Output = ch.output()
		return r, nil
	}
	info, err := w.f.FS.Write(ch.resolved, ch.data, workspace.WriteOptions{
		Old: ch.info, Create: ch.info == nil, Key: agent.CallEnvOf(ctx).Key,
	})
	if err != nil {
		return agent.Result{}, w.f.explain(tc, ch.path, err)
	}
	w.f.Tracker.Saw(ch.resolved, workspace.State{SHA256: sum, Size: info.Size(), ModTime: info.ModTime()})
	r := agent.OK(ch.report(tc))
	r.Files = []agent.FileState{{Path: ch.resolved, SHA256: sum, Wrote: true}}
	r.Output = ch.output()
	return r, nil
}

// mark is what is stored before a change, to tell afterwards whether it was made.
type mark struct {
	Path    string    `json:"path"` // resolved
	Exists  bool      `json:"exists,omitempty"`
	Before  string    `json:"before,omitempty"` // SHA-256; "" = too large
	Size    int64     `json:"size,omitempty"`
	ModTime time.Time `json:"mtime,omitzero"`
	After   string    `json:"after,omitempty"` // SHA-256; "" = the call was going to fail
}

// Mark implements [agent.Checker]. A call that is going to fail has a mark
// too: its error comes from Run.
func (w changer) Mark(ctx context.Context, tc agent.ToolContext, c agent.Call) (json.RawMessage, error) {
	ch, err := w.work(ctx, tc, c)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case ch == nil:
		return kit.Structured(mark{}), nil
	}
	m := mark{Path: ch.resolved, Exists: ch.info != nil}
	if m.Exists {
		m.Before, m.Size, m.ModTime = ch.old.SHA256, ch.old.Size, ch.old.ModTime
	}
	if err == nil {
		m.After = workspace.Sum(ch.data)
	}
	return kit.Structured(m), nil
}

// Probe implements [agent.Checker]. A file that is neither as it was nor as the
// call would have left it has been changed by somebody else: nobody can tell.
func (w changer) Probe(ctx context.Context, tc agent.ToolContext, _ agent.Call, raw json.RawMessage) (agent.Probe, agent.Result, error) {
	var m mark
	if err := json.Unmarshal(raw, &m); err != nil {
		return agent.ProbeUnknown, agent.Result{}, fmt.Errorf("reading the mark: %w", err)
	}
	if m.Path == "" { // there was no file that it could have written
		return agent.ProbeNotDone, agent.Result{}, nil
	}
	data, info, err := w.f.load(ctx, m.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if m.Exists {
			return agent.ProbeUnknown, agent.Result{}, nil
		}
		return agent.ProbeNotDone, agent.Result{}, nil
	case errors.Is(err, errLarge):
		if m.Exists && m.Before == "" && m.Size == info.Size() && m.ModTime.Equal(info.ModTime()) {
			return agent.ProbeNotDone, agent.Result{}, nil
		}
		return agent.ProbeUnknown, agent.Result{}, nil
	case err != nil:
		return agent.ProbeUnknown, agent.Result{}, err
	}
	now := workspace.StateOf(info, data)
	switch {
	case now.SHA256 == m.After:
		w.f.Tracker.Saw(m.Path, now)
		r := agent.OK(shown(tc, m.Path) + " was written before the program was interrupted.")
		r.Files = []agent.FileState{{Path: m.Path, SHA256: now.SHA256, Wrote: true}}
		return agent.ProbeDone, r, nil
	case m.Exists && now.SHA256 == m.Before:
		return agent.ProbeNotDone, agent.Result{}, nil
	}
	return agent.ProbeUnknown, agent.Result{}, nil
}

// report tells the model what was done: in short, with the lines that changed.
func (ch *change) report(tc agent.ToolContext) string {
	name := shown(tc, ch.path)
	if ch.info == nil {
		return strings.Join(append([]string{fmt.Sprintf("Created %s (%s).", name, plural(countLines(ch.after), "line"))}, ch.notes...), "\n")
	}
	head := "Wrote " + name
	if ch.replaced > 0 {
		head = "Edited " + name
		if ch.replaced > 1 {
			head += fmt.Sprintf(" in %d places", ch.replaced)
		}
	}
	if ch.verb != "" {
		head = ch.verb + " " + name
	}
	if !ch.compared {
		return head + "."
	}
	p := diffOf(ch.before, ch.after)
	head += fmt.Sprintf(": +%d -%d lines.", p.added, p.removed)
	lines := append([]string{head}, ch.notes...)
	if d := p.text(reportLines, reportBytes); d != "" {
		lines = append(lines, d)
	}
	return strings.Join(lines, "\n")
}

// How much of a diff the model is shown.
const (
	reportLines = 40
	reportBytes = 2_500
)

// maxOriginal is the largest file that is given whole to hooks and hosts.
const maxOriginal = 8 << 10

// original is the file before, for hooks and hosts; null when it did not exist
// or is larger than maxOriginal.
func (ch *change) original() *string {
	if ch.info == nil || !ch.compared || len(ch.before) > maxOriginal {
		return nil
	}
	return &ch.before
}

// output is the change for hooks and hosts.
func (ch *change) output() json.RawMessage {
	if ch.structured != nil {
		return ch.structured
	}
	var p patch
	if ch.compared {
		p = diffOf(ch.before, ch.after)
	}
	hunks := p.bounded()
	type file struct {
		FilePath  string  `json:"filePath"`
		Original  *string `json:"originalFile"`
		Patch     []hunk  `json:"structuredPatch"`
		Truncated bool    `json:"patchTruncated,omitempty"`
	}
	of := file{ch.path, ch.original(), hunks, len(hunks) < len(p.hunks)}
	switch len(ch.edits) {
	case 0:
		kind := "update"
		if ch.info == nil {
			kind = "create"
		}
		return kit.Structured(struct {
			Type string `json:"type"`
			file
		}{kind, of})
	case 1:
		e := ch.edits[0]
		return kit.Structured(struct {
			file
			Old      string `json:"oldString"`
			New      string `json:"newString"`
			All      bool   `json:"replaceAll"`
			Modified bool   `json:"userModified"`
		}{of, kit.Cut(*e.Old, maxOriginal), kit.Cut(*e.New, maxOriginal), e.All, false})
	}
	return kit.Structured(of)
}

// countLines returns the number of lines of s.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

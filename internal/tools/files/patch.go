package files

import (
	"cmp"
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed patch.md
var patchText string

// Limits of one patch.
const (
	maxPatch      = 4 << 20 // bytes of its text
	maxPatchFiles = 100
	maxPatchBytes = 64 << 20 // of the files before and after, which are held to be put back
)

type patchInput struct {
	Patch string `json:"patch"`
}

// patcher is the tool that applies patches. It is an [agent.Checker].
type patcher struct {
	kit.Tool
	f *files
}

func (f *files) patch() agent.Tool {
	return patcher{f: f, Tool: kit.Tool{
		About: agent.Spec{
			Name:        "file-system__patch",
			Description: kit.Describe(patchText),
			Input:       json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"],"additionalProperties":false}`),
			Class:       agent.Checkable, Group: "files", Risk: agent.RiskMedium, Limit: fileLimit,
			Aliases: map[string]string{"input": "patch", "diff": "patch", "patch_text": "patch", "patchText": "patch"},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			list, err := readPatch(c)
			if err != nil {
				return agent.Effects{}, err
			}
			var e agent.Effects
			for _, p := range list {
				path, err := f.pin(tc, c, p.path)
				if err != nil {
					return agent.Effects{}, err
				}
				if p.kind != patchAdd {
					e.Reads = append(e.Reads, path)
				}
				e.Writes = append(e.Writes, path)
				if p.to == "" {
					continue
				}
				if path, err = f.pin(tc, c, p.to); err != nil {
					return agent.Effects{}, err
				}
				e.Writes = append(e.Writes, path)
			}
			return e, nil
		},
		Does: f.runPatch,
	}}
}

func readPatch(c agent.Call) ([]filePatch, error) {
	in, err := kit.Decode[patchInput](c)
	if err != nil {
		return nil, err
	}
	if len(in.Patch) > maxPatch {
		return nil, kit.Refuse(agent.ErrInput, fmt.Sprintf("the patch is larger than %d MiB", maxPatch>>20), "Send it in parts.")
	}
	list, err := parsePatch(in.Patch)
	if err != nil {
		return nil, err
	}
	if len(list) > maxPatchFiles {
		return nil, kit.Refuse(agent.ErrInput, fmt.Sprintf("the patch changes %d files, more than %d", len(list), maxPatchFiles), "Send it in parts.")
	}
	for _, p := range list {
		if p.path == "" {
			return nil, kit.Refuse(agent.ErrInput, "the patch has a part without the name of a file", "Name the file of each part.")
		}
	}
	return list, nil
}

// step is what a patch does to one file, worked out and not done yet.
type step struct {
	kind  string
	ch    *change // the file as it is; after and data are what it becomes
	from  *spot   // of a file that is removed or moved
	to    *spot   // its new name; nil = it keeps its own
	raw   []byte  // its bytes before
	patch patch   // the difference, for reports
}

// preparePatch works out every step. Nothing is touched when one of them cannot
// be made.
func (f *files) preparePatch(ctx context.Context, tc agent.ToolContext, c agent.Call) ([]*step, error) {
	list, err := readPatch(c)
	if err != nil {
		return nil, err
	}
	var steps []*step
	at := map[string]*step{} // by the key of each path that is touched
	size := 0
	for _, p := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := f.prepareStep(ctx, tc, c, p, at)
		if err == nil && s != nil {
			err = f.unmasked(s.ch, s.ch.after) // of a new file, too
		}
		if err != nil {
			return nil, inFile(err, p.path)
		}
		if s == nil {
			continue // it went on with an earlier one
		}
		steps = append(steps, s)
		if size += len(s.raw) + len(s.ch.data); size > maxPatchBytes {
			return nil, kit.Refuse(ErrFileLarge, fmt.Sprintf("the files of the patch are larger than %d MiB together", maxPatchBytes>>20), "Send it in parts.")
		}
	}
	for _, s := range steps {
		s.patch = diffOf(s.ch.before, s.ch.after)
	}
	return steps, nil
}

// inFile puts the name of the file before an error about its hunks.
func inFile(err error, path string) error {
	te, ok := errors.AsType[*agent.ToolError](err)
	if !ok {
		return err
	}
	message := te.Message
	if strings.Contains(message, "hunk") {
		message = kit.Cut(kit.Name(path), 200) + ": " + message
	}
	return kit.Refuse(te.Code, message, strings.TrimSpace(te.Suggestion+" None of the patch was applied."))
}

// prepareStep works out the step for one part of a patch. A second part that
// updates a file goes on where the first ended, and has no step of its own.
func (f *files) prepareStep(ctx context.Context, tc agent.ToolContext, c agent.Call, p filePatch, at map[string]*step) (*step, error) {
	ch, text, err := f.target(ctx, tc, c, p.path)
	if err != nil {
		return nil, err
	}
	key := f.Workspace.Key(ch.resolved)
	if first := at[key]; first != nil {
		if p.kind != patchUpdate || first.kind != patchUpdate || p.to != "" || first.to != nil {
			return nil, kit.Refuse(agent.ErrInput, kit.Name(p.path)+" appears twice in the patch", "Put all that happens to a file into one part.")
		}
		return nil, f.update(first.ch, text, p.hunks)
	}
	s := &step{kind: p.kind, ch: ch}
	at[key] = s
	if p.kind == patchAdd {
		return s, f.addition(ch, p)
	}
	switch {
	case ch.info == nil:
		return nil, f.missing(tc, ch.path)
	case ch.old.SHA256 == "":
		return nil, f.explain(tc, ch.path, errLarge)
	case text == nil && (p.kind == patchUpdate && len(p.hunks) > 0):
		return nil, f.explain(tc, ch.path, workspace.ErrBinary)
	}
	if err := f.seen(ch, &workspace.Text{}); err != nil {
		return nil, err
	}
	if s.raw, _, err = f.load(ctx, ch.resolved); err != nil {
		return nil, f.explain(tc, ch.path, err)
	}
	if workspace.Sum(s.raw) != ch.old.SHA256 {
		return nil, f.explain(tc, ch.path, workspace.ErrChanged)
	}
	if p.kind == patchDelete || p.to != "" {
		if err := f.relocation(ctx, tc, s, p, at); err != nil {
			return nil, err
		}
	}
	ch.after, ch.data = ch.before, s.raw
	if p.kind == patchDelete {
		return s, f.deletion(s, p)
	}
	if len(p.hunks) == 0 {
		if p.to == "" {
			return nil, kit.Refuse(ErrEditSame, "the patch changes nothing in "+kit.Name(p.path), "Leave the file out.")
		}
		return s, nil
	}
	return s, f.update(ch, text, p.hunks)
}

// addition makes the content of a new file.
func (f *files) addition(ch *change, p filePatch) error {
	if ch.info != nil {
		return kit.Refuse(ErrFileExists, kit.Name(ch.path)+" exists already", "Update it instead.")
	}
	after, err := applyHunks("", p.hunks)
	if err != nil {
		return kit.Refuse(agent.ErrInput, "a part that adds a file has lines that are not new", "Give only lines that begin with +.")
	}
	ch.after, ch.data, ch.compared = after, []byte(after), true
	return nil
}

// update applies hunks to what the file is going to be so far.
func (f *files) update(ch *change, text *workspace.Text, hunks []patchHunk) error {
	changes := false
	for _, h := range hunks {
		changes = changes || h.changes()
	}
	if !changes {
		return kit.Refuse(ErrEditSame, "the hunks change nothing", "Give lines that begin with - or +.")
	}
	base := ch.before
	if ch.data != nil && ch.after != "" {
		base = ch.after
	}
	after, err := applyHunks(base, hunks)
	if err != nil {
		return cmp.Or(f.unmasked(ch, oldLines(hunks)), err)
	}
	if err := f.unmasked(ch, after); err != nil {
		return err
	}
	if len(after) > workspace.MaxText {
		return kit.Refuse(ErrFileLarge, fmt.Sprintf("%s would become larger than %d MiB", kit.Name(ch.path), workspace.MaxText>>20), "Use a command.")
	}
	data, err := text.Encode(after)
	if err != nil {
		return f.explain(agent.ToolContext{}, ch.path, err)
	}
	ch.after, ch.data = after, data
	return nil
}

// oldLines returns the lines that hunks look for.
func oldLines(hunks []patchHunk) string {
	var b strings.Builder
	for _, h := range hunks {
		for _, l := range h.lines {
			if l.op != '+' {
				b.WriteString(l.text + "\n")
			}
		}
	}
	return b.String()
}

// relocation looks at a file that is removed or moved, and at its new name.
func (f *files) relocation(ctx context.Context, tc agent.ToolContext, s *step, p filePatch, at map[string]*step) (err error) {
	if s.from, err = f.spot(ctx, tc, p.path); err != nil {
		return err
	}
	if !s.from.info.Mode().IsRegular() {
		return kit.Refuse(ErrFileType, kit.Name(s.from.path)+" is a link", "Name the file itself.")
	}
	if p.to == "" {
		return nil
	}
	if s.to, err = f.bareSpot(tc, p.to); err != nil {
		return err
	}
	if s.to.info != nil {
		return kit.Refuse(ErrFileExists, kit.Name(s.to.path)+" exists already", "Choose another name.")
	}
	key := f.Workspace.Key(s.to.place)
	if at[key] != nil {
		return kit.Refuse(agent.ErrInput, kit.Name(p.to)+" appears twice in the patch", "Put all that happens to a file into one part.")
	}
	at[key] = s
	return nil
}

// deletion checks that the lines of a diff that removes a file are all it has.
func (f *files) deletion(s *step, p filePatch) error {
	s.ch.after, s.ch.data = "", nil
	if len(p.hunks) == 0 {
		return nil
	}
	after, err := applyHunks(s.ch.before, p.hunks)
	if err != nil {
		return err
	}
	if after != "" {
		return kit.Refuse(ErrEditNoMatch, "the patch deletes "+kit.Name(p.path)+", which has more lines than the patch removes", "Read it again; to delete it whatever it has, use the delete tool.")
	}
	return nil
}

func (f *files) runPatch(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	steps, err := f.preparePatch(ctx, tc, c)
	if err != nil {
		return agent.Result{}, err
	}
	var done []*stepDone
	for _, s := range inOrder(steps) {
		d := &stepDone{step: s}
		err := ctx.Err()
		if err == nil {
			err = f.take(ctx, d)
		}
		done = append(done, d)
		if err != nil {
			return f.undone(tc, done, s, err)
		}
	}
	return f.patched(tc, steps, done), nil
}

// inOrder puts what removes files behind what writes, so that little is lost
// when it goes wrong on the way.
func inOrder(steps []*step) []*step {
	var first, last []*step
	for _, s := range steps {
		if s.kind == patchDelete {
			last = append(last, s)
		} else {
			first = append(first, s)
		}
	}
	return append(first, last...)
}

// stepDone is a step as far as it has been taken.
type stepDone struct {
	*step
	moved   bool
	written fs.FileInfo // what was written; nil = nothing yet
	removed bool
}

// at is where the file is when the step has been taken.
func (s *step) at() string {
	if s.to != nil {
		return s.to.place
	}
	return s.ch.resolved
}

// take makes a step.
func (f *files) take(ctx context.Context, d *stepDone) (err error) {
	key := agent.CallEnvOf(ctx).Key
	if d.kind == patchDelete {
		err = f.Workspace.Remove(d.from.place, d.from.info, key)
		d.removed = err == nil
		return err
	}
	old := d.ch.info
	if d.to != nil {
		if err := f.Workspace.Move(ctx, d.from.place, d.to.place, workspace.MoveOptions{Old: d.from.info, Key: key}); err != nil {
			return err
		}
		d.moved = true
		if old, err = f.Workspace.Lstat(d.to.place); err != nil {
			return err
		}
	}
	if d.kind == patchUpdate && d.ch.old.SHA256 == workspace.Sum(d.ch.data) {
		d.written = old
		return nil
	}
	d.written, err = f.FS.Write(d.at(), d.ch.data, workspace.WriteOptions{Old: old, Create: d.kind == patchAdd, Key: key})
	return err
}

// undone puts back what the steps so far have done, the last one first, and
// says what could not be put back.
func (f *files) undone(tc agent.ToolContext, done []*stepDone, failed *step, cause error) (agent.Result, error) {
	var left []string
	var states []agent.FileState
	for i := len(done) - 1; i >= 0; i-- {
		if err := f.putBack(done[i]); err != nil {
			left = append(left, fmt.Sprintf("%s (%s)", shown(tc, done[i].ch.path), kit.Cut(err.Error(), 100)))
			f.Tracker.Forget(done[i].at())
			states = append(states, agent.FileState{Path: done[i].at(), Gone: done[i].removed, Wrote: true})
		}
	}
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		if len(left) == 0 {
			return agent.Result{}, cause
		}
	}
	err := f.explain(tc, failed.ch.path, cause)
	te, ok := errors.AsType[*agent.ToolError](err)
	if !ok {
		te = &agent.ToolError{Code: agent.ErrAborted, Message: err.Error()}
	}
	r := agent.Failure(te.Code, te.Message, strings.TrimSpace(te.Suggestion+" None of the patch was applied: what had been written was put back."))
	if len(left) > 0 {
		r = agent.Failure(te.Code, te.Message, kit.Cut(fmt.Sprintf("What had been written was put back, except: %s. Look at these files.", strings.Join(left, ", ")), 900))
		r.Files = states
	}
	return r, nil
}

// putBack undoes a step, as far as it was taken.
func (f *files) putBack(d *stepDone) error {
	ctx := context.Background() // a cancelled call is put back too
	switch {
	case d.removed:
		_, err := f.FS.Write(d.ch.resolved, d.raw, workspace.WriteOptions{Create: true, Mode: d.ch.info.Mode()})
		return err
	case d.kind == patchAdd && d.written != nil:
		return f.Workspace.Remove(d.ch.resolved, d.written, "")
	case d.kind == patchUpdate && d.written != nil && d.ch.old.SHA256 != workspace.Sum(d.ch.data):
		if _, err := f.FS.Write(d.at(), d.raw, workspace.WriteOptions{Old: d.written}); err != nil {
			return err
		}
	}
	if !d.moved {
		return nil
	}
	now, err := f.Workspace.Lstat(d.to.place)
	if err != nil {
		return err
	}
	return f.Workspace.Move(ctx, d.to.place, d.from.place, workspace.MoveOptions{Old: now})
}

// patched tells what was done.
func (f *files) patched(tc agent.ToolContext, steps []*step, done []*stepDone) agent.Result {
	written := map[*step]fs.FileInfo{}
	for _, d := range done {
		written[d.step] = d.written
	}
	type file struct {
		FilePath string `json:"filePath"`
		MovedTo  string `json:"movedTo,omitempty"`
		Type     string `json:"type"`
		Added    int    `json:"added"`
		Removed  int    `json:"removed"`
		Patch    []hunk `json:"structuredPatch"`
	}
	var out []file
	var lines []string
	r := agent.Result{Status: agent.StatusOK}
	left := patchBytes
	for _, s := range steps {
		o := file{s.ch.path, "", s.kind, s.patch.added, s.patch.removed, []hunk{}}
		name := shown(tc, s.ch.path)
		if s.to != nil {
			o.MovedTo = s.to.path
			r.Files = append(r.Files, agent.FileState{Path: s.from.place, Gone: true})
			f.Tracker.Forget(s.from.place)
			name += " to " + shown(tc, s.to.path)
		}
		switch {
		case s.kind == patchDelete:
			f.Tracker.Forget(s.ch.resolved)
			r.Files = append(r.Files, agent.FileState{Path: s.ch.resolved, Gone: true})
			lines = append(lines, fmt.Sprintf("Deleted %s.", name))
		default:
			info, sum := written[s], workspace.Sum(s.ch.data)
			f.Tracker.Saw(s.at(), workspace.State{SHA256: sum, Size: info.Size(), ModTime: info.ModTime()})
			r.Files = append(r.Files, agent.FileState{Path: s.at(), SHA256: sum, Wrote: true})
			verb := map[bool]string{true: "Moved", false: "Edited"}[s.to != nil]
			if s.kind == patchAdd {
				verb = "Created"
			}
			lines = append(lines, fmt.Sprintf("%s %s: +%d -%d lines.", verb, name, s.patch.added, s.patch.removed))
		}
		for _, h := range s.patch.bounded() {
			if left -= len(strings.Join(h.Lines, "\n")); left > 0 {
				o.Patch = append(o.Patch, h)
			}
		}
		out = append(out, o)
	}
	r.Text = strings.Join(lines, "\n")
	r.Output = kit.Structured(struct {
		Files []file `json:"files"`
	}{out})
	return r
}

package instruct

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/record"
	"dure/internal/knowledge/memory"
)

// maxLine is how many bytes a person adds to an instruction file at once.
const maxLine = 10_000

// errChanged is a file that somebody has changed since.
var errChanged = errors.New("it has changed since")

// makeFile returns the file in which a person writes instructions of a scope for a folder,
// "" = the usual one. What is not there is made from a template.
func (x *Extension) makeFile(_ context.Context, q query.MakeMemory) (query.MemoryPlace, error) {
	p, err := x.Place(q.Workdir, q.Scope)
	if err == nil && p.Exists {
		err = staysInside(p)
	}
	if err != nil || p.Exists {
		return p, err
	}
	if err := record.Make(p.Path, memory.Template("dure", memory.Scope(p.Scope)), p.Scope == string(memory.User)); err != nil {
		return p, Problem(p.Path, err)
	}
	return p, nil
}

// ErrLinked is a file of a project that is a link to one elsewhere.
var ErrLinked = errors.New("it is a link that leads out of its folder")

// staysInside keeps a person's words out of files that a repository has linked to: what
// is written to AGENTS.md must not end up in a script of the person's shell.
func staysInside(p query.MemoryPlace) error {
	if p.Scope != string(memory.Project) && p.Scope != string(memory.Local) {
		return nil // those are the person's own, who may link them as they like
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(p.Path))
	real, lerr := filepath.EvalSymlinks(p.Path)
	if err = errors.Join(err, lerr); err == nil {
		if rel, rerr := filepath.Rel(dir, real); rerr != nil || !filepath.IsLocal(rel) {
			err = ErrLinked
		}
	}
	if err != nil {
		return Problem(p.Path, err)
	}
	return nil
}

// Place returns the file in which a person writes instructions of a scope (user, project,
// local or managed) for a folder, "" = the usual one. It makes nothing.
func (x *Extension) Place(dir, scope string) (query.MemoryPlace, error) {
	for _, p := range x.instructions(cmp.Or(dir, x.cfg.Workdir), nil).places() {
		if p.Scope == scope {
			return p, nil
		}
	}
	return query.MemoryPlace{}, &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("there are no instructions of the scope %q", scope), Fix: "name one of: user, project, local, managed",
	}
}

// begin writes the first instructions of the project, from a survey of it. No model is asked, and
// no file is replaced.
func (x *Extension) begin(ctx context.Context, q query.InitProject) (query.ProjectInit, error) {
	p, err := x.cfg.Draft(ctx)
	if err != nil {
		return p, err
	}
	place, err := x.Place("", string(memory.Project))
	if p.Path = place.Path; err != nil || q.Dry {
		return p, cmp.Or(err, ctx.Err())
	}
	err = fs.ErrExist
	if !place.Exists {
		err = record.Make(p.Path, p.Text, false)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return p, x.cfg.There(p.Path)
	case err != nil:
		return p, Problem(p.Path, err)
	}
	p.Made = true
	return p, nil
}

// add adds a line to a person's instructions of a scope.
func (x *Extension) add(ctx context.Context, q query.AddMemory) (query.MemoryAdded, error) {
	line := strings.Join(strings.Fields(q.Text), " ")
	if line == "" || len(line) > maxLine {
		return query.MemoryAdded{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("what is to be remembered has to have 1 to %d bytes", maxLine), Fix: "say it in fewer words",
		}
	}
	p, err := x.makeFile(ctx, query.MakeMemory{Workdir: q.Workdir, Scope: q.Scope})
	if err != nil {
		return query.MemoryAdded{MemoryPlace: p}, err
	}
	added, err := appendLine(p.Path, "- "+line+"\n")
	if err != nil {
		err = Problem(p.Path, err)
	}
	return query.MemoryAdded{MemoryPlace: p, Line: string(added)}, err
}

// undo takes a line back, if the file has not changed since.
func (x *Extension) undo(_ context.Context, q query.UndoMemory) (query.MemoryPlace, error) {
	p, err := x.Place(q.Workdir, q.Added.Scope)
	if err == nil && p.Path == q.Added.Path {
		err = staysInside(p)
	} else if err == nil {
		err = Problem(q.Added.Path, errChanged)
	}
	if err != nil {
		return p, err
	}
	if err := takeBack(p.Path, []byte(q.Added.Line), q.Added.Exists); err != nil {
		return p, Problem(p.Path, err)
	}
	return p, nil
}

// appendLine adds a line to a file, which it leaves where it is, with the links of the
// person's own.
func appendLine(path, line string) (added []byte, err error) {
	data, err := readInstructions(path)
	if err != nil {
		return nil, err
	}
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		line = "\n" + line
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(line)
	return []byte(line), errors.Join(err, f.Close())
}

// takeBack cuts off what was added at the end of a file. One that was made for it
// goes with it.
func takeBack(path string, added []byte, stays bool) error {
	data, err := readInstructions(path)
	if err != nil {
		return err
	}
	before, ok := bytes.CutSuffix(data, added)
	if !ok {
		return errChanged
	}
	for _, scope := range []memory.Scope{memory.User, memory.Project, memory.Local, memory.Managed} {
		if !stays && string(before) == memory.Template("dure", scope) {
			return os.Remove(path)
		}
	}
	return os.Truncate(path, int64(len(before)))
}

// readInstructions reads a file of a size that would be read for a model.
func readInstructions(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return memory.OS().ReadFile(real, memory.MaxFile)
}

// Problem is an instruction file that cannot be changed.
func Problem(path string, err error) error {
	what := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		what = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemMemory, Message: fmt.Sprintf("the instructions in %s cannot be changed: %v", path, what),
		Fix: "make the file and its folder writable", Args: map[string]string{"path": path, "error": what.Error()}, Err: err,
	}
}

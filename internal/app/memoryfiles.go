package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/knowledge/memory"
	"dure/internal/safety/sandbox"
)

// MaxRemembered is how many bytes a person adds to an instruction file at once.
const MaxRemembered = 10_000

// errChanged is a file that somebody has changed since.
var errChanged = errors.New("it has changed since")

// MakeMemory returns the file in which a person writes instructions of a scope (user,
// project, local or managed) for a folder, "" = this one. What is not there is made
// from a template.
func (a *App) MakeMemory(workdir, scope string) (query.MemoryPlace, error) {
	p, err := a.MemoryPlace(workdir, scope)
	if err == nil && p.Exists {
		err = staysInside(p)
	}
	if err != nil || p.Exists {
		return p, err
	}
	if err := makeText(p.Path, memory.Template("dure", memory.Scope(scope)), scope == string(memory.User)); err != nil {
		return p, memoryProblem(p.Path, err)
	}
	return p, nil
}

// errLinked is a file of a project that is a link to one elsewhere.
var errLinked = errors.New("it is a link that leads out of its folder")

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
			err = errLinked
		}
	}
	if err != nil {
		return memoryProblem(p.Path, err)
	}
	return nil
}

// MemoryPlace is [App.MakeMemory] without making anything.
func (a *App) MemoryPlace(workdir, scope string) (query.MemoryPlace, error) {
	for _, p := range a.listMemory(query.ListMemory{Workdir: workdir}).Places {
		if p.Scope == scope {
			return p, nil
		}
	}
	return query.MemoryPlace{}, &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("there are no instructions of the scope %q", scope), Fix: "name one of: user, project, local, managed",
	}
}

// Remember adds a line to a person's instructions of a scope, and returns their file
// and what takes the line back, which fails when the file has changed since.
func (a *App) Remember(workdir, scope, text string) (path string, undo func() error, err error) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" || len(text) > MaxRemembered {
		return "", nil, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("what is to be remembered has to have 1 to %d bytes", MaxRemembered), Fix: "say it in fewer words",
		}
	}
	p, err := a.MakeMemory(workdir, scope)
	if err != nil {
		return p.Path, nil, err
	}
	added, err := appendLine(p.Path, "- "+text+"\n")
	if err != nil {
		return p.Path, nil, memoryProblem(p.Path, err)
	}
	return p.Path, func() error {
		if err := takeBack(p.Path, added, p.Exists); err != nil {
			return memoryProblem(p.Path, err)
		}
		return nil
	}, nil
}

// makeText makes a file that is not there, with its folder: as the repository has its
// own, or for the person alone.
func makeText(path, text string, private bool) error {
	folder, file := fs.FileMode(0o755), fs.FileMode(0o644)
	if private {
		folder, file = 0o700, 0o600
	}
	if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, file)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
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

// Editor returns the program that the user edits texts with and its arguments; nil =
// none is set.
func (a *App) Editor() []string {
	get := getenv(a.opts.Environ)
	for _, name := range []string{"VISUAL", "EDITOR"} {
		v := strings.TrimSpace(get(name))
		if v == "" {
			continue
		}
		if _, err := os.Stat(v); err == nil { // a path with spaces
			return []string{v}
		}
		return strings.Fields(v)
	}
	return nil
}

// Edit opens a file in the user's editor, on the terminal, and waits for its end.
func (a *App) Edit(ctx context.Context, path string, in, out, errs *os.File) error {
	argv := append(a.Editor(), path)
	if len(argv) == 1 {
		return nil
	}
	if err := sandbox.Attach(ctx, sandbox.Attached{Argv: argv, Dir: filepath.Dir(path), Env: a.opts.Environ, In: in, Out: out, Err: errs}); err != nil {
		return &agent.Problem{
			Code: agent.ProblemEditor, Message: fmt.Sprintf("the editor %s: %v", argv[0], err), Fix: "set VISUAL or EDITOR to an editor, or open the file yourself: " + path,
			Args: map[string]string{"name": argv[0], "error": err.Error(), "path": path}, Err: err,
		}
	}
	return nil
}

func memoryProblem(path string, err error) error {
	what := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		what = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemMemory, Message: fmt.Sprintf("the instructions in %s cannot be changed: %v", path, what),
		Fix: "make the file and its folder writable", Args: map[string]string{"path": path, "error": what.Error()}, Err: err,
	}
}

// Package system writes the system prompts of sessions, and keeps the texts for them that a user
// has written, one for each kind of work. It starts no goroutines.
package system

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/prompt"
	"dure/internal/safety/workspace"
)

// Extension writes system prompts. All fields are required but Flag and Added.
type Extension struct {
	plug.NoSession
	Dir     string         // of the texts of the user, with a file for each kind of work
	Workdir string         // absolute
	Flag    *string        // text of the command line, in the place of what dure says of itself; nil = none
	Added   string         // ... and behind it
	Usual   prompt.Context // what all prompts are written from

	Work       func(profile string) (prompt.Work, error) // a kind of work; "" = the usual one
	Model      func(name string) (agent.ModelInfo, error)
	UsualModel func(profile string) string // "" = there is none without a key
	Place      func(*workspace.Workspace) (git bool, shell string)

	// Tools returns the tools that a session in a folder would begin with, and their names for
	// the model where they differ.
	Tools func(dir string, work agent.Profile) (tools []agent.Spec, names map[string]string, err error)

	// Count estimates the tokens of a text for a provider, and Fixed those of a tool for a model.
	Count func(provider string) func(text string) int
	Fixed func(model string, tool agent.Spec) int
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "prompts" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.change), plug.Storeless(x.preview)}
}

// path returns the path of the text for a kind of work.
func (x *Extension) path(name string) string { return filepath.Join(x.Dir, name+".md") }

func (x *Extension) change(_ context.Context, q query.ChangePrompt) (f query.PromptFile, err error) {
	work, err := x.Work(q.Profile)
	if err != nil {
		return f, err
	}
	f.Path = x.path(work.Name)
	switch q.Do {
	case query.PromptBegin:
		err = begin(f.Path)
	case query.PromptCheck:
		if data, err := os.ReadFile(f.Path); err == nil && string(data) == prompt.Template {
			_ = os.Remove(f.Path) // it says nothing
		}
		if _, err := x.own(work.Name); err != nil {
			return f, err
		}
		_, err := os.Stat(f.Path)
		f.Found = err == nil
	case query.PromptReset:
		err = os.Rename(f.Path, f.Path+".bak")
		if f.Found = err == nil; missing(err) {
			err = nil
		}
	}
	if err != nil {
		return f, agent.SettingsProblem(f.Path, err)
	}
	return f, nil
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// begin makes the file, unless there is one.
func begin(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(prompt.Template)
	return errors.Join(err, f.Close())
}

// own reads the text for a kind of work; one that is not there says nothing.
func (x *Extension) own(name string) (prompt.Own, error) {
	own, err := read(x.path(name))
	if err != nil {
		return prompt.Own{}, agent.SettingsProblem(x.path(name), err)
	}
	return own, nil
}

func read(path string) (prompt.Own, error) {
	info, err := os.Stat(path)
	if missing(err) {
		return prompt.Own{}, nil
	}
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		err = errors.New("it is no file")
	}
	if err != nil {
		return prompt.Own{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return prompt.Own{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, prompt.MaxOwn+1))
	if err != nil {
		return prompt.Own{}, err
	}
	return prompt.ParseOwn(data)
}

// text is what a kind of work has instead of what dure says of itself, or behind it: of the
// texts that replace that, the one of the command line, else of the settings, else of the
// file; and behind it all those that are added.
func (x *Extension) text(w prompt.Work) (text string, replace bool, err error) {
	own, err := x.own(w.Name)
	if err != nil {
		return "", false, err
	}
	var all []string
	switch {
	case x.Flag != nil:
		all, replace = append(all, *x.Flag), true
	case w.Prompt != "":
		all, replace = append(all, w.Prompt), true
	case own.Replace:
		all, replace = append(all, own.Text), true
	}
	if !own.Replace {
		all = append(all, own.Text)
	}
	all = append(all, w.Append, x.Added)
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n\n"), replace, nil
}

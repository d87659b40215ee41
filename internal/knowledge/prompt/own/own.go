// Package own keeps the texts of the system prompt that a user has written, one for each kind of
// work. It starts no goroutines.
package own

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

	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/prompt"
)

// Extension has the texts. All fields are required.
type Extension struct {
	plug.NoSession
	Dir     string                                        // with a file for each kind of work
	Work    func(profile string) (name string, err error) // of a kind of work; "" = the usual one
	Problem func(path string, err error) error            // says what is wrong with a file
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "prompts" }

// Answers returns the query that the extension answers.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Storeless(x.change)} }

// Path returns the path of the text for a kind of work.
func (x *Extension) Path(name string) string { return filepath.Join(x.Dir, name+".md") }

func (x *Extension) change(_ context.Context, q query.ChangePrompt) (f query.PromptFile, err error) {
	name, err := x.Work(q.Profile)
	if err != nil {
		return f, err
	}
	f.Path = x.Path(name)
	switch q.Do {
	case query.PromptBegin:
		err = begin(f.Path)
	case query.PromptCheck:
		if data, err := os.ReadFile(f.Path); err == nil && string(data) == prompt.Template {
			_ = os.Remove(f.Path) // it says nothing
		}
		if _, err := x.Read(name); err != nil {
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
		return f, x.Problem(f.Path, err)
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

// Read reads the text for a kind of work; one that is not there says nothing.
func (x *Extension) Read(name string) (prompt.Own, error) {
	own, err := read(x.Path(name))
	if err != nil {
		return prompt.Own{}, x.Problem(x.Path(name), err)
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

// Text is what a kind of work has instead of what dure says of itself, or behind it: of the
// texts that replace that, the one of the command line, else of the settings, else of the
// file; and behind it all those that are added.
func (x *Extension) Text(name string, flag *string, set string, added ...string) (text string, replace bool, err error) {
	own, err := x.Read(name)
	if err != nil {
		return "", false, err
	}
	var all []string
	switch {
	case flag != nil:
		all, replace = append(all, *flag), true
	case set != "":
		all, replace = append(all, set), true
	case own.Replace:
		all, replace = append(all, own.Text), true
	}
	if !own.Replace {
		all = append(all, own.Text)
	}
	all = append(all, added...)
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n\n"), replace, nil
}

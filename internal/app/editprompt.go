package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"dure/internal/knowledge/prompt"
	"dure/internal/safety/sandbox"
)

// EditPrompt opens the user's own text for a kind of work in the editor, on the
// terminal, and checks what came of it. A text that is only begun is not kept. The
// editor is that of VISUAL or EDITOR, else the usual one of the system.
func (a *App) EditPrompt(ctx context.Context, profile string, in, out, errs *os.File) (path string, err error) {
	if path, err = a.OwnPrompt(profile); err != nil {
		return "", err
	}
	if err := begin(path); err != nil {
		return path, settingsProblem(path, err)
	}
	argv := editor(getenv(a.opts.Environ))
	if err := sandbox.Attend(ctx, append(argv, path), a.opts.Environ, a.opts.Workdir, in, out, errs); err != nil {
		drop(path)
		return path, settingsProblem("EDITOR", fmt.Errorf("running %s: %w", argv[0], err))
	}
	drop(path)
	_, err = readOwn(path)
	return path, err
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

// drop removes a file that nobody has written into.
func drop(path string) {
	if data, err := os.ReadFile(path); err == nil && string(data) == prompt.Template {
		_ = os.Remove(path) // it says nothing
	}
}

// editor is the command line of the user's editor.
func editor(env func(string) string) []string {
	usual := "vi"
	if runtime.GOOS == "windows" {
		usual = "notepad"
	}
	line := strings.TrimSpace(cmp.Or(strings.TrimSpace(env("VISUAL")), strings.TrimSpace(env("EDITOR")), usual))
	if info, err := os.Stat(line); err == nil && info.Mode().IsRegular() { // its path may have spaces
		return []string{line}
	}
	return strings.Fields(line)
}

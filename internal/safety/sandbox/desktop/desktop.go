// Package desktop starts what a user has asked for beside the program: their editor, what opens
// an address, and what shows a notice. Nothing that a model says may lead here. It starts no
// goroutines.
package desktop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// How long a program that opens a page is waited for to fail, and one that shows a notice
// to be done.
const (
	openGrace   = 2 * time.Second
	noticeGrace = 5 * time.Second
)

// Desktop says what programs are started with. All fields are required.
type Desktop struct {
	Dir     string   // where they run
	Environ []string // of the editor
	Getenv  func(name string) string
	Env     func() []string             // of all others, without keys
	Find    func(program string) string // finds a program that is none of the folder's own
}

// errNoProgram says that the system has nothing for it.
var errNoProgram = errors.New("there is no program for it")

// Open opens an address as the system opens one, which is in a browser mostly. It
// is for addresses that a user has asked for.
func (d Desktop) Open(ctx context.Context, address string) error {
	var argv []string
	switch runtime.GOOS {
	case "windows":
		argv = []string{d.Find("rundll32"), "url.dll,FileProtocolHandler", address}
	case "darwin":
		argv = []string{d.Find("open"), address}
	default:
		argv = []string{d.Find("xdg-open"), address}
	}
	err := errNoProgram
	if argv[0] != "" {
		err = sandbox.Launch(ctx, argv, d.Env(), d.Dir, openGrace)
	}
	if err != nil {
		return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("the page cannot be opened: %v", err), Fix: "open it yourself: " + address, Err: err}
	}
	return nil
}

// The script of macOS that shows a notice: the texts are its arguments, and no part of it.
const notice = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"

// The script of Windows: the texts come in variables.
const balloon = `Add-Type -AssemblyName System.Windows.Forms,System.Drawing; $n = New-Object System.Windows.Forms.NotifyIcon; ` +
	`$n.Icon = [System.Drawing.SystemIcons]::Information; $n.Visible = $true; ` +
	`$n.ShowBalloonTip(4000, $env:DURE_NOTICE_TITLE, $env:DURE_NOTICE_TEXT, 'Info'); Start-Sleep 4; $n.Dispose()`

// Notify shows a notice of the system's.
func (d Desktop) Notify(ctx context.Context, title, text string) error {
	env := d.Env()
	var argv []string
	switch runtime.GOOS {
	case "windows":
		argv = []string{d.Find("powershell"), "-NoProfile", "-NonInteractive", "-Command", balloon}
		env = append(env, "DURE_NOTICE_TITLE="+title, "DURE_NOTICE_TEXT="+text)
	case "darwin":
		argv = []string{d.Find("osascript"), "-e", notice, title, text}
	default:
		argv = []string{d.Find("notify-send"), "--app-name=dure", "--", title, text}
	}
	if argv[0] == "" {
		return &agent.Problem{Code: agent.ProblemUsage, Message: "the system has no program that shows notices", Fix: `install notify-send, or set "notify" to "terminal" or "bell"`}
	}
	if err := sandbox.Launch(ctx, argv, env, d.Dir, noticeGrace); err != nil {
		return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("the notice cannot be shown: %v", err), Fix: `set "notify" to "terminal" or "bell"`, Err: err}
	}
	return nil
}

// Editor returns the program that the user edits texts with and its arguments; nil = none is
// set.
func (d Desktop) Editor() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		v := strings.TrimSpace(d.Getenv(name))
		if v == "" {
			continue
		}
		if info, err := os.Stat(v); err == nil && info.Mode().IsRegular() { // its path may have spaces
			return []string{v}
		}
		return strings.Fields(v)
	}
	return nil
}

// Edit opens a file in the user's editor, else the usual one of the system, on the terminal,
// and waits for its end.
func (d Desktop) Edit(ctx context.Context, path string, in, out, errs *os.File) error {
	argv := d.Editor()
	switch {
	case argv != nil:
	case runtime.GOOS == "windows":
		argv = []string{"notepad"}
	default:
		argv = []string{"vi"}
	}
	argv = append(argv, path)
	if err := sandbox.Attach(ctx, sandbox.Attached{Argv: argv, Dir: filepath.Dir(path), Env: d.Environ, In: in, Out: out, Err: errs}); err != nil {
		return &agent.Problem{
			Code: agent.ProblemEditor, Message: fmt.Sprintf("the editor %s: %v", argv[0], err), Fix: "set VISUAL or EDITOR to an editor, or open the file yourself: " + path,
			Args: map[string]string{"name": argv[0], "error": err.Error(), "path": path}, Err: err,
		}
	}
	return nil
}

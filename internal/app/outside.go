package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

// How long a program that opens a page is waited for to fail, and one that shows a notice
// to be done.
const (
	openGrace   = 2 * time.Second
	noticeGrace = 5 * time.Second
)

// errNoProgram says that the system has nothing for it.
var errNoProgram = errors.New("there is no program for it")

// OpenAddress opens an address as the system opens one, which is in a browser mostly. It
// is for addresses that a user has asked for.
func (a *App) OpenAddress(ctx context.Context, address string) error {
	var argv []string
	switch runtime.GOOS {
	case "windows":
		argv = []string{a.outside("rundll32"), "url.dll,FileProtocolHandler", address}
	case "darwin":
		argv = []string{a.outside("open"), address}
	default:
		argv = []string{a.outside("xdg-open"), address}
	}
	err := errNoProgram
	if argv[0] != "" {
		err = sandbox.Launch(ctx, argv, a.commandEnv(), a.opts.Workdir, openGrace)
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
func (a *App) Notify(ctx context.Context, title, text string) error {
	env := a.commandEnv()
	var argv []string
	switch runtime.GOOS {
	case "windows":
		argv = []string{a.outside("powershell"), "-NoProfile", "-NonInteractive", "-Command", balloon}
		env = append(env, "DURE_NOTICE_TITLE="+title, "DURE_NOTICE_TEXT="+text)
	case "darwin":
		argv = []string{a.outside("osascript"), "-e", notice, title, text}
	default:
		argv = []string{a.outside("notify-send"), "--app-name=dure", "--", title, text}
	}
	if argv[0] == "" {
		return &agent.Problem{Code: agent.ProblemUsage, Message: "the system has no program that shows notices", Fix: `install notify-send, or set "notify" to "terminal" or "bell"`}
	}
	if err := sandbox.Launch(ctx, argv, env, a.opts.Workdir, noticeGrace); err != nil {
		return &agent.Problem{Code: agent.ProblemUsage, Message: fmt.Sprintf("the notice cannot be shown: %v", err), Fix: `set "notify" to "terminal" or "bell"`, Err: err}
	}
	return nil
}

// outside finds a program that is none of the folder's own.
func (a *App) outside(program string) string {
	ws, err := workspace.New(workspace.Config{Root: a.opts.Workdir})
	if err != nil {
		return ""
	}
	return finder(ws)(program)
}

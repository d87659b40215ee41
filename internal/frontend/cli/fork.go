package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// What becomes of the files when a session is forked; everything else names a folder
// that they are put into, as they were at the event.
const (
	FilesKeep    = "keep"    // they stay as they are; also ""
	FilesRestore = "restore" // they are put back to how they were at the event
)

// ForkFiles says over which files a fork goes on.
type ForkFiles struct {
	Files    string
	Force    bool // with FilesRestore: those that somebody else has changed since, too
	Takeover bool // with FilesRestore: end a process that has the session and hangs
}

// ForkFiles makes the files for a fork at an event, and returns the folder that it
// works in; "" = that of the session. A file that somebody else has changed since keeps
// it from putting any back, unless that is forced.
func (c *CLI) ForkFiles(ctx context.Context, info agent.SessionInfo, at int64, o ForkFiles) (string, error) {
	switch o.Files {
	case "", FilesKeep:
		return "", nil
	case FilesRestore:
		return "", c.restoreFiles(ctx, info, at, o)
	}
	dir, err := filepath.Abs(o.Files)
	if err != nil {
		return "", err
	}
	out, err := client.Query[query.ExportedFiles](ctx, c.Client, query.ExportFiles{Session: info.ID, Seq: at, Dir: dir})
	return out.Workdir, err
}

func (c *CLI) restoreFiles(ctx context.Context, info agent.SessionInfo, at int64, o ForkFiles) error {
	plan, err := client.Query[query.RewindPlan](ctx, c.Client, query.PlanRewind{Session: info.ID, To: at})
	if err != nil {
		return err
	}
	var left []string
	for _, f := range plan.Files {
		if f.Conflict == "" || f.Forced {
			continue
		}
		left = append(left, f.Path)
		if !o.Force {
			fmt.Fprintln(c.Err, "  "+text.OneLine(bounded(f.Path))+": "+c.Text.Phrase(text.OneLine(bounded(f.Why))))
		}
	}
	if len(left) > 0 && !o.Force {
		fmt.Fprintln(c.Err, c.Text.Say(text.ForkConflicts, "n", len(left)))
		return &Exited{Code: ExitFailed, Err: errors.New("files have been changed by others since")}
	}
	if len(plan.Files) == 0 {
		return nil // they are as they were
	}
	_, err = c.edited(ctx, info.ID, "", o.Takeover, agent.Rewind{To: at, Files: true, Force: left})
	return err
}

// Fork makes a session that goes on from an event of another one, and runs nothing. A
// model that is named has to be one that can be asked.
func (c *CLI) Fork(ctx context.Context, info agent.SessionInfo, o agent.Open, asJSON bool) error {
	o.Fork, o.Edit = info.ID, o.Model == ""
	s, err := c.Client.Open(ctx, o)
	if err != nil {
		return err
	}
	if err := s.Close(ctx); err != nil {
		return err
	}
	made, err := c.Find(ctx, s.Info.ID, "")
	if err != nil {
		return err
	}
	return c.put(made, asJSON, func(w *bufio.Writer) { fmt.Fprintln(w, c.Text.Say(text.Forked, "session", made.ID, "from", info.ID)) })
}

// NoEvent says that a session has no such event.
func NoEvent(info agent.SessionInfo, seq int64) error { return noEvent(info, seq) }

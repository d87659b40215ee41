package app

import (
	"bytes"
	"context"
	"errors"

	"dure/internal/state/archive/mirror"
)

// tells reports whether somebody is told what is written of sessions: the program that embeds
// this one, or the one that this is the process of an agent of.
func (a *App) tells() bool {
	return a.opts.Host != nil && a.opts.Host.Mirrored != nil || a.upper != nil && a.upper.job.Tells
}

// maxMirrorNote is how many bytes of lines go to the parent of a process at a time, unless a
// single one has more.
const maxMirrorNote = 1 << 20

// mirroredOf tells what was added to a file, or why nothing more will be.
func (a *App) mirroredOf(c mirror.Config, lines []byte, err error) {
	switch {
	case a.upper == nil:
		a.opts.Host.Mirrored(c.Path(), lines, err)
	default:
		for len(lines) > 0 {
			part := mirrorPart(lines)
			lines = lines[len(part):]
			if wrong := a.upper.line.tell(workerNote{Kind: workerMirrored, Message: c.Agent, Text: string(part)}); wrong != nil && err == nil {
				err = wrong
			}
		}
		if err != nil {
			_ = a.upper.line.tell(workerNote{Kind: workerMirrored, Message: c.Agent, Error: err.Error()}) // whoever is gone keeps no store
		}
	}
}

// mirrorPart is the beginning of some lines that goes to the parent of a process at a time.
func mirrorPart(lines []byte) []byte {
	if len(lines) <= maxMirrorNote {
		return lines
	}
	end := bytes.LastIndexByte(lines[:maxMirrorNote], '\n')
	if end < 0 {
		end = bytes.IndexByte(lines, '\n')
	}
	if end < 0 {
		return lines
	}
	return lines[:end+1]
}

// mirroredApart tells what the process of an agent has written.
func (a *App) mirroredApart(parent string, n workerNote) {
	var err error
	if n.Error != "" {
		err = errors.New(n.Error)
	}
	a.mirror.Apart(parent, n.Message, []byte(n.Text), err)
}

// Mirrored returns once an event of a session has been written where programs for agent
// sessions look for it, or will not be, or ctx is done.
func (a *App) Mirrored(ctx context.Context, session string, seq int64) {
	a.mirror.Wait(ctx, session, seq)
}

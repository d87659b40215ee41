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

// wrote is what hears what is added to a file; nil = nobody wants to know.
func (a *App) wrote(c mirror.Config) func(lines []byte) {
	if !a.tells() {
		return nil
	}
	return func(lines []byte) { a.mirroredOf(c, lines, nil) }
}

// maxMirrorNote is how many bytes of lines go to the parent of a process at a time, unless a
// single one has more.
const maxMirrorNote = 1 << 20

// mirroredOf tells what was added to a file, or why nothing more will be.
func (a *App) mirroredOf(c mirror.Config, lines []byte, err error) {
	switch {
	case !a.tells():
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
	root := a.topOf(parent)
	if root.Session == "" || n.Message == "" {
		return
	}
	dir, _ := a.projects()
	var err error
	if n.Error != "" {
		err = errors.New(n.Error)
	}
	a.mirroredOf(mirror.Config{Projects: dir, Folder: root.Folder, Session: root.Session, Agent: n.Message}, []byte(n.Text), err)
}

// setMirroring notes who writes a session; nil = nobody does any more.
func (a *App) setMirroring(session string, w *mirroring) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w == nil {
		delete(a.mirroring, session)
		return
	}
	if a.mirroring == nil {
		a.mirroring = map[string]*mirroring{}
	}
	a.mirroring[session] = w
}

// Mirrored returns once an event of a session has been written where programs for agent
// sessions look for it, or will not be, or ctx is done.
func (a *App) Mirrored(ctx context.Context, session string, seq int64) {
	a.mu.Lock()
	w := a.mirroring[session]
	a.mu.Unlock()
	for w != nil {
		reached, moved := w.where()
		if reached >= seq || moved == nil {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// reach says how far the session was written, and whether more will be.
func (w *mirroring) reach(seq int64, last bool) {
	w.wake.Lock()
	defer w.wake.Unlock()
	w.reached, w.still = max(w.reached, seq), w.still || last
	if w.moved != nil {
		close(w.moved)
		w.moved = nil
	}
}

// where is how far the session was written, and what is closed once it is further; nil = it
// never will be.
func (w *mirroring) where() (int64, <-chan struct{}) {
	w.wake.Lock()
	defer w.wake.Unlock()
	if w.still {
		return w.reached, nil
	}
	if w.moved == nil {
		w.moved = make(chan struct{})
	}
	return w.reached, w.moved
}

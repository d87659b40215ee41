package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"dure/agent"
)

// patienceAlive is how long the owner of a session has for a sign of life, which it
// gives four times a second.
const patienceAlive = 5 * time.Second

// Takeover ends the owner of a session that hangs: a process of this machine that
// was stopped, or does nothing any more. Its lock falls with it, so that there are
// never two owners; what it had acknowledged is on the disk. An owner that answers
// is left alone.
func (s *Local) Takeover(ctx context.Context, owned *OwnedError) error {
	host, err := os.Hostname()
	switch {
	case owned.PID <= 1 || owned.PID == os.Getpid():
		return alive(owned, "cannot be told")
	case err != nil || owned.Host != host:
		return alive(owned, "is on another machine")
	}
	p, err := os.FindProcess(owned.PID) // stands for it from here on, whoever gets its number
	if err != nil || !s.Holds(*owned) {
		return alive(owned, "is not what has its lock, as far as can be told")
	}
	defer func() { _ = p.Release() }() // only a handle
	answers, err := s.Alive(ctx, owned.Session, patienceAlive)
	if err != nil {
		return err
	}
	if answers {
		return alive(owned, "is alive and answers")
	}
	now, err := s.Holder(owned.Session)
	if err != nil {
		return err
	}
	if now.PID != owned.PID || !now.Since.Equal(owned.Since) {
		return alive(owned, "has given it to another one meanwhile")
	}
	if err = p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return alive(owned, "cannot be ended: "+err.Error())
	}
	return nil
}

func alive(owned *OwnedError, why string) error {
	return &agent.Problem{
		Code: agent.ProblemAlive, Err: owned,
		Message: fmt.Sprintf("session %s is not taken over: process %d on %s %s", owned.Session, owned.PID, owned.Host, why),
		Fix:     "end it there, or go on in a copy with: dure fork " + owned.Session,
		Args:    map[string]string{"session": owned.Session, "pid": fmt.Sprint(owned.PID), "host": owned.Host, "why": why},
	}
}

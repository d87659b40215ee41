// Package archive is what the packages in it share: how they look through the sessions of a
// store. It starts no goroutines.
package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"dure/agent"
	"dure/internal/state/journal"
)

// Logs are the logs of sessions, as [journal.Store] has them.
type Logs interface {
	List(ctx context.Context, q journal.Query) iter.Seq2[journal.Meta, error]
	Read(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error]
}

// All returns all sessions by their IDs.
func All(ctx context.Context, logs Logs) (map[string]journal.Meta, error) {
	all := map[string]journal.Meta{}
	for m, err := range logs.List(ctx, journal.Query{}) {
		if err != nil {
			return nil, err
		}
		all[m.ID] = m
	}
	return all, nil
}

// Events yields the events of a session from the first one on.
func Events(ctx context.Context, logs Logs, id string) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for e, err := range logs.Read(ctx, id, 0) {
			if !yield(e, Missing(id, err)) {
				return
			}
		}
	}
}

// Own returns the number of the event after which a log is its session's own. Up to there,
// the log of a fork is that of the session that it was forked from, if that still exists.
func Own(m journal.Meta, all map[string]journal.Meta) int64 {
	if _, ok := all[m.Parent]; !ok {
		return 0
	}
	return m.ForkSeq
}

// Since reads the time from which on events are counted; "" is the zero time.
func Since(given string) (time.Time, error) {
	if given == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return t, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("since: %.80q is no time", given), Err: err, Fix: "give a time such as 2006-01-02T15:04:05Z",
		}
	}
	return t, nil
}

// Missing turns the error of a session that does not exist into a problem. Other errors stay
// as they are.
func Missing(id string, err error) error {
	if !errors.Is(err, journal.ErrMissing) || agent.ProblemOf(err) != nil {
		return err
	}
	return &agent.Problem{
		Code: agent.ProblemMissing, Message: fmt.Sprintf("there is no session %q", id), Err: err,
		Fix: "see the list with: dure sessions", Args: map[string]string{"session": id},
	}
}

// Owned turns the error of a session that is open elsewhere into a problem. Other errors stay
// as they are.
func Owned(err error) error {
	owned, ok := errors.AsType[*journal.OwnedError](err)
	if !ok {
		return err
	}
	return &agent.Problem{
		Code: agent.ProblemOwned, Message: err.Error(), Err: err, Fix: "close it there first",
		Args: map[string]string{
			"session": owned.Session, "error": err.Error(), "pid": fmt.Sprint(owned.PID), "host": owned.Host,
			"since": owned.Since.Local().Format(time.DateTime),
		},
	}
}

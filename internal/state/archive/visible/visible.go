// Package visible finds the sessions that the owner of one may know of: without an owner, all.
// It changes nothing, and starts no goroutines.
package visible

import (
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

const (
	generations = 16  // parents of a session that are looked for
	lastEvents  = 400 // of a session, in which its last answer is looked for
)

// Sessions are those of a store.
type Sessions struct {
	Store func() *journal.Local                                             // once it is open
	Find  func(ctx context.Context, name string) (agent.SessionInfo, error) // by its ID, or a part of it
}

// owners returns the tags that say whose a session is: it has them, or the one that it
// works for does. Without any it is of whoever runs the program. One that is not known to its
// root is nobody's: false.
func (s Sessions) owners(ctx context.Context, id string) (owners []string, known bool) {
	for range generations {
		info, err := s.Find(ctx, id)
		if err != nil || info.ID != id {
			return nil, false
		}
		for _, t := range info.Tags {
			if strings.HasPrefix(t, transcript.OwnerTag) {
				owners = append(owners, t)
			}
		}
		if !info.IsChild() {
			return owners, true
		}
		id = info.Parent
	}
	return nil, false
}

// holdsAll reports whether a session has all the tags.
func holdsAll(tags, owners []string) bool {
	return !slices.ContainsFunc(owners, func(o string) bool { return !slices.Contains(tags, o) })
}

// owned selects sessions that those may know of whose one is; false = none.
func (s Sessions) owned(ctx context.Context, session string, q journal.Query) (journal.Query, []string, bool) {
	owners, known := s.owners(ctx, session)
	if len(owners) > 0 {
		q.Tag = owners[0]
	}
	return q, owners, known
}

// Complete returns the other sessions of a folder whose ID begins as typed, and that those may
// know of whose session is.
func (s Sessions) Complete(ctx context.Context, session, folder, typed string, limit int) (ids []string) {
	q, owners, known := s.owned(ctx, session, journal.Query{Workdir: folder, Prefix: typed, Unarchived: true})
	if !known {
		return nil
	}
	for m, err := range s.Store().List(ctx, q) {
		if err != nil || len(ids) >= limit {
			break
		}
		if m.ID != session && holdsAll(m.Tags, owners) {
			ids = append(ids, "session:"+m.ID)
		}
	}
	return ids
}

// named returns the session that is meant by a name, if those may know of it whose session
// is: sessions of others are not there for them, and so make no name unclear either.
func (s Sessions) named(ctx context.Context, session, name string) (info agent.SessionInfo, ok bool) {
	q, owners, known := s.owned(ctx, session, journal.Query{Name: name})
	if !known {
		return info, false
	}
	if len(owners) > 0 {
		var found []string
		for m, err := range s.Store().List(ctx, q) {
			if err != nil {
				return info, false
			}
			if holdsAll(m.Tags, owners) {
				found = append(found, m.ID)
			}
		}
		switch len(found) {
		case 0: // it may work for one of theirs
		case 1:
			name = found[0]
		default:
			return info, false
		}
	}
	info, err := s.Find(ctx, name)
	if err != nil {
		return info, false
	}
	if len(owners) > 0 {
		theirs, known := s.owners(ctx, info.ID)
		if !known || !holdsAll(theirs, owners) {
			return agent.SessionInfo{}, false
		}
	}
	return info, true
}

// Named returns the session that is meant by a name, if those may know of it whose session is,
// with what was answered last in it.
func (s Sessions) Named(ctx context.Context, session, name string) (info agent.SessionInfo, answer string, ok bool) {
	if info, ok = s.named(ctx, session, name); !ok {
		return info, "", false
	}
	for e, err := range s.Store().Read(ctx, info.ID, max(0, info.Head-lastEvents)) {
		if err != nil {
			break
		}
		if a, ok := e.Body.(agent.ModelAnswered); ok && a.Purpose == "" && a.Message.Text() != "" {
			answer = a.Message.Text()
		}
	}
	return info, answer, true
}

package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"slices"

	"dure/agent"
	"dure/internal/state/transcript"
)

// A Moment is where a conversation stands when [Parts.Extra] is asked what belongs
// into it.
type Moment struct {
	// Fresh is the input that no request has had yet. What belongs to the beginning of
	// the conversation is asked for before there is any.
	Fresh []agent.InputAdded

	Files map[string]agent.FileState // what the session has seen of files, by path
	Turns int                        // turns so far, with the one that runs
	Task  transcript.Task

	Turn   bool                   // one runs: what takes its time may do so
	Skills []transcript.Skill     // whose texts entered the conversation, the newest last
	Active []transcript.TurnSkill // that were started in the turn that runs

	// Has reports whether the conversation has a text of a source and key, which may
	// be another than would be added now.
	Has func(source, key string) bool

	// Keys returns the keys of which the conversation has a text of a source, the
	// oldest first; one may come twice.
	Keys func(source string) []string
}

// extras stores what the model should have before it and has not. No request is
// being built meanwhile.
func (s *Session) extras(ctx context.Context) error {
	if err := s.owed(); err != nil || s.parts.Extra == nil {
		return err
	}
	var at Moment
	var there []transcript.Extra
	s.rec.read(func(st *transcript.State) {
		at = Moment{Fresh: slices.Clone(st.Fresh), Files: maps.Clone(st.Files), Turns: st.Turns, Task: st.Task, Turn: st.Turn.Open, Skills: st.Skills}
		if st.Turn.Open {
			at.Active = st.Turn.Skills
		}
		there = slices.Clone(st.Extras)
	})
	find := func(source, key string) []byte {
		for _, x := range slices.Backward(there) {
			if x.Source == source && x.Key == key {
				return x.SHA256
			}
		}
		return nil
	}
	at.Keys = func(source string) (keys []string) {
		for _, x := range there {
			if x.Source == source {
				keys = append(keys, x.Key)
			}
		}
		return keys
	}
	at.Has = func(source, key string) bool { return find(source, key) != nil }
	var bodies []agent.Body
	for _, c := range s.parts.Extra(ctx, at) {
		sum := sha256.Sum256([]byte(c.Text))
		if c.Text == "" || bytes.Equal(find(c.Source, c.Key), sum[:]) {
			continue
		}
		there = append(there, transcript.Extra{Source: c.Source, Key: c.Key, SHA256: sum[:]})
		bodies = append(bodies, c)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if bodies == nil {
		return nil
	}
	return s.rec.store(false, bodies...)
}

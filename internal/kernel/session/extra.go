package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"slices"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/state/transcript"
)

// extras stores what the model should have before it and has not. No request is
// being built meanwhile.
func (s *Session) extras(ctx context.Context) error {
	if err := s.owed(); err != nil || s.points.Extra == nil {
		return err
	}
	var at plug.Moment
	var there []transcript.Extra
	s.rec.read(func(st *transcript.State) {
		at = plug.Moment{Fresh: slices.Clone(st.Fresh), Files: maps.Clone(st.Files), Turns: st.Turns, Task: st.Task, Turn: st.Turn.Open, Skills: st.Skills}
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
	all := s.points.Extra(ctx, at)
	if tell := s.points.Hooks.Added; tell != nil {
		tell(all)
	}
	for _, c := range all {
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

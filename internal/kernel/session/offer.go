package session

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"dure/agent"
	"dure/internal/state/transcript"
)

// maxTools bounds what is read of the tools of an earlier request.
const maxTools = 64 << 20

// offered are the tools of a request, and the blob that has them.
type offered struct {
	hash  string
	specs []agent.Spec
}

// offers says how the tools of a request of the conversation differ from those of the one
// before it, so that no request has others without an event, and which of them are new or
// described otherwise; nil when they do not. It belongs to the goroutine of the turn.
func (s *Session) offers(ctx context.Context, now offered) (change *agent.ToolsChanged, fresh []agent.Spec) {
	var last string
	s.rec.read(func(st *transcript.State) { last = st.Tools })
	if s.next.hash == last { // it has gone out
		s.shown = s.next
	}
	s.next = now
	if last == "" || last == now.hash {
		return nil, nil
	}
	if s.shown.hash != last { // the session was opened since
		s.shown = offered{last, s.storedTools(ctx, last)}
	}
	before := map[string][]byte{}
	for _, spec := range s.shown.specs {
		before[spec.Name], _ = json.Marshal(spec)
	}
	change = new(agent.ToolsChanged)
	for _, spec := range now.specs {
		was, known := before[spec.Name]
		delete(before, spec.Name)
		is, _ := json.Marshal(spec) // it is stored already
		switch {
		case !known:
			change.Added = append(change.Added, spec.Name)
		case !bytes.Equal(was, is):
			change.Changed = append(change.Changed, spec.Name)
		default:
			continue
		}
		fresh = append(fresh, spec)
	}
	for _, spec := range s.shown.specs {
		if before[spec.Name] != nil {
			change.Removed = append(change.Removed, spec.Name)
		}
	}
	return change, fresh
}

// storedTools reads the tools of an earlier request; nil when that cannot be done.
func (s *Session) storedTools(ctx context.Context, hash string) (specs []agent.Spec) {
	r, err := s.reg.cfg.Store.Blob(ctx, s.id, hash)
	if err != nil {
		return nil
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxTools))
	if err != nil || json.Unmarshal(data, &specs) != nil {
		return nil
	}
	return specs
}

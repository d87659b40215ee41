package swarms

import (
	"context"
	"encoding/json"
	"time"

	"dure/agent"
)

// maxHeard is the most bytes of the body of an event that extensions are told.
const maxHeard = 32 << 10

// heard is an event of the log, as extensions are told it.
type heard struct {
	Seq  int64           `json:"seq"`
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"` // without secrets; what is long is left out
}

// listen has extensions told of the log of the session, from where it was opened, once one
// of them wants to hear of it. A goroutine reads it until hush is called.
func (r *Session) listen() {
	r.at.Lock()
	defer r.at.Unlock()
	if r.deaf != nil || !r.set.Hears(agent.Kinds()...) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for e, err := range r.build.Follow(ctx, r.build.Stored.Head) {
			if err != nil {
				return // the session has ended by that
			}
			if !e.Live() && r.set.Hears(e.Kind()) {
				r.tell(e)
			}
		}
	}()
	r.deaf = func() { cancel(); <-over }
}

// hush ends the telling.
func (r *Session) hush() {
	r.at.Lock()
	deaf := r.deaf
	r.at.Unlock()
	if deaf != nil {
		deaf()
	}
}

func (r *Session) tell(e agent.Event) {
	h := heard{Seq: e.Seq, Time: e.Time, Kind: e.Kind()}
	if data, err := agent.EncodeBody(e.Body); err == nil && len(data) <= maxHeard {
		if clean := r.ext.cfg.Redact(string(data)); json.Valid([]byte(clean)) {
			h.Data = json.RawMessage(clean)
		}
	}
	data, err := json.Marshal(h)
	if err != nil {
		return // what is valid can be encoded
	}
	r.set.Tell(h.Kind, data)
}

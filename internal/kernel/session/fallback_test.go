package session_test

import (
	"fmt"
	"slices"
	"testing"

	"dure/agent"
)

// models are those that were asked, in order.
func (r *rig) models(id string) (names []string) {
	for e := range r.store.Read(r.t.Context(), id, 0) {
		if b, ok := e.Body.(agent.ModelRequested); ok {
			names = append(names, b.Model)
		}
	}
	return names
}

// A turn keeps to the fallback that has taken over: also when a crash cuts it
// short, for its side questions and its thresholds, and until the user names
// another model. The next turn begins with the session's own.
func TestFallbackForATurn(t *testing.T) {
	quota := &agent.ModelError{Class: agent.FailQuota, Status: 402}
	full := say("", call("2", "sleep", `"30m"`))
	full.Usage = agent.Usage{Input: 85}
	for _, tt := range []struct {
		name string
		do   func(r *rig, id string) string // while the second answer's call runs
		want []string
	}{
		{"to its end", func(_ *rig, id string) string { settle(); return id }, []string{"script", "b", "b", "b", "script"}},
		{"after a crash", func(r *rig, id string) string {
			id = r.crash(id)
			s := r.open(agent.Open{Session: id})
			r.send(s, agent.Continue{})
			settle()
			return id
		}, []string{"script", "b", "b", "b", "script"}},
		{"for side questions", func(r *rig, id string) string {
			if _, err := r.reach.Ask(r.t.Context(), agent.Question{Purpose: "digest", Messages: []agent.Message{agent.UserText("?")}}); err != nil {
				r.t.Error(err)
			}
			settle()
			return id
		}, []string{"script", "b", "b", "b", "b", "script"}},
		{"until the user names another", func(r *rig, id string) string {
			if err := r.reg.Send(r.t.Context(), id, agent.Change{Model: "c"}); err != nil {
				r.t.Error(err)
			}
			settle()
			return id
		}, []string{"script", "b", "b", "c", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, quota, say("", call("1", "sleep", `"1s"`)), full, say("ok"), say("ok"), say("ok"))
				r.t = t
				r.model.window = 1000
				r.others = map[string]agent.ModelInfo{"b": {ID: "b", Window: 100}, "c": {ID: "c", Window: 1000}}
				r.spare = []string{"b"}
				s := r.open(agent.Open{})
				defer func() { r.reg.Shutdown() }()
				if err := s.Send(t.Context(), agent.Prompt{Text: "go"}); err != nil {
					t.Fatal(err)
				}
				pass("2s")
				id := tt.do(r, s.Info.ID)
				if err := r.reg.Send(t.Context(), id, agent.Prompt{Text: "again"}); err != nil {
					t.Fatal(err)
				}
				settle()
				if got := r.models(id); !slices.Equal(got, tt.want) {
					t.Errorf("asked %q, want %q\n%s", got, tt.want, r.log(id))
				}
				var crossed []string
				for e := range r.store.Read(t.Context(), id, 0) {
					if b, ok := e.Body.(agent.ContextThreshold); ok {
						crossed = append(crossed, fmt.Sprint(b.Used, "/", b.Window))
					}
				}
				if !slices.Equal(crossed, []string{"85/100"}) {
					t.Errorf("thresholds %q", crossed)
				}
			})
		})
	}
}

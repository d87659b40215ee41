package session

import (
	"fmt"
	"slices"

	"dure/agent"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// rate records what a person thinks of an answer of the conversation.
func (r *runner) rate(c agent.Rate, batch journal.Batch) error {
	b := agent.Rated{Of: c.Of, Good: c.Good, Text: c.Text}
	var head int64
	r.rec.read(func(s *transcript.State) {
		head = s.Head
		b.Of = answerAt(s, c.Of)
		if was, ok := s.Ratings[b.Of]; ok {
			b.Was = &was
		}
	})
	if b.Of == 0 {
		return &agent.Problem{
			Code: agent.ProblemEvent, Message: fmt.Sprintf("event %d is no answer of this conversation", c.Of),
			Fix:  "see its events with: dure show " + r.id,
			Args: map[string]string{"session": r.id, "seq": fmt.Sprint(c.Of), "head": fmt.Sprint(head)},
		}
	}
	return r.rec.append(batch, b)
}

// answerAt returns the event of the answer that a person means: seq, or the newest
// one when it is 0. It returns 0 when there is none. Of messages that are not at
// hand it is not known who said them.
func answerAt(s *transcript.State, seq int64) int64 {
	hidden := len(s.Seqs) - len(s.Messages)
	for i, at := range slices.Backward(s.Seqs) {
		if seq != 0 && at != seq {
			continue
		}
		if i < hidden {
			return seq
		}
		if s.Messages[i-hidden].Role == agent.Assistant {
			return at
		}
	}
	return 0
}

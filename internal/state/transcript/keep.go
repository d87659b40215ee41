package transcript

import (
	"maps"
	"slices"

	"dure/agent"
)

// minKept is how many messages a state keeps at least: those that say how the
// session stands.
const minKept = 8

// Keep has the state let the oldest messages go, now and from now on, while it
// holds more than about so many bytes of them; 0 = none. Their hashes stay, and
// so does the newest call of each tool.
func (s *State) Keep(bytes int) {
	s.keep, s.held = max(0, bytes), 0
	if s.keep == 0 {
		return
	}
	for _, m := range s.Messages {
		s.held += weight(m)
	}
	s.drop()
}

// Whole reports whether no message has been let go.
func (s *State) Whole() bool { return len(s.Messages) == len(s.Hashes) }

// Past returns the messages at hand. In front of them is one with the newest
// call of each tool among those that are not.
func (s *State) Past() []agent.Message {
	if len(s.LetGo) == 0 {
		return slices.Clip(s.Messages)
	}
	m := agent.Message{Role: agent.Assistant}
	for _, tool := range slices.Sorted(maps.Keys(s.LetGo)) {
		c := s.LetGo[tool]
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, Call: &c})
	}
	return slices.Concat([]agent.Message{m}, s.Messages)
}

// drop lets messages go when there are too many: half of what may be kept at
// once, so that it is done rarely.
func (s *State) drop() {
	if s.held <= s.keep || len(s.Messages) <= minKept {
		return
	}
	n := 0
	for ; s.held > s.keep/2 && n < len(s.Messages)-minKept; n++ {
		m := s.Messages[n]
		s.held -= weight(m)
		for _, c := range m.Calls() {
			put(&s.LetGo, c.Tool, c)
		}
	}
	s.Messages = slices.Clone(s.Messages[n:])
}

// weight is about how many bytes a message has.
func weight(m agent.Message) int {
	n := 64
	for _, b := range m.Blocks {
		n += 64 + len(b.Text) + len(b.Signature) + len(b.Raw)
		if b.Call != nil {
			n += len(b.Call.Input) + len(b.Call.Raw)
		}
		if b.Media != nil {
			n += len(b.Media.Data)
		}
		if r := b.Result; r != nil {
			n += len(r.Text) + len(r.Output) + weight(agent.Message{Blocks: r.Blocks})
		}
	}
	return n
}

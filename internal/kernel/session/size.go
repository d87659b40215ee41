package session

import (
	"cmp"
	"fmt"

	"dure/agent"
	"dure/internal/state/transcript"
)

// bytesPerToken is about how many bytes a token has where the parts do not say more.
const bytesPerToken = 3

// tokens is about how many tokens a model has for the parts of a request.
func (s *Session) tokens(m agent.ModelInfo, system []agent.Section, specs []agent.Spec, messages []agent.Message) int {
	if s.points.Compactor.Tokens != nil {
		return s.points.Compactor.Tokens(m, system, specs, messages)
	}
	n := transcript.Size(messages, bytesPerToken)
	for _, sec := range system {
		n += len(sec.Text) / bytesPerToken
	}
	for _, spec := range specs {
		n += (len(spec.Name) + len(spec.Description) + len(spec.Input)) / bytesPerToken
	}
	return n
}

// size is about how many tokens a request has: what was counted, which was of the
// prompt and the tools too, and what has come since.
func (s *Session) size(m agent.ModelInfo, counted int, since []agent.Message, system func() []agent.Section, specs []agent.Spec) int {
	if counted > 0 {
		return counted + s.tokens(m, nil, nil, since)
	}
	return s.tokens(m, system(), specs, since)
}

// fit leaves a request of size tokens an answer that has room in the window beside it:
// some providers refuse what might not have.
func fit(p *agent.Params, m agent.ModelInfo, size int) {
	if m.Window <= 0 || m.MaxOut <= 0 {
		return
	}
	room := m.Window - size - size/50 // what has not been counted is estimated
	if room < cmp.Or(p.MaxTokens, m.MaxOut) {
		p.MaxTokens = max(room, min(leastOutput, m.MaxOut))
		bound(p)
	}
}

// tooLarge notes, once, that a request is larger than the window whatever was done.
func (s *Session) tooLarge(m agent.ModelInfo, size int) error {
	if m.Window <= 0 || size <= m.Window || s.tight {
		return nil
	}
	s.tight = true
	return s.rec.store(false, agent.Note{Level: "warn", Text: fmt.Sprintf(
		"the prompt, the tools and what was said last have about %d tokens, and %s reads %d: choose a model with a larger window, or say less at once", size, m.ID, m.Window)})
}

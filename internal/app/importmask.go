package app

import (
	"encoding/json"

	"dure/agent"
	"dure/internal/safety/guard"
	others "dure/internal/state/archive/foreign"
)

// maskImported hides the secrets of a session that another product has kept as they
// were, before the log has them: in what calls were given and what came of them, and
// in what was said. Signed thoughts stay, for nobody takes them otherwise.
func (a *App) maskImported(s *others.Session) {
	s.Title = a.patterns.Redact(s.Title)
	for i := range s.Entries {
		a.maskBlocks(s.Entries[i].Message.Blocks)
	}
}

func (a *App) maskBlocks(blocks []agent.Block) {
	for i := range blocks {
		b := &blocks[i]
		if b.Type == agent.TextBlock {
			b.Text = a.patterns.Redact(b.Text)
		}
		if b.Call != nil {
			b.Call.Input = maskedInput(b.Call.Input)
		}
		if b.Result != nil {
			b.Result.Text = a.patterns.Redact(b.Result.Text)
			a.maskBlocks(b.Result.Blocks)
		}
	}
}

// maskedInput is the input of a call without secrets; one that cannot be read is empty.
func maskedInput(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	out, err := guard.MaskJSON(raw)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}

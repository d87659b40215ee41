package imports

import (
	"encoding/json"

	"dure/agent"
	others "dure/internal/state/archive/foreign"
)

// mask hides the secrets of a session that another product has kept as they
// were, before the log has them: in what calls were given and what came of them, and
// in what was said. Signed thoughts stay, for nobody takes them otherwise.
func (x *Extension) mask(s *others.Session) {
	s.Title = x.cfg.Redact(s.Title)
	for i := range s.Entries {
		x.maskBlocks(s.Entries[i].Message.Blocks)
	}
}

func (x *Extension) maskBlocks(blocks []agent.Block) {
	for i := range blocks {
		b := &blocks[i]
		if b.Type == agent.TextBlock {
			b.Text = x.cfg.Redact(b.Text)
		}
		if b.Call != nil {
			b.Call.Input = x.maskedInput(b.Call.Input)
		}
		if b.Result != nil {
			b.Result.Text = x.cfg.Redact(b.Result.Text)
			x.maskBlocks(b.Result.Blocks)
		}
	}
}

// maskedInput is the input of a call without secrets; one that cannot be read is empty.
func (x *Extension) maskedInput(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	out, err := x.cfg.Mask(raw)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}

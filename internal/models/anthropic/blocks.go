package anthropic

import (
	"encoding/base64"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// encodeMessage writes the blocks of one message. What the API would refuse is
// left out: empty text, thinking without a signature, and what only another
// provider can read.
func encodeMessage(info agent.ModelInfo, r agent.Request, m agent.Message) segment {
	s := segment{role: m.Role, mark: -1}
	for _, b := range m.Blocks {
		var block []byte
		markable := true
		switch b.Type {
		case agent.TextBlock:
			if !wire.Blank(b.Text) {
				block = textBlock(nil, b.Text)
			}
		case agent.ThinkingBlock, agent.RawBlock:
			block, markable = foreign(info, b), false
			s.thinks = s.thinks || block != nil && len(s.data) == 0 && b.Type == agent.ThinkingBlock
		case agent.CallBlock:
			if b.Call != nil {
				block, s.calls = callBlock(r, *b.Call), true
				s.names(b.Call.ID, callOpen)
			}
		case agent.ResultBlock:
			if b.Result != nil {
				block = resultBlock(info, *b.Result)
				s.names(b.Result.ID, resultOpen)
			}
		case agent.ImageBlock, agent.DocumentBlock:
			block = mediaBlock(info, b)
		}
		if block == nil {
			continue
		}
		if len(s.data) > 0 {
			s.data = append(s.data, ',')
		}
		s.data = append(s.data, block...)
		if markable {
			s.mark = len(s.data) - 1
		}
	}
	return s
}

// What stands in front of the ID of a call and of a result.
const (
	callOpen   = `{"type":"tool_use","id":`
	resultOpen = `{"type":"tool_result","tool_use_id":`
)

// names notes where the next block will have the ID of a call, behind open and
// a quotation mark.
func (s *segment) names(id, open string) {
	from := len(s.data) + len(open) + 1
	if len(s.data) > 0 {
		from++ // the comma
	}
	s.ids = append(s.ids, place{id: id, wire: wire.CallID(id), from: from})
}

func textBlock(dst []byte, text string) []byte {
	return append(wire.Quote(append(dst, `{"type":"text","text":`...), text), '}')
}

// foreign returns a block that goes back with what the provider put into it, or nil when
// it came from another one.
func foreign(info agent.ModelInfo, b agent.Block) []byte {
	switch {
	case b.Provider != "" && b.Provider != info.Provider:
		return nil
	case len(b.Raw) > 0:
		if raw, ok := wire.Canonical(nil, b.Raw); ok && wire.Object(raw) {
			return raw
		}
		return nil
	case b.Signature == "":
		return nil
	}
	d := wire.Quote([]byte(`{"type":"thinking","thinking":`), b.Text)
	return append(wire.Quote(append(d, `,"signature":`...), b.Signature), '}')
}

func callBlock(r agent.Request, c agent.Call) []byte {
	d := wire.Quote([]byte(callOpen), wire.CallID(c.ID))
	d = wire.Quote(append(d, `,"name":`...), wire.ToolName(r.Presented(c.Tool)))
	d = append(d, `,"input":`...)
	return append(wire.CallInput(d, c), '}')
}

func resultBlock(info agent.ModelInfo, r agent.Result) []byte {
	text := wire.ResultText(r)
	d := wire.Quote([]byte(resultOpen), wire.CallID(r.ID))
	var media []byte
	for _, b := range r.Blocks {
		if block := mediaBlock(info, b); block != nil {
			media = append(append(media, ','), block...)
		} else if b.Type == agent.TextBlock && !wire.Blank(b.Text) {
			media = textBlock(append(media, ','), b.Text)
		}
	}
	switch {
	case media != nil && wire.Blank(text):
		d = append(append(append(d, `,"content":[`...), media[1:]...), ']')
	case media != nil:
		d = append(append(textBlock(append(d, `,"content":[`...), text), media...), ']')
	case text != "":
		d = wire.Quote(append(d, `,"content":`...), text)
	}
	if r.Failed() {
		d = append(d, `,"is_error":true`...)
	}
	return append(d, '}')
}

// mediaBlock writes an image or a document, or says in words that the model
// cannot be shown it.
func mediaBlock(info agent.ModelInfo, b agent.Block) []byte {
	m := b.Media
	if m == nil || b.Type != agent.ImageBlock && b.Type != agent.DocumentBlock {
		return nil
	}
	kind, _, _ := strings.Cut(m.Type, ";")
	switch kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		if info.Images && b.Type == agent.ImageBlock {
			return append(source([]byte(`{"type":"image"`), kind, m), '}')
		}
	case "application/pdf":
		if info.PDF && b.Type == agent.DocumentBlock {
			return append(source(title([]byte(`{"type":"document"`), m), kind, m), '}')
		}
	case "text/plain":
		if b.Type == agent.DocumentBlock && m.URL == "" && !wire.Blank(string(m.Data)) {
			d := append(title([]byte(`{"type":"document"`), m), `,"source":{"type":"text","media_type":"text/plain","data":`...)
			return append(wire.Quote(d, string(m.Data)), `}}`...)
		}
	}
	return textBlock(nil, wire.NotShown(b))
}

func title(d []byte, m *agent.Media) []byte {
	if m.Name == "" {
		return d
	}
	return wire.Quote(append(d, `,"title":`...), m.Name)
}

func source(d []byte, kind string, m *agent.Media) []byte {
	if m.URL != "" && len(m.Data) == 0 {
		return append(wire.Quote(append(d, `,"source":{"type":"url","url":`...), m.URL), '}')
	}
	d = wire.Quote(append(d, `,"source":{"type":"base64","media_type":`...), kind)
	d = append(d, `,"data":"`...)
	d = base64.StdEncoding.AppendEncode(d, m.Data)
	return append(d, `"}`...)
}
